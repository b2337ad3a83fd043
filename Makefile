# Two commands for users: `make demo` and `make test`. Everything else is a part of them.
PYTHON ?= python3
BIN := .venv/bin
export PATH := $(CURDIR)/.venv/bin:$(PATH):/usr/sbin:/sbin

.PHONY: setup images demo test test-slow check bench lock clean

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

lock:  ## re-make requirements.lock from pyproject.toml
	@$(BIN)/python tools/lock.py

clean:  ## forget machines, images and rounds; keeps the sources
	@$(BIN)/fairtrial pool reap --all
	rm -rf .state rounds build
