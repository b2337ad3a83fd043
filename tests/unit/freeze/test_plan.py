from __future__ import annotations

import json
from pathlib import Path

import pytest

from controller.domain.rate_card import RateCard
from controller.errors import InvalidPlan
from controller.freeze import find_tasks, read_named_record, read_plan
from controller.freeze.plan import RoundPlan, parse_plan
from controller.freeze.yaml_strict import YAML_BYTES_MAX, StrictYamlError, load_yaml

DEMO = Path(__file__).parents[3] / "policies" / "rounds" / "demo.yaml"


def _plan(**changes: str) -> bytes:
    """The demo plan with some of its lines (by key) exchanged."""
    lines = DEMO.read_text().splitlines()
    for key, value in changes.items():
        lines = [f"{key}: {value}" if line.startswith(f"{key}:") else line for line in lines]
    return "\n".join(lines).encode()


def _rate_card(plan: RoundPlan, path: Path) -> RateCard:
    return read_named_record(path, "rate_card", plan.rate_card, RateCard)


def test_the_demo_plan_and_its_rate_card_are_valid() -> None:
    plan = read_plan(DEMO)
    assert [arm.harness for arm in plan.arms] == ["codex", "mini-swe-agent"]
    assert plan.kind == "rehearsal"
    assert _rate_card(plan, DEMO).rows[0].model == "rehearsal-1"


def test_all_problems_are_named_at_once_with_file_and_field() -> None:
    broken = b"""
round_id: Demo Round
title: ""
protocol: harness-round
kind: measured
seed: 12
replicates: 30
tasks: [/corpus/*]
arms:
  - {id: a, title: A, harness: codex, lane: missing}
  - {id: a, title: A, harness: codex, lane: one, colour: red}
lanes:
  - {id: one, provider: rehearsal, model: m, observed_models: []}
rate_card: card.json
rate_card: other.json
limits: {spend: {usd_per_attempt: 1.5}}
"""
    with pytest.raises(InvalidPlan) as caught:
        parse_plan(broken, "PLAN.yaml")
    problems = str(caught.value).splitlines()
    assert all(line.startswith("PLAN.yaml: ") for line in problems)
    for field in (
        "key 'rate_card' appears twice",
        "round_id:",
        "title:",
        "seed:",
        "replicates: Input",
        "replicates: a measured round has exactly 3",
        "tasks[0]:",
        "arms: id 'a' appears 2 times",
        "arms[0].lane: there is no lane 'missing'",
        "arms[1].colour:",
        "lanes[0].provider:",
        "lanes[0].observed_models:",
        "limits.spend.usd_per_attempt:",
        "limits: a measured round",
        "retail_policy: a measured round names",
        "approvers: a measured round names",
    ):
        assert any(f"PLAN.yaml: {field}" in line or field in line for line in problems), field


@pytest.mark.parametrize(
    "text",
    [
        "a: &x [1]\nb: *x",
        "a: 1\n---\nb: 2",
        "a: !!python/object/apply:os.system [id]",
        "a: [1",
        "[" * 2000,
        "? [a]\n: 1",
        "a: 1\n\tb: 2",
    ],
)
def test_traps_of_yaml_are_refused(text: str) -> None:
    with pytest.raises((StrictYamlError, InvalidPlan)):
        load_yaml(text.encode())
    with pytest.raises(InvalidPlan, match="PLAN"):
        parse_plan(text.encode(), "PLAN.yaml")


def test_size_and_encoding_are_bounded() -> None:
    with pytest.raises(StrictYamlError, match="larger"):
        load_yaml(b"#" * (YAML_BYTES_MAX + 1))
    with pytest.raises(StrictYamlError):
        load_yaml(b"a: \xff")


def test_nested_repeated_keys_are_found_and_dates_stay_text() -> None:
    value, repeated = load_yaml(b"a: {b: 1, b: 2}\nwhen: 2026-11-30\n")
    assert repeated == ("line 1: key 'b' appears twice",)
    assert value["when"] == "2026-11-30"


@pytest.mark.parametrize("text", ["010", "00", "0x1f", "0b1", "1_000", "1:30"])
def test_a_number_that_could_be_two_stays_text(text: str) -> None:
    assert load_yaml(f"a: {text}".encode())[0] == {"a": text}
    assert load_yaml(b"[0, -5, +7, 12]")[0] == [0, -5, 7, 12]


@pytest.mark.parametrize("data", [b"", b"- 1\n", b"text", b"{}"])
def test_what_is_no_plan_at_all_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidPlan, match=r"PLAN\.yaml: "):
        parse_plan(data, "PLAN.yaml")


