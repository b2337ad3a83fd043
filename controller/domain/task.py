"""A task with its content, as loaded from its directory."""

from __future__ import annotations

from pydantic import Field

from controller.domain.plan import TaskEntry
from controller.domain.record import Record
from controller.domain.tree import TreeFile


class TaskBrief(Record):
    """What is needed to let a harness work on a task."""

    entry: TaskEntry
    prompt: str
    base: dict[str, TreeFile]  # what the harness receives, as one commit without history
    rehearsal_json: str | None  # the script the rehearsal model plays; None when the task can't be rehearsed
    verify_seconds: int = Field(default=120, ge=1, le=1800)


class TaskBundle(TaskBrief):
    """One problem with everything that is needed to run and verify it. Trees map POSIX paths to files."""

    verifier: dict[str, bytes]  # hidden: read by the verifier machine only
    gold_patch: bytes
    protected: tuple[str, ...]  # glob patterns of paths a patch must not change (tests, lockfiles, tool configuration)
