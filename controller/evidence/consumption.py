"""What a round has used so far, counted from its log; the conductor and the checker use this one count.

An attempt counts with its ceilings from its intent on, and with its true requests and cost once it is settled. One
whose cost stays unknown keeps its ceilings: unknown is not zero. Of time, every attempt counts its whole timeout.
"""

from __future__ import annotations

from collections.abc import Iterable

from controller.domain import bodies
from controller.domain.authorization import Consumed, attempt_ceiling
from controller.domain.limits import SandboxLimits, SpendLimits
from controller.domain.money import usd_from_text, usd_to_text
from controller.domain.statement import Statement, StatementKind
from controller.evidence.claims import claim


class Tally:
    """A running count in constant time per statement; attempts by id, so a new generation is not counted again."""

    def __init__(self, spend: SpendLimits, sandbox: SandboxLimits) -> None:
        self._ceiling = attempt_ceiling(spend, sandbox, opens_run=False)
        self._runs: set[str] = set()
        self._in_flight: set[str] = set()
        self._known: set[str] = set()
        self._done = Consumed()

    def add(self, statement: Statement) -> None:
        """Count one statement. Those that change no count are ignored."""
        subject = statement.subject
        if statement.kind is StatementKind.ATTEMPT_INTENDED and subject not in self._known:
            self._known.add(subject)
            self._runs.add(claim(statement, bodies.AttemptIntended).run)
            self._in_flight.add(subject)
        elif statement.kind is StatementKind.ATTEMPT_SETTLED and subject in self._in_flight:
            self._in_flight.remove(subject)
            settled, used = claim(statement, bodies.AttemptSettled), self._ceiling
            if settled.usd is not None:
                used = used.model_copy(update={"requests": settled.requests, "usd": settled.usd})
            self._done = self._done.plus(used)

    def opens_run(self, run: str) -> bool:
        """True when no attempt of that logical run was intended yet."""
        return run not in self._runs

    def has_attempt(self, attempt_id: str) -> bool:
        """True when the attempt was intended before, in whatever generation."""
        return attempt_id in self._known

    @property
    def settled(self) -> Consumed:
        """The count without the attempts in flight: what it comes to at least, when they have ended."""
        return self._done.plus(Consumed(logical_runs=len(self._runs)))

    @property
    def consumed(self) -> Consumed:
        """The count now, attempts in flight with their ceilings."""
        flying, ceiling = len(self._in_flight), self._ceiling
        in_flight = Consumed(
            logical_runs=len(self._runs),
            attempts=flying,
            requests=flying * ceiling.requests,
            usd=usd_to_text(flying * usd_from_text(ceiling.usd)),
            timeout_ms=flying * ceiling.timeout_ms,
        )
        return self._done.plus(in_flight)


def consumption(statements: Iterable[Statement], spend: SpendLimits, sandbox: SandboxLimits) -> Consumed:
    """The count after all the given statements."""
    tally = Tally(spend, sandbox)
    for statement in statements:
        tally.add(statement)
    return tally.consumed
