"""The append-only log of a round, as the conductor needs it."""

from __future__ import annotations

from typing import Protocol

from controller.domain.instant import InstantMs
from controller.domain.record import Record
from controller.domain.statement import Statement, StatementKind


class Journal(Protocol):
    """Durable when `append` returns. Nothing is ever altered or removed."""

    def append(
        self, kind: StatementKind, subject: str, body: Record, *, at: InstantMs, key: str | None = None
    ) -> Statement:
        """Add one statement, once: a second append under the same key returns the first if its body is equal.

        The key defaults to kind and subject. Raises ControllerFault when the key is taken by another body, DiskFull
        when the log can't be written.
        """
        ...

    def statements(self) -> tuple[Statement, ...]:
        """All statements in order."""
        ...

    def since(self, sequence: int) -> tuple[Statement, ...]:
        """The statements from that sequence number on, in order."""
        ...

    def of(self, subject: str) -> tuple[Statement, ...]:
        """The statements about one subject, in order."""
        ...

    def find(self, kind: StatementKind, subject: str) -> Statement | None:
        """The newest statement of that kind about the subject."""
        ...

    def running_root(self) -> tuple[int, bytes]:
        """Size of the log and its RFC 6962 root, as kept while statements were appended, not as read from them."""
        ...
