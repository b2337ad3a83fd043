from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from controller.adapters.rehearsal.script import RehearsalScript, parse_script
from controller.errors import InvalidTask

GOOD: dict[str, Any] = {
    "schema": "fairtrial.rehearsal/1",
    "pass_percent": {"default": 70, "codex": 80},
    "weights": {"fail": 9},
    "variants": {
        "pass": [{"say": "Look.", "run": "ls"}, {"say": "Done."}],
        "fail": [{"say": "Nothing to do."}],
        "provider-error": [{"say": "Look.", "run": "ls", "sleep_ms": 5}, {"status": 529}],
    },
}


def parsed(**changes: Any) -> RehearsalScript:
    return parse_script(json.dumps(GOOD | changes).encode(), origin="corpus/calc/rehearsal.json")


def chosen(script: RehearsalScript, *, arm: str, seed: str = "seed") -> Counter[str]:
    return Counter(
        script.choose_variant(chance_seed=seed, task="calc", arm=arm, replicate=replicate, attempt=attempt)
        for replicate in range(1, 1001)
        for attempt in range(1, 4)
    )


def test_variants_come_as_often_as_the_percentages_and_weights_say() -> None:
    codex, other = chosen(parsed(), arm="codex"), chosen(parsed(), arm="other")
    assert 2310 <= codex["pass"] <= 2490  # 80 % of 3,000, four standard deviations
    assert 2000 <= other["pass"] <= 2200  # 70 %
    assert 40 <= codex["provider-error"] <= 85  # a tenth of the rest


def test_the_choice_depends_on_every_argument_and_on_nothing_else() -> None:
    assert chosen(parsed(), arm="codex") == chosen(parsed(), arm="codex")
    sequences = {
        tuple(
            parsed().choose_variant(chance_seed=seed, task=task, arm=arm, replicate=replicate, attempt=1)
            for replicate in range(1, 60)
        )
        for seed in ("a", "b")
        for task in ("calc", "text")
        for arm in ("one", "two")
    }
    assert len(sequences) == 8


def test_certain_and_impossible_variants() -> None:
    assert chosen(parsed(pass_percent={"default": 100}), arm="x") == Counter({"pass": 3000})
    assert "pass" not in chosen(parsed(pass_percent={"default": 0}), arm="x")
    assert "fail" not in chosen(parsed(weights={"fail": 0}), arm="x")


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"schema": "fairtrial.rehearsal/2"}, "schema: Input should be 'fairtrial.rehearsal/1'"),
        ({"pass_percent": {"codex": 80}}, "pass_percent needs an entry `default`"),
        ({"pass_percent": {"default": 101}}, "pass_percent.default: Input should be less than or equal to 100"),
        ({"pass_percent": {"default": 50.5}}, "pass_percent.default: Input should be a valid integer"),
        ({"variants": {"fail": [{"say": "no"}]}, "weights": {}}, "variants needs an entry `pass`"),
        ({"variants": {"pass": [{"say": "Done."}]}, "weights": {}}, "another variant with a weight above 0"),
        ({"weights": {"pass": 3}}, "weights names pass"),
        ({"weights": {"nowhere": 3}}, "weights names nowhere"),
        ({"surprise": 1}, "surprise: Extra inputs are not permitted"),
    ],
)
def test_a_faulty_script_is_refused_with_file_and_field(changes: dict[str, Any], fault: str) -> None:
    with pytest.raises(InvalidTask) as caught:
        parsed(**changes)
    assert "corpus/calc/rehearsal.json: " in str(caught.value)
    assert fault in str(caught.value)


@pytest.mark.parametrize(
    ("steps", "fault"),
    [
        ([], "1 to 40 steps, not 0"),
        ([{"say": "x", "run": "ls"}] * 40 + [{"say": "Done."}], "1 to 40 steps, not 41"),
        ([{"say": "Done."}, {"say": "Done again."}], "step 1: only the last step may do without `run`"),
        ([{"status": 500}, {"say": "Done."}], "step 1: only the last step may do without `run`"),
        ([{"say": "x", "run": "ls"}], "the last step ends the attempt"),
        ([{"status": 529, "say": "sorry"}], "has no `say`, `run` or `truncate`"),
        ([{"status": 418}], "Input should be 400"),
        ([{"truncate": True, "run": "ls"}], "has no `run`"),
        ([{"sleep_ms": 4}], "a step needs `say`, `run`, `status` or `truncate`"),
        ([{"say": "x", "rum": "ls"}], "variants.pass[0].rum: Extra inputs are not permitted"),
    ],
)
def test_a_faulty_variant_is_refused(steps: list[dict[str, Any]], fault: str) -> None:
    with pytest.raises(InvalidTask) as caught:
        parsed(variants={**GOOD["variants"], "pass": steps})
    assert fault in str(caught.value)


def test_bytes_that_are_not_json_are_refused_with_the_file() -> None:
    with pytest.raises(InvalidTask, match=r"^r\.json: \(whole file\): Invalid JSON"):
        parse_script(b"{", origin="r.json")