def test_a_rehearsal_uses_no_real_provider_and_a_measured_round_no_scripted_one() -> None:
    real = _plan().replace(b"provider: rehearsal", b"provider: acme")
    with pytest.raises(InvalidPlan, match=r"lanes\[0\]\.provider: a rehearsal uses"):
        parse_plan(real, "PLAN.yaml")
    with pytest.raises(InvalidPlan, match=r"lanes\[0\]\.provider: the scripted model"):
        parse_plan(_plan(kind="measured"), "PLAN.yaml")
    measured = real.replace(b"kind: rehearsal", b"kind: measured") + b"\napprovers: people.json\n"
    assert parse_plan(measured, "PLAN.yaml").kind == "measured"


def test_task_directories_are_found_by_path_and_glob_once_each(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / "corpus" / name).mkdir(parents=True)
        (tmp_path / "corpus" / name / "task.toml").touch()
    (tmp_path / "corpus" / "notes").mkdir()
    plan_path = tmp_path / "plans" / "PLAN.yaml"
    plan_path.parent.mkdir()
    plan = parse_plan(_plan(), "PLAN.yaml").model_copy(update={"tasks": ("../corpus/*", "../corpus/one/")})
    assert [path.name for path in find_tasks(plan.tasks, plan_path)] == ["one", "two"]
    with pytest.raises(InvalidPlan, match=r"tasks\[1\]: '\.\./nowhere' finds no"):
        find_tasks(("../corpus/*", "../nowhere"), plan_path)


@pytest.mark.parametrize("pattern", ["a/**b", "a\0b", "*" * 300, "[", "x" * 400, "../loop/*"])
def test_a_pattern_that_no_path_can_match_is_named(pattern: str, tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    plan = parse_plan(_plan(), "PLAN.yaml").model_copy(update={"tasks": (pattern,), "rate_card": pattern})
    with pytest.raises(InvalidPlan, match=r"tasks\[0\]"):
        find_tasks(plan.tasks, tmp_path / "plans" / "PLAN.yaml")
    with pytest.raises(InvalidPlan, match="rate_card"):
        _rate_card(plan, tmp_path / "plans" / "PLAN.yaml")


@pytest.mark.parametrize("change", [("usd_per_million", {"in": "-1"}), ("over", -1)])
def test_no_price_is_negative(change: tuple[str, object], tmp_path: Path) -> None:
    card = json.loads((DEMO.parent / "rate-card-rehearsal.json").read_text())
    card["rows"][0]["bands"][0][change[0]] = change[1]
    (tmp_path / "rate-card-rehearsal.json").write_text(json.dumps(card))
    with pytest.raises(InvalidPlan, match=change[0]):
        _rate_card(read_plan(DEMO), tmp_path / "PLAN.yaml")


def test_a_bad_rate_card_is_named(tmp_path: Path) -> None:
    plan = read_plan(DEMO)
    with pytest.raises(InvalidPlan, match=r"rate_card: rate-card-rehearsal\.json"):
        _rate_card(plan, tmp_path / "PLAN.yaml")
    (tmp_path / "rate-card-rehearsal.json").write_text('{"name": 1}')
    with pytest.raises(InvalidPlan, match=r"rate-card-rehearsal\.json: name"):
        _rate_card(plan, tmp_path / "PLAN.yaml")
    with pytest.raises(InvalidPlan, match=r"none\.yaml"):
        read_plan(tmp_path / "none.yaml")


def _tasks(text: str) -> bytes:
    """The demo plan with other tasks."""
    before, rest = DEMO.read_text().split("tasks:\n", 1)
    return f"{before}{text}\narms:{rest.split('arms:', 1)[1]}".encode()


def test_a_plan_names_directories_of_tasks_or_stores_of_sealed_ones_or_both() -> None:
    assert parse_plan(_tasks("sealed: [a, b]"), "p").sealed == ("a", "b")
    both = parse_plan(_tasks("tasks: [c]\nsealed: [a]"), "p")
    assert (both.tasks, both.sealed) == (("c",), ("a",))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "tasks: name at least one directory here, or a store of sealed tasks"),
        ("tasks: []\nsealed: []", "tasks: name at least one directory here"),
        ("sealed: [/store]", r"sealed\[0\]: '/store' must be relative"),
        ("sealed: store", "sealed: Input should be a valid"),
        ("sealed: ['']", r"sealed\[0\]: String should have at least 1"),
    ],
)
def test_a_plan_without_usable_tasks_is_refused(text: str, said: str) -> None:
    with pytest.raises(InvalidPlan, match=said):
        parse_plan(_tasks(text), "p")
