# Two commands for users: `make demo` and `make test`. Everything else is a part of them.
PYTHON ?= python3
BIN := .venv/bin
export PATH := $(CURDIR)/.venv/bin:$(PATH):/usr/sbin:/sbin

.PHONY: setup images demo test test-slow bench fuzz checker lock clean

setup:
	@$(PYTHON) tools/bootstrap.py

images: setup  ## bake what changed; through sudo when not root
	@$(BIN)/python tools/bake.py

demo: images  ## a finished rehearsal round: real harnesses, real machines, real metering
	@$(BIN)/fairtrial demo

test: setup  ## every check; the end-to-end lane boots real machines
	@$(BIN)/python tools/checks.py

test-slow: setup  ## long studies
	@$(BIN)/pytest -m slow

bench: setup
	@$(BIN)/python -m benchmarks

fuzz: setup  ## coverage-guided fuzzing of what the meter parses: make fuzz SECONDS=600
	@$(BIN)/python -m pip install -q --upgrade --no-deps --require-hashes --target build/fuzz/atheris -r tests/fuzz/requirements.txt
	@PYTHONPATH=build/fuzz/atheris $(BIN)/python -m tests.fuzz $(or $(SECONDS),600) build/fuzz

checker:  ## build/fairtrial-check.pyz: the check of a bundle in one file, for any Python from 3.9 on
	@$(PYTHON) tools/checker.py

lock:  ## re-make requirements.lock from pyproject.toml
	@$(BIN)/python tools/lock.py

clean:  ## forget machines, images and rounds; keeps the sources
	@$(BIN)/fairtrial pool reap --all
	rm -rf .state rounds build
