"""The Journal port in memory."""

from __future__ import annotations

import threading
from itertools import islice
from typing import Any

from controller.domain.instant import InstantMs
from controller.domain.record import Record
from controller.domain.statement import Statement, StatementKind
from controller.errors import ControllerFault
from controller.evidence.canonical import canonical
from controller.evidence.log import next_statement
from controller.evidence.merkle import RunningTree


class MemoryJournal:
    """Forgets everything with the process; otherwise it keeps the contract of the real one."""

    def __init__(self) -> None:
        self._by_key: dict[str, Statement] = {}
        self._by_subject: dict[str, list[Statement]] = {}
        self._tree = RunningTree()
        self._lock = threading.Lock()

    def append(
        self, kind: StatementKind, subject: str, body: Record, *, at: InstantMs, key: str | None = None
    ) -> Statement:
        with self._lock:
            return self._append(kind, subject, body.model_dump(mode="json"), at, key or f"{kind}:{subject}")

    def _append(
        self, kind: StatementKind, subject: str, claim: dict[str, Any], at: InstantMs, unique: str
    ) -> Statement:
        known = self._by_key.get(unique)
        if known is not None:
            if known.body != claim:
                raise ControllerFault(f"statement {unique} exists with another body; the log is append-only")
            return known
        last = next(reversed(self._by_key.values()), None)
        self._by_key[unique] = next_statement(last, kind=kind, at=at, subject=subject, body=claim)
        self._by_subject.setdefault(subject, []).append(self._by_key[unique])
        self._tree.add(canonical(self._by_key[unique]))
        return self._by_key[unique]

    def statements(self) -> tuple[Statement, ...]:
        with self._lock:
            return tuple(self._by_key.values())

    def since(self, sequence: int) -> tuple[Statement, ...]:
        return tuple(islice(self._by_key.values(), sequence, None))

    def of(self, subject: str) -> tuple[Statement, ...]:
        return tuple(self._by_subject.get(subject, ()))

    def find(self, kind: StatementKind, subject: str) -> Statement | None:
        found = [statement for statement in self.of(subject) if statement.kind is kind]
        return found[-1] if found else None

    def running_root(self) -> tuple[int, bytes]:
        with self._lock:
            return self._tree.size, self._tree.root
