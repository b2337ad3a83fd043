"""Publish: what may leave, as a signed bundle that a stranger can check offline.

Input: a closed, settled and analysed round. Output: `<out>/v1`, `v2` ..., each a whole bundle that is never changed.
Invariants: only named kinds of file leave; a file that holds a secret or a path of this machine stops the release; a
measured round leaves only with a person's approval of exactly these bytes; the bundle passes the offline check before
it is written; a version is never overwritten, names the one before it, and says why it is there.
"""

from controller.publish.report_context import Version
from controller.publish.rewrite import Names
from controller.publish.rules import AttemptSecrets, Private
from controller.publish.step import Published, RoundRecords, publish

__all__ = ["AttemptSecrets", "Names", "Private", "Published", "RoundRecords", "Version", "publish"]
