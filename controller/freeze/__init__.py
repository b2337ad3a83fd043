"""Freeze: a plan becomes a signed manifest, after which nothing in it changes.

Input: a strictly parsed PLAN.yaml and what adapters know of tasks, arms, images and flows. Output: a new round
directory with `manifest.json` (canonical), `manifest.dsse.json` and `keys.json`.
Invariants: all problems of a plan are reported at once and nothing is written; an existing directory is never touched;
the directory appears whole or not at all.
"""

from controller.freeze.rules import FreezeInputs
from controller.freeze.step import Frozen, find_tasks, freeze, load_frozen, read_named_record, read_plan

__all__ = ["FreezeInputs", "Frozen", "find_tasks", "freeze", "load_frozen", "read_named_record", "read_plan"]
