"""Destroy: tear a machine down, prove it gone, and sweep what nobody remembers.

Input: a sandbox name and the generation the caller holds. Output: a receipt in the log.
Invariants: succeeds when there is nothing to destroy; a newer holder's machine is never touched; an acknowledged result
comes before the destruction.
"""

from controller.destroy.step import destroy, sweep

__all__ = ["destroy", "sweep"]
