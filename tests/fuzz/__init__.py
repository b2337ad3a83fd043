"""Coverage-guided fuzzing of everything that parses what a provider, a harness or an operator sent to the meter.

`make fuzz SECONDS=600` runs it. The fuzzer itself is no dependency of the project: `requirements.txt` names it by
version and digest. `targets.py` says what must hold for any bytes; `seeds.py` writes the inputs to begin with.
"""
