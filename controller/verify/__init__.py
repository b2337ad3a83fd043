"""Verify: decide whether a harvested tree solves its task, where the harness can't reach.

Input: a leased verifier machine without a network, the task, the harvested tree (or why there is none), the patch tool.
Output: a `Verdict` with every gate, and the bytes of the patch.

Invariants
- Gates are decided on trees, never on the text of a patch; all of them must pass.
- The expected answers never enter the process under test; its output is a claim, the judge's report is the verdict.
- Whatever the harness left gives a verdict. Only a machine that fails us raises (`SandboxLost`).
"""

from controller.verify.qualification import Qualification, qualify
from controller.verify.step import count_cases, verify

__all__ = ["Qualification", "count_cases", "qualify", "verify"]
