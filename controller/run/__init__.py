"""Run one harness inside a leased machine, once.

Input: a `Sandbox` and a `RunOrder`. Output: a `RunResult`, and afterwards, from the artifact store, a `Collected`.

Invariants: the harness starts only when every limit is read back as ordered, every probe is refused and the one
allowed path answers; an order is carried out at most once, whoever asks again; nothing the harness wrote is a path, a
command or an archive on the controller; how the attempt ended is judged from what the shim and the meter witnessed.
"""

from __future__ import annotations

from controller.run.rules import LAST_ARTIFACT, artifact_sizes, judge_end, receipt_mismatches
from controller.run.step import collect, execute

__all__ = ["LAST_ARTIFACT", "artifact_sizes", "collect", "execute", "judge_end", "receipt_mismatches"]
