"""Analyse: from the frozen dataset to estimates, intervals and decisions.

Input: the rows of `dataset.jsonl` (or its bytes) and the plan that was frozen with the manifest.
Output: an `Analysis`, whose canonical JSON holds exact rationals as strings and no floats.
Invariants: pure and deterministic, whatever the order of the rows; the denominator is every predeclared logical run;
unknown is not zero; no decision depends on a rounded number.
"""

from controller.analyse.plan import PlanInputs
from controller.analyse.rules import analyse
from controller.analyse.step import analyse_bytes

__all__ = ["PlanInputs", "analyse", "analyse_bytes"]
