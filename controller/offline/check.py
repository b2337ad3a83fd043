"""The steps in order, up to the first that refuses, and the report on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable, List, Optional, Tuple

from .examination import STEPS, Examination
from .files import Files
from .refusal import Refused
from .signatures import KeyRing

SELF_SIGNED = "self-signed: integrity only. Nobody vouches for the key inside the bundle; pin one with --key"
PINNED = "signed by the key you pinned"
DETAIL_MAX = 500


@dataclass(frozen=True)
class Step:
    """One step and what it saw; `passed` is None where an earlier one refused."""

    number: int
    name: str
    passed: Optional[bool]
    detail: str


@dataclass(frozen=True)
class Report:
    """The outcome. The round is named once its manifest has passed; what was not recomputed is part of the report."""

    passed: bool
    trust: str
    trust_text: str
    round_id: Optional[str]
    manifest_digest: Optional[str]
    kind: Optional[str]
    steps: Tuple[Step, ...]
    not_recomputed: Tuple[str, ...]


def examine(files: Files, ring: KeyRing, *, is_pinned: bool) -> Report:
    """Run the steps. Never raises because of what the files hold."""
    found = Examination(files, ring)
    steps: List[Step] = []
    for number, (name, step) in enumerate(STEPS, start=1):
        steps.append(_tried(number, name, step, found))
        if not steps[-1].passed:
            break
    return _report(steps, is_pinned=is_pinned, found=found)


def refusal_of(text: str, *, is_pinned: bool) -> Report:
    """The report on files that could not even be read: the first step refuses."""
    return _report([Step(1, STEPS[0][0], False, plain(text))], is_pinned=is_pinned)


def plain(text: str) -> str:
    """Printable ASCII of a bounded length: the text may hold what a stranger chose."""
    safe = text[:DETAIL_MAX].encode("ascii", "backslashreplace").decode()
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in safe)


def _tried(number: int, name: str, step: Callable[[Examination], str], found: Examination) -> Step:
    try:
        return Step(number, name, True, step(found))
    except Refused as refusal:
        return Step(number, name, False, plain(str(refusal)))
    except Exception as error:  # a hostile bundle may break any reader; whatever it breaks, it is refused
        return Step(number, name, False, plain(f"malformed: {type(error).__name__}: {error}"))


def _report(steps: List[Step], *, is_pinned: bool, found: Optional[Examination] = None) -> Report:
    rest = [Step(number, name, None, "not reached") for number, (name, _) in enumerate(STEPS, start=1)]
    known = found if sum(step.passed is True for step in steps) >= 2 else None
    return Report(
        passed=len(steps) == len(STEPS) and all(step.passed for step in steps),
        trust="pinned" if is_pinned else "self-signed",
        trust_text=PINNED if is_pinned else SELF_SIGNED,
        round_id=known.plan.round_id if known else None,
        manifest_digest=known.digest if known else None,
        kind=known.plan.kind if known else None,
        steps=(*steps, *rest[len(steps) :]),
        not_recomputed=tuple(known.not_recomputed) if known else (),
    )
