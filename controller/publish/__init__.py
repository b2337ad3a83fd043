"""Publish: what may leave, as a signed bundle that a stranger can check offline.

Input: a closed, settled and analysed round. Output: `<out>/v1`, `v2` ..., each a whole bundle that is never changed.
Invariants: only named kinds of file leave; a file that holds a secret or a path of this machine stops the release; the
bundle passes the offline check before it is written; a version is never overwritten, and names the one before it.
"""

from controller.publish.step import Published, RoundRecords, publish

__all__ = ["Published", "RoundRecords", "publish"]
