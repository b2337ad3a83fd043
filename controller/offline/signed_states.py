"""Part of step 4: the log was signed when it had to be, and every dispute is in the bundle."""

from __future__ import annotations

from typing import List, Sequence, Tuple

from . import claims as said
from . import files as names
from .files import Files
from .log import Statement
from .merkle import roots_at, sha256_digest
from .plan import Plan
from .refusal import Refused
from .signatures import KeyRing, checkpoint_of


def check_signed_states(plan: Plan, files: Files, ring: KeyRing, log: List[Statement], leaves: List[bytes]) -> str:
    """Every signed state is a beginning of the log, the last one is all of it; what to say of them."""
    origin = f"fairtrial/round/{plan.round_id}"
    signed = {name: checkpoint_of(files[name], origin, ring, name) for _, name in _states(files)}
    for size, name in _states(files):
        if signed[name].size != size:
            raise Refused(f"{name} signs {signed[name].size} statements")
    last = checkpoint_of(files[names.CHECKPOINT], origin, ring, names.CHECKPOINT)
    if last.size != len(leaves):
        raise Refused(f"the checkpoint signs {last.size} statements, but the log has {len(leaves)}")
    found = roots_at(leaves, {state.size for state in (*signed.values(), last)})
    for state in (*signed.values(), last):
        if found.get(state.size) != state.root:
            raise Refused(f"{state.size} statements were signed that are not the first ones of this log")
    _check_times(log, [size for size, _ in _states(files)])
    _check_outsiders(files)
    disputes = _check_disputes(plan, files, log)
    return f"{last.size} statements under sha256:{last.root.hex()}, signed in {len(signed)} states{disputes}"


def _states(files: Files) -> List[Tuple[int, str]]:
    return names.numbered(files, names.SIGNED_STATE)


def _check_times(log: List[Statement], sizes: Sequence[int]) -> None:
    """Signed at freeze, between each start and the first intent after it, and after the closing."""
    if 1 not in sizes:
        raise Refused("the log was not signed at freeze")
    started = None
    for statement in log:
        if isinstance(statement.claim, said.RoundStarted):
            started = statement.sequence
        elif isinstance(statement.claim, said.AttemptIntended) and started is not None:
            if not any(started < size <= statement.sequence for size in sizes):
                raise Refused(f"the log was not signed between the start in statement {started} and an attempt")
            started = None
        elif isinstance(statement.claim, said.RoundClosed) and max(sizes) <= statement.sequence:
            raise Refused("the log was not signed after the round was closed")


def _check_outsiders(files: Files) -> None:
    """A cosigned state is one of these with one more line, and a timestamp has its state. Who signed them is not
    looked at here."""
    states = dict(_states(files))
    for size, name in names.numbered(files, names.COSIGNED):
        note = files[name][: max(files[name].rfind("— ".encode()), 0)]
        if size not in states or note != files[states[size]]:
            raise Refused(f"{name} is not the signed state of that size with one more line")
    for size, name in names.numbered(files, names.STAMP):
        if size not in states:
            raise Refused(f"{name} stamps a state of the log that is not here")


def _check_disputes(plan: Plan, files: Files, log: List[Statement]) -> str:
    """Every dispute is about something of this round and has its text, and every text its dispute."""
    attempts = {statement.subject for statement in log if isinstance(statement.claim, said.AttemptIntended)}
    known = {plan.round_id, *(run.id for run in plan.schedule), *attempts}
    texts = set()
    for statement in log:
        if isinstance(statement.claim, said.DisputeFiled):
            digest = statement.claim.text_digest
            name = f"disputes/{digest[len('sha256:') :]}.txt"
            texts.add(name)
            if statement.subject not in known:
                raise Refused(f"statement {statement.sequence} disputes {statement.subject[:80]!r}, which is not here")
            if name not in files or sha256_digest(files[name]) != digest:
                raise Refused(f"{name}, the text of a dispute, is missing or has other bytes")
    for name in sorted(files):
        if names.DISPUTE.fullmatch(name) and name not in texts:
            raise Refused(f"{name} belongs to no dispute")
    return f", {len(texts)} disputes" if texts else ""
