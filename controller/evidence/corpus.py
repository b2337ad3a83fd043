"""The commitment to a corpus: one Merkle root over its tasks, public and sealed."""

from __future__ import annotations

from collections.abc import Sequence

from controller.domain.plan import TaskEntry
from controller.domain.sealed import Opening
from controller.evidence import merkle
from controller.evidence.canonical import canonical, dumps


def corpus_leaf(task: TaskEntry) -> bytes:
    """The leaf data of a public task. The digest covers the whole task directory."""
    return dumps({"id": task.id, "task_digest": task.task_digest})


def corpus_root(tasks: Sequence[TaskEntry]) -> str:
    """`sha256:<hex>`: the RFC 6962 root over the tasks in byte order of their ids."""
    ordered = sorted(tasks, key=lambda task: task.id.encode())
    return f"sha256:{merkle.root_of_hashes([leaf_hash(task) for task in ordered]).hex()}"


def leaf_hash(task: TaskEntry) -> bytes:
    """The hash of the task's leaf: computed for a public task, the commitment itself for a sealed one."""
    if task.sealed is None:
        return merkle.leaf_hash(corpus_leaf(task))
    return bytes.fromhex(task.sealed.commitment.removeprefix("sha256:"))


def commitment(opening: Opening, salt: bytes) -> str:
    """`sha256:<hex>`: the leaf hash over the salt and the canonical bytes of what it stands for.

    Without the salt, whoever guesses a task of little variety could try his guess on the published hash.
    """
    return f"sha256:{merkle.leaf_hash(salt + canonical(opening)).hex()}"
