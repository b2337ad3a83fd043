"""Bad data is refused before anything is estimated, all at once and by line."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from controller.analyse import PlanInputs, analyse, analyse_bytes
from controller.analyse.dataset import parse_dataset
from controller.analyse.plan import plan_of_rows
from controller.domain.dataset import AttemptRow, Charge, LogicalRunRow, Proofs
from controller.domain.outcome import EndKind
from controller.errors import InvalidInput
from tests.world.rounds import SEED, attempt, jsonl, realistic, run

ROWS = realistic(["t1", "t2"], ["a", "b"])
PLAN = PlanInputs(
    seed=SEED, comparisons=(("a", "b"),), arms=("a", "b"), tasks=("t1", "t2"), replicates=3, resamples=200
)


def edited(**changes: Any) -> bytes:
    """One good row with fields replaced, as a line."""
    return json.dumps({**json.loads(jsonl([run("t1", "a", 1)])), **changes}).encode() + b"\n"


def test_a_good_dataset_round_trips() -> None:
    assert list(parse_dataset(jsonl(ROWS))) == ROWS


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "d.jsonl: the dataset has no rows"),
        (b"{]\n", "d.jsonl:1: not one JSON object"),
        (b"\xff\n", "d.jsonl:1: not UTF-8 at byte 1 of the line"),
        (b"[" * 5_000 + b"\n", "d.jsonl:1: not one JSON object"),
        (edited() + b"\n" + edited(), "d.jsonl:2: blank line"),
        (edited()[:-2] + b', "arm": "b"}\n', "d.jsonl:1: key 'arm' is given twice"),
        (edited(colour="red"), "d.jsonl:1: colour: Extra inputs"),
        (edited(replicate=0), "d.jsonl:1: replicate: "),
        (edited(replicate="1"), "d.jsonl:1: replicate: "),
        (edited(usd=0.05), "d.jsonl:1: usd: "),
        (edited(usd="-0.05"), "d.jsonl:1: usd: "),
        (edited(usd="0.06"), "d.jsonl:1: usd: 0.06 is not the sum"),
        (edited(wall_ms=-60_000), "d.jsonl:1: wall_ms: must not be negative"),
        (edited(wall_ms=1), "d.jsonl:1: wall_ms: 1 is not the sum"),
        (edited(wall_ms=None), "d.jsonl:1: wall_ms: may be null only"),
        (edited(outcome="won"), "d.jsonl:1: outcome: "),
        (
            edited(currency="EUR"),
            "d.jsonl:1: currency: another one than USD needs the schema_version fairtrial.dataset/2",
        ),
        (edited(currency="euro"), "d.jsonl:1: currency: "),
        (edited(latency_ms=90_000), "d.jsonl:1: latency_ms: needs the schema_version fairtrial.dataset/2"),
        (edited(latency_ms=1, schema_version="fairtrial.dataset/2"), "latency_ms: 1 is less than the time of the"),
        (edited(schema_version="fairtrial.dataset/3"), "d.jsonl:1: schema_version: "),
        (edited(scored_attempt=2), "d.jsonl:1: scored_attempt: there is no attempt 2"),
        (
            edited(attempts=[], usd="0", wall_ms=0, scored_attempt=None),
            "attempts: a run that was scored has at least one",
        ),
    ],
)
def test_a_malformed_line_is_named(data: bytes, message: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_dataset(data, name="d.jsonl")
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (
            run("t1", "a", 1, attempts=[attempt(end=EndKind.HARNESS_CRASH)]),
            "needs a scored attempt that ended normally",
        ),
        (run("t1", "a", 1, attempts=[attempt(verified=False)]), "needs a scored attempt that ended normally"),
        (run("t1", "a", 1, attempts=[attempt(2)]), "numbered from 1"),
        (run("t1", "a", 1, attempts=[attempt(number) for number in (1, 2, 3, 4)]), "at most 3"),
        (run("t1", "a", 1, attempts=[attempt(turns=-1)]), "turns: must not be negative"),
    ],
)
def test_a_row_that_contradicts_itself_is_refused(row: LogicalRunRow, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        parse_dataset(jsonl([row]))


def test_all_problems_are_reported_at_once() -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_dataset(edited(replicate=0) + edited() + edited(usd="1e3") + b"nonsense\n", name="d.jsonl")
    text = str(refused.value)
    assert [f"d.jsonl:{line}:" in text for line in (1, 2, 3, 4)] == [True, False, True, True]


def test_a_long_list_of_problems_ends_with_a_count() -> None:
    with pytest.raises(InvalidInput, match="and 10 more problems"):
        parse_dataset(b"x\n" * 60)


def altered(index: int, **changes: Any) -> list[LogicalRunRow]:
    """The good rows with one of them changed."""
    rows = list(ROWS)
    rows[index] = rows[index].model_copy(update=changes)
    return rows


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([*ROWS, ROWS[4]], "dataset.jsonl:13: t1.b.r2 appears twice, first on line 5"),
        (ROWS[:-1], "t2.b.r3 is predeclared but has no row"),
        (altered(0, arm="c"), "dataset.jsonl:1: arm: 'c' is not in the plan"),
        (altered(0, task="t9"), "dataset.jsonl:1: task: 't9' is not in the plan"),
        (altered(0, replicate=4), "dataset.jsonl:1: replicate: 4 exceeds the planned 3"),
        (
            [run("t1", "a", 1, attempts=[attempt(usd=None)], outcome="success"), *ROWS[1:]],
            "dataset.jsonl:1: outcome: a run whose cost is unknown is `invalid`, not a success",
        ),
        (altered(2, currency="EUR"), "dataset.jsonl:3: currency: EUR, but this protocol compares metered US dollars"),
        (altered(2, challenge="crash"), "dataset.jsonl:3: challenge: a planted crash case"),
        (
            altered(2, charges=(Charge(id="c1", kind="tool", amount="1", currency="USD"),)),
            "dataset.jsonl:3: charges: this protocol compares the metered model cost only",
        ),
        (altered(3, round_id="round-2"), "dataset.jsonl:4: round_id: 'round-2' differs from 'round-1' on line 1"),
        (altered(3, manifest_digest="sha256:" + "0" * 64), "dataset.jsonl:4: manifest_digest: "),
        (altered(3, kind="measured"), "a rehearsal is never pooled with a measurement"),
        (altered(1, model="other"), "an arm has one model"),
        (altered(1, cluster="other"), "a task has one cluster"),
        (altered(1, visibility="sealed"), "a task has one visibility"),
    ],
)
def test_rows_that_contradict_the_plan_or_one_another_are_refused(rows: list[LogicalRunRow], message: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        analyse(rows, PLAN)
    assert message in str(refused.value)


@pytest.mark.parametrize(
    "comparisons", [(("a", "a"),), (("a", "z"),), (("a", "b"), ("b", "a"))], ids=["itself", "unknown", "twice"]
)
def test_a_nonsense_comparison_is_refused(comparisons: tuple[tuple[str, str], ...]) -> None:
    with pytest.raises(InvalidInput, match="plan: comparisons"):
        analyse(ROWS, PLAN.model_copy(update={"comparisons": comparisons}))


def test_the_result_is_canonical_and_the_same_in_any_order_of_rows() -> None:
    forwards, bytes_forwards = analyse_bytes(jsonl(ROWS), PLAN)
    _, bytes_backwards = analyse_bytes(jsonl(ROWS[::-1]), PLAN)
    assert bytes_forwards == bytes_backwards
    assert type(forwards).model_validate_json(bytes_forwards) == forwards


def test_a_bare_dataset_has_a_plan_of_its_own() -> None:
    plan = plan_of_rows(ROWS)
    assert (plan.comparisons, plan.replicates) == ((("a", "b"),), 3)
    assert plan.seed == ROWS[0].manifest_digest.removeprefix("sha256:")
    with pytest.raises(InvalidInput, match="no rows"):
        plan_of_rows([])
    with pytest.raises(InvalidInput, match="seed: 'xyz' is not 64 hex digits"):
        plan_of_rows(ROWS, seed="xyz")


DOCUMENT = (Path(__file__).parents[3] / "docs" / "dataset.md").read_text()


def test_the_documented_lines_are_sound() -> None:
    """The first two are one round, the third is another one's."""
    lines = [line.strip() for line in DOCUMENT.splitlines() if line.startswith('    {"schema_version"')]
    first, second, third = parse_dataset("\n".join(lines).encode())
    assert third.model_dump_json() == lines[2]
    arms = {arm.arm: arm.success_rate.value for arm in analyse([first, second], plan_of_rows([first, second])).arms}
    assert arms == {"codex": "1", "mini": "0"}


def test_every_field_is_documented_and_no_other() -> None:
    documented = [
        name
        for line in DOCUMENT.splitlines()
        if line.startswith("| `")
        for name in re.findall(r"`(\w+)`", line.split("|")[1])
    ]
    fields = [name for record in (LogicalRunRow, AttemptRow, Charge) for name in record.model_fields]
    assert sorted(documented) == sorted(fields)
    assert all(f"`{name}`" in DOCUMENT for name in Proofs.model_fields)
