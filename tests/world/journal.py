"""The Journal port in memory."""

from __future__ import annotations

from itertools import islice

from controller.domain.instant import InstantMs
from controller.domain.record import Record
from controller.domain.statement import Statement, StatementKind
from controller.errors import ControllerFault
from controller.evidence.log import next_statement


class MemoryJournal:
    """Forgets everything with the process; otherwise it keeps the contract of the real one."""

    def __init__(self) -> None:
        self._by_key: dict[str, Statement] = {}
        self._by_subject: dict[str, list[Statement]] = {}

    def append(
        self, kind: StatementKind, subject: str, body: Record, *, at: InstantMs, key: str | None = None
    ) -> Statement:
        unique = key or f"{kind}:{subject}"
        claim = body.model_dump(mode="json")
        known = self._by_key.get(unique)
        if known is not None:
            if known.body != claim:
                raise ControllerFault(f"statement {unique} exists with another body; the log is append-only")
            return known
        last = next(reversed(self._by_key.values()), None)
        self._by_key[unique] = next_statement(last, kind=kind, at=at, subject=subject, body=claim)
        self._by_subject.setdefault(subject, []).append(self._by_key[unique])
        return self._by_key[unique]

    def statements(self) -> tuple[Statement, ...]:
        return tuple(self._by_key.values())

    def since(self, sequence: int) -> tuple[Statement, ...]:
        return tuple(islice(self._by_key.values(), sequence, None))

    def of(self, subject: str) -> tuple[Statement, ...]:
        return tuple(self._by_subject.get(subject, ()))

    def find(self, kind: StatementKind, subject: str) -> Statement | None:
        found = [statement for statement in self.of(subject) if statement.kind is kind]
        return found[-1] if found else None
