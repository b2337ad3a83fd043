"""The contents of a round's tasks as a port: what runs a task need not be able to read what judges it."""

from __future__ import annotations

from typing import Protocol

from controller.domain.task import TaskBrief, TaskBundle


class TaskContents(Protocol):
    def brief(self, task: str) -> TaskBrief:
        """What a harness receives."""
        ...

    def bundle(self, task: str) -> TaskBundle:
        """Everything. Ask only when a verifier machine is leased, and don't keep it: it opens a sealed task.

        Raises SealedKeyMissing, or BundleRejected for a part that is not what was frozen.
        """
        ...
