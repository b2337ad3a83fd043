"""Lease: a fresh machine for one attempt or one verification.

Input: the attempt, its role, the frozen limits and image digest. Output: a sandbox that answers, and a statement.
Invariants: the name is a pure function of the attempt, so a controller that restarts finds its machine; the machine
dies by itself at its deadline; a verifier's machine has no network device.
"""

from controller.lease.rules import runner_spec, verifier_spec
from controller.lease.step import lease

__all__ = ["lease", "runner_spec", "verifier_spec"]
