"""The commitment to a corpus: one Merkle root over its tasks."""

from __future__ import annotations

from collections.abc import Sequence

from controller.domain.plan import TaskEntry
from controller.evidence import merkle
from controller.evidence.canonical import dumps


def corpus_leaf(task: TaskEntry) -> bytes:
    """The leaf data of a public task. The digest covers the whole task directory."""
    return dumps({"id": task.id, "task_digest": task.task_digest})


def corpus_root(tasks: Sequence[TaskEntry]) -> str:
    """`sha256:<hex>`: the RFC 6962 root over the tasks in byte order of their ids."""
    ordered = sorted(tasks, key=lambda task: task.id.encode())
    return f"sha256:{merkle.root([corpus_leaf(task) for task in ordered]).hex()}"
