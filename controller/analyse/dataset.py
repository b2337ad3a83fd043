"""The border of the analysis: bytes of `dataset.jsonl` in, checked rows out. See docs/dataset.md.

Every problem is reported at once, each with its line. Line n of the file is row n; blank lines are refused, so that
the two never differ.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence, Set
from io import BytesIO
from itertools import islice, product
from typing import Any, Final, NoReturn

from pydantic import ValidationError

from controller.analyse.contradictions import contradictions
from controller.analyse.plan import PlanInputs
from controller.domain.dataset import USD, LogicalRunRow
from controller.domain.names import look
from controller.domain.record import field_faults
from controller.domain.words import numbered
from controller.errors import InvalidInput

BYTES_MAX: Final = 512 * 2**20
LINE_BYTES_MAX: Final = 2**20  # one logical run, with every attempt and ten thousand charges
BYTE_ORDER_MARKS: Final = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
PROBLEMS_SHOWN_MAX: Final = 50  # more than anyone mends in one go; the rest is counted
PROBLEMS_READ_MAX: Final = 1_000  # a file of so many is none of ours, and may hold hundreds of millions


def parse_dataset(data: bytes, *, name: str = "dataset.jsonl") -> tuple[LogicalRunRow, ...]:
    """The rows of a dataset, each checked on its own.

    Raises InvalidInput listing every malformed line: not UTF-8, not one JSON object, a key given twice, a field that is
    unknown, absent, negative or of the wrong type, sums that do not add up, or ids that only look the same.
    """
    if len(data) > BYTES_MAX:
        raise InvalidInput(f"{name}: larger than {BYTES_MAX // 2**20} MiB")
    if data.startswith(BYTE_ORDER_MARKS):
        raise InvalidInput(f"{name}:1: begins with a byte order mark; save the file as UTF-8 without one")
    rows: list[LogicalRunRow] = []
    problems: list[str] = []
    for number, line in enumerate(BytesIO(data), start=1):
        found, row = _parse_line(line.removesuffix(b"\n"))
        problems.extend(f"{name}:{number}: {problem}" for problem in found)
        if row is not None:
            problems.extend(f"{name}:{number}: {problem}" for problem in contradictions(row))
            rows.append(row)
        if len(problems) >= PROBLEMS_READ_MAX:
            problems[PROBLEMS_SHOWN_MAX - 1 :] = [f"{name}:{number}: more problems than anyone mends; read no further"]
            break
    if not data:
        problems.append(f"{name}: the dataset has no rows")
    refuse(problems)
    refuse([*_same_to_the_eye(rows, name)])
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
            problems.append(f"{where}: {run_name(key)} appears twice, first on line {first_line[key]}")
        first_line.setdefault(key, number)
    told = "is predeclared but has no row; a run that never happened is `missing`"
    problems.extend(absent(first_line.keys(), plan.tasks, plan.arms, plan.replicates, f"{name}: ", told))
    problems.extend(mixtures(rows, name))
    refuse(problems)


def absent(
    present: Set[tuple[str, str, int]],
    tasks: Sequence[str],
    arms: Sequence[str],
    replicates: int,
    where: str,
    told: str,
) -> Iterator[str]:
    """The predeclared runs without a row: the first ones by name. Rows of many ids can predeclare billions of runs.

    A run is task, arm and replicate; `told` is what to say of an absent one.
    """
    known_tasks, known_arms = set(tasks), set(arms)
    predeclared = len(known_tasks) * len(known_arms) * replicates
    missing = predeclared - sum(t in known_tasks and a in known_arms and r <= replicates for t, a, r in present)
    if missing > PROBLEMS_SHOWN_MAX:
        yield f"{where}{missing:,} of {predeclared:,} predeclared runs have no row; the first of them follow"
    keys = product(tasks, arms, range(1, replicates + 1))
    for key in islice((key for key in keys if key not in present), min(missing, PROBLEMS_SHOWN_MAX)):
        yield f"{where}{run_name(key)} {told}"


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


def run_name(key: tuple[str, str, int]) -> str:
    """`<task>.<arm>.r<replicate>`."""
    return f"{key[0]}.{key[1]}.r{key[2]}"


def refuse(problems: Sequence[str]) -> None:
    """Raises InvalidInput listing the problems, if there are any: the first ones in full, the rest as a count."""
    if problems:
        shown = "\n".join(problems[:PROBLEMS_SHOWN_MAX])
        more = len(problems) - PROBLEMS_SHOWN_MAX
        raise InvalidInput(shown + (f"\n... and {numbered(more, 'more problem')}" if more > 0 else ""))


def _parse_line(line: bytes) -> tuple[list[str], LogicalRunRow | None]:
    if not line.strip():
        return ["blank line"], None
    if len(line) > LINE_BYTES_MAX:
        return [f"longer than {LINE_BYTES_MAX // 2**20} MiB, which no logical run needs"], None
    twice: list[str] = []

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            counts = Counter(key for key, _ in pairs)
            twice.extend(f"key {key!r} is given twice" for key, count in sorted(counts.items()) if count > 1)
        return found

    def no_number(text: str) -> NoReturn:
        raise ValueError(f"{text} is no JSON number")

    try:
        json.loads(line.decode("utf-8"), object_pairs_hook=unique, parse_constant=no_number)
    except UnicodeDecodeError as error:
        return [f"not UTF-8 at byte {error.start + 1} of the line"], None
    except RecursionError:
        return ["not one JSON object: nested too deeply"], None
    except ValueError as error:
        return [f"not one JSON object: {str(error).partition(';')[0]}"], None
    if twice:
        return twice, None
    try:
        return [], LogicalRunRow.model_validate_json(line)
    except ValidationError as error:
        return [*field_faults(error, whole="row")], None


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


def _same_to_the_eye(rows: Sequence[LogicalRunRow], name: str) -> Iterator[str]:
    """Ids that differ only in Unicode form or spaces: two arms to a program, and one to whoever reads the report."""
    first: dict[tuple[str, str], tuple[str, int]] = {}
    for number, row in enumerate(rows, start=1):
        for field in ("round_id", "task", "cluster", "stratum", "arm", "model"):
            spelled: str = getattr(row, field)
            before, line = first.setdefault((field, look(spelled)), (spelled, number))
            if before != spelled:
                yield (
                    f"{name}:{number}: {field}: {spelled!a} and {before!a} on line {line} differ only in their Unicode "
                    "form or their spaces; spell both alike"
                )
