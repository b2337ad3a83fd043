"""The border of the analysis: bytes of `dataset.jsonl` in, checked rows out. See docs/dataset.md.

Every problem is reported at once, each with its line. Line n of the file is row n; blank lines are refused, so that
the two never differ.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any, Final

from pydantic import ValidationError

from controller.analyse.plan import PlanInputs
from controller.domain.dataset import USD, LogicalRunRow
from controller.domain.limits import ATTEMPTS_PER_LOGICAL_RUN_MAX
from controller.domain.money import usd_from_text
from controller.domain.outcome import EndKind
from controller.domain.record import field_faults
from controller.errors import InvalidInput

BYTES_MAX: Final = 512 * 2**20
PROBLEMS_SHOWN_MAX: Final = 50  # more than anyone mends in one go; the rest is counted


def parse_dataset(data: bytes, *, name: str = "dataset.jsonl") -> tuple[LogicalRunRow, ...]:
    """The rows of a dataset, each checked on its own.

    Raises InvalidInput listing every malformed line: not UTF-8, not one JSON object, a key given twice, a field that is
    unknown, absent, negative or of the wrong type, or sums that do not add up.
    """
    if len(data) > BYTES_MAX:
        raise InvalidInput(f"{name}: larger than {BYTES_MAX // 2**20} MiB")
    rows: list[LogicalRunRow] = []
    problems: list[str] = []
    lines = data.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    for number, line in enumerate(lines, start=1):
        found, row = _parse_line(line)
        problems.extend(f"{name}:{number}: {problem}" for problem in found)
        if row is not None:
            problems.extend(f"{name}:{number}: {problem}" for problem in _row_problems(row))
            rows.append(row)
    if not lines:
        problems.append(f"{name}: the dataset has no rows")
    refuse(problems)
    return tuple(rows)


def check_rows(rows: Sequence[LogicalRunRow], plan: PlanInputs, *, name: str = "dataset.jsonl") -> None:
    """Check the rows against the plan and against one another.

    Raises InvalidInput listing every unplanned or duplicate row, every planned run without a row, and every mixture of
    rounds, manifests or models that must not be pooled.
    """
    problems = [*_plan_problems(plan)]
    arms, tasks = set(plan.arms), set(plan.tasks)
    first_line: dict[tuple[str, str, int], int] = {}
    for number, row in enumerate(rows, start=1):
        where = f"{name}:{number}"
        if row.arm not in arms:
            problems.append(f"{where}: arm: {row.arm!r} is not in the plan")
        if row.task not in tasks:
            problems.append(f"{where}: task: {row.task!r} is not in the plan")
        if row.replicate > plan.replicates:
            problems.append(f"{where}: replicate: {row.replicate} exceeds the planned {plan.replicates}")
        problems.extend(f"{where}: {fault}" for fault in _beyond_this_protocol(row))
        key = (row.task, row.arm, row.replicate)
        if key in first_line:
            problems.append(f"{where}: {_name(key)} appears twice, first on line {first_line[key]}")
        first_line.setdefault(key, number)
    for task in plan.tasks:
        for arm in plan.arms:
            for replicate in range(1, plan.replicates + 1):
                key = (task, arm, replicate)
                if key not in first_line:
                    problems.append(
                        f"{name}: {_name(key)} is predeclared but has no row; a run that never happened is `missing`"
                    )
    problems.extend(mixtures(rows, name))
    refuse(problems)


def _beyond_this_protocol(row: LogicalRunRow) -> Iterator[str]:
    """What another protocol allows in a row, and harness-round does not."""
    if row.outcome == "success" and row.usd is None:
        yield "outcome: a run whose cost is unknown is `invalid`, not a success"
    if row.currency != USD:
        yield f"currency: {row.currency}, but this protocol compares metered US dollars only"
    if row.charges:
        yield "charges: this protocol compares the metered model cost only"
    if row.challenge is not None:
        yield f"challenge: a planted {row.challenge} case is no run of this protocol"


def _name(key: tuple[str, str, int]) -> str:
    return f"{key[0]}.{key[1]}.r{key[2]}"


def refuse(problems: Sequence[str]) -> None:
    """Raises InvalidInput listing the problems, if there are any: the first ones in full, the rest as a count."""
    if problems:
        shown = "\n".join(problems[:PROBLEMS_SHOWN_MAX])
        more = len(problems) - PROBLEMS_SHOWN_MAX
        raise InvalidInput(shown + (f"\n... and {more} more problems" if more > 0 else ""))


def _parse_line(line: bytes) -> tuple[list[str], LogicalRunRow | None]:
    if not line.strip():
        return ["blank line"], None
    twice: list[str] = []

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        names = [key for key, _ in pairs]
        twice.extend(f"key {key!r} is given twice" for key in sorted({key for key in names if names.count(key) > 1}))
        return dict(pairs)

    try:
        json.loads(line, object_pairs_hook=unique)
    except (ValueError, RecursionError) as error:
        return [f"not one JSON object: {error}"], None
    if twice:
        return twice, None
    try:
        return [], LogicalRunRow.model_validate_json(line)
    except ValidationError as error:
        return [*field_faults(error, whole="row")], None


def _row_problems(row: LogicalRunRow) -> Iterator[str]:
    """Contradictions inside one row."""
    numbers = [attempt.number for attempt in row.attempts]
    if numbers != list(range(1, len(numbers) + 1)):
        yield "attempts: must be numbered from 1 without a gap, in order"
    if len(numbers) > ATTEMPTS_PER_LOGICAL_RUN_MAX:
        yield f"attempts: {len(numbers)}, but at most {ATTEMPTS_PER_LOGICAL_RUN_MAX} are allowed"
    for attempt in row.attempts:
        for token_class, count in attempt.tokens.items():
            if count < 0:
                yield f"attempts.{attempt.number - 1}.tokens.{token_class}: must not be negative"
        for field in ("turns", "tool_calls"):
            if (getattr(attempt, field) or 0) < 0:
                yield f"attempts.{attempt.number - 1}.{field}: must not be negative"
    yield from _sum_problems(row)
    yield from _outcome_problems(row)
    yield from _version_problems(row)


def _sum_problems(row: LogicalRunRow) -> Iterator[str]:
    costs = [attempt.usd for attempt in row.attempts]
    known = [usd_from_text(usd) for usd in costs if usd is not None]
    if row.usd is not None and len(known) < len(costs):
        yield "usd: must be null, because the cost of an attempt is unknown"
    elif row.usd is not None and usd_from_text(row.usd) != sum(known, Fraction(0)):
        yield f"usd: {row.usd} is not the sum of the attempts"
    if row.wall_ms is not None and row.wall_ms < 0:
        yield "wall_ms: must not be negative"
    elif row.wall_ms is not None and row.wall_ms != sum(attempt.wall_ms for attempt in row.attempts):
        yield f"wall_ms: {row.wall_ms} is not the sum of the attempts"


def _outcome_problems(row: LogicalRunRow) -> Iterator[str]:
    scored = next((attempt for attempt in row.attempts if attempt.number == row.scored_attempt), None)
    if row.scored_attempt is not None and scored is None:
        yield f"scored_attempt: there is no attempt {row.scored_attempt}"
    sound = scored is not None and scored.end is EndKind.NORMAL and scored.verified is True
    if row.outcome == "success" and not sound:
        yield "outcome: a success needs a scored attempt that ended normally and was verified"
    if row.outcome in ("success", "failure") and row.wall_ms is None:
        yield "wall_ms: may be null only for a missing or an invalid run"
    if row.outcome in ("success", "failure") and not row.attempts:
        yield "attempts: a run that was scored has at least one"


def _version_problems(row: LogicalRunRow) -> Iterator[str]:
    """What only the second version of the format can say, in a row that says it is of the first."""
    if row.latency_ms is not None and row.latency_ms < sum(attempt.wall_ms for attempt in row.attempts):
        yield f"latency_ms: {row.latency_ms} is less than the time of the attempts"
    if row.schema_version == "fairtrial.dataset/1":
        for name in ("latency_ms", "charges", "proofs", "challenge"):
            if getattr(row, name) not in (None, ()):
                yield f"{name}: needs the schema_version fairtrial.dataset/2"
        if row.currency != USD:
            yield "currency: another one than USD needs the schema_version fairtrial.dataset/2"


def _plan_problems(plan: PlanInputs) -> Iterator[str]:
    for kind, ids in (("arms", plan.arms), ("tasks", plan.tasks)):
        if len(set(ids)) != len(ids):
            yield f"plan: {kind}: an id is given twice"
    seen = set()
    for first, second in plan.comparisons:
        if first == second or first not in plan.arms or second not in plan.arms:
            yield f"plan: comparisons: {first} and {second} are not two arms of the plan"
        if frozenset((first, second)) in seen:
            yield f"plan: comparisons: {first} and {second} are given twice"
        seen.add(frozenset((first, second)))


def mixtures(rows: Sequence[LogicalRunRow], name: str) -> Iterator[str]:
    """Values that must be one for the whole dataset, one for each task or one for each arm."""
    first: dict[tuple[str, ...], tuple[object, int]] = {}
    for number, row in enumerate(rows, start=1):
        facts: tuple[tuple[tuple[str, ...], object, str], ...] = (
            (("round_id",), row.round_id, "rounds are never pooled"),
            (("manifest_digest",), row.manifest_digest, "rounds are never pooled"),
            (("kind",), row.kind, "a rehearsal is never pooled with a measurement"),
            (("model", row.arm), row.model, "an arm has one model"),
            (("cluster", row.task), row.cluster, "a task has one cluster"),
            (("stratum", row.task), row.stratum, "a task has one stratum"),
            (("visibility", row.task), row.visibility, "a task has one visibility"),
        )
        for key, value, rule in facts:
            before, line = first.setdefault(key, (value, number))
            if before != value:
                yield f"{name}:{number}: {key[0]}: {value!r} differs from {before!r} on line {line}; {rule}"
