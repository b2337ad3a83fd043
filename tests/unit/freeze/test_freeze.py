from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from controller.adapters.files_durable import LocalFiles
from controller.domain.ids import sha256_digest
from controller.domain.instant import InstantMs
from controller.errors import BadSignature, InvalidInput, InvalidPlan, NotCanonical, RoundNotFound
from controller.evidence import merkle
from controller.evidence.canonical import canonical
from controller.evidence.corpus import corpus_leaf, corpus_root
from controller.freeze import FreezeInputs, freeze, load_frozen
from controller.freeze.rules import manifest_of
from controller.protocols.harness_round.manifest import HarnessRoundManifest
from tests.world.clock import StepClock
from tests.world.recorded_round import START, digest, inputs
from tests.world.sealed import sealed_task
from tests.world.signer import FixedSigner

SIGNER = FixedSigner()


def _freeze(out: Path, given: FreezeInputs | None = None) -> None:
    freeze(given or inputs(), out, SIGNER, StepClock(), files=LocalFiles())


def test_a_frozen_round_is_read_back_and_twice_frozen_is_the_same_bytes(tmp_path: Path) -> None:
    frozen = freeze(inputs(), tmp_path / "a", SIGNER, StepClock(), files=LocalFiles())
    _freeze(tmp_path / "b")
    assert load_frozen(tmp_path / "a") == frozen
    assert load_frozen(tmp_path / "a", SIGNER.ring) == frozen
    names = sorted(path.name for path in (tmp_path / "a").iterdir())
    assert names == ["keys.json", "manifest.dsse.json", "manifest.json"]
    for name in names:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    assert frozen.digest == sha256_digest((tmp_path / "a" / "manifest.json").read_bytes())


def test_an_existing_directory_is_never_touched(tmp_path: Path) -> None:
    (tmp_path / "round").mkdir()
    with pytest.raises(InvalidInput, match="never overwritten"):
        _freeze(tmp_path / "round")
    assert list((tmp_path / "round").iterdir()) == []


def test_the_corpus_root_commits_to_every_task() -> None:
    manifest = manifest_of(inputs(), at=START)
    leaves = [corpus_leaf(task) for task in manifest.tasks]
    assert manifest.corpus_root == f"sha256:{merkle.root(leaves).hex()}"
    proof = merkle.inclusion_proof(leaves, 1)
    merkle.check_inclusion(leaves[1], 1, 2, proof, bytes.fromhex(manifest.corpus_root.removeprefix("sha256:")))


def test_changed_foreign_and_absent_manifests_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RoundNotFound, match=r"manifest\.json"):
        load_frozen(tmp_path)
    _freeze(tmp_path / "round")
    with pytest.raises(BadSignature):
        load_frozen(tmp_path / "round", FixedSigner("rival").ring)
    path = tmp_path / "round" / "manifest.json"
    path.write_bytes(path.read_bytes().replace(b"A small round", b"A great round"))
    with pytest.raises(RoundNotFound, match="not what was signed"):
        load_frozen(tmp_path / "round")
    (tmp_path / "round" / "keys.json").write_bytes(b"{}\n")
    with pytest.raises(NotCanonical, match=r"keys\.json"):
        load_frozen(tmp_path / "round")


def _problem(given: FreezeInputs, at: InstantMs = InstantMs(0)) -> str:  # noqa: B008  a constant
    with pytest.raises(InvalidPlan) as caught:
        manifest_of(given, at=at)
    return str(caught.value)


def _with(**changes: Any) -> FreezeInputs:
    return inputs().model_copy(update=changes)


def test_everything_that_does_not_fit_is_named_at_once() -> None:
    good = inputs()
    broken = good.model_copy(
        update={
            "tasks": (good.tasks[0], good.tasks[0]),
            "arms": (good.arms[0], good.arms[1].model_copy(update={"image_digest": digest("other")})),
            "rate_card": good.rate_card.model_copy(update={"rows": ()}),
            "seed": "00" * 32,
            "schedule": good.schedule[:-1],
        }
    )
    text = _problem(broken)
    for part in (
        "tasks: id 'first' appears 2 times",
        "arms.beta.image_digest: image 'harness-codex'",
        "lanes.lane: rate card 'test' has 0 rows",
        "seed: differs",
        "schedule: 7 runs do not cover",
    ):
        assert part in text
    assert all(line.startswith("round small: ") for line in text.splitlines())


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"tasks": ()}, "tasks: none found"),
        ({"arms": inputs().arms[:1]}, "arms: differ"),
        ({"schedule": (*inputs().schedule[:-1], inputs().schedule[0])}, "schedule"),
        ({"launch_contracts": {}}, "launch_contracts"),
    ],
)
def test_each_gap_is_named(changes: dict[str, Any], part: str) -> None:
    assert part in _problem(_with(**changes))


@pytest.mark.parametrize(
    ("since", "until", "fits"),
    [
        ("2026-09-21", "2026-09-21", True),  # the day of START
        ("2026-09-22", None, False),
        (None, "2026-09-20", False),
        (None, None, True),
    ],
)
def test_prices_must_be_in_force_when_the_round_is_frozen(since: str | None, until: str | None, fits: bool) -> None:
    given = inputs()
    row = given.rate_card.rows[0].model_copy(update={"effective_from": since, "effective_to": until})
    changed = given.model_copy(update={"rate_card": given.rate_card.model_copy(update={"rows": (row,)})})
    if fits:
        assert manifest_of(changed, at=START).rate_card.rows == (row,)
    else:
        assert "lanes.lane: the rate card's prices of m-1 are not in force on 2026-09-21" in _problem(changed, START)


def test_a_changed_setting_and_an_idle_lane_are_named() -> None:
    given = inputs()
    arm = given.arms[0].model_copy(update={"settings": {"model": "other"}})
    lane = given.plan.lanes[0].model_copy(update={"id": "idle"})
    plan = given.plan.model_copy(update={"lanes": (*given.plan.lanes, lane)})
    text = _problem(given.model_copy(update={"arms": (arm, given.arms[1]), "plan": plan}))
    assert "arms.alpha: harness, lane or settings differ" in text
    assert "lanes.idle: no arm uses it" in text


def test_a_lane_that_the_meter_can_not_forward_is_refused() -> None:
    given = inputs()
    lane = given.plan.lanes[0].model_copy(update={"provider": "acme"})
    text = _problem(given.model_copy(update={"plan": given.plan.model_copy(update={"lanes": (lane,)})}))
    assert "lanes.lane.provider: the meter forwards to anthropic, gemini, openai, not to 'acme'" in text


def test_a_task_that_is_to_be_sealed_is_not_frozen_with_its_digests() -> None:
    first, second = inputs().tasks
    text = _problem(_with(tasks=(first.model_copy(update={"visibility": "sealed"}), second)))
    assert "tasks: first is to be sealed, so name its store under `sealed`" in text


def test_a_manifest_on_sealed_tasks_holds_their_commitments_and_no_digest() -> None:
    entries = [sealed_task(name)[0].entry for name in ("hidden", "other")]
    manifest = manifest_of(inputs(given=entries), at=START)
    again = HarnessRoundManifest.model_validate_json(canonical(manifest))
    assert again.tasks == tuple(entries)
    assert again.corpus_root == corpus_root(entries)


def test_a_measured_round_keeps_the_fixed_limits_and_three_repeats() -> None:
    manifest = manifest_of(inputs(), at=START)
    fields = manifest.model_dump(mode="json") | {"kind": "measured"}
    with pytest.raises(ValueError, match="replicates: fixed by the protocol"):
        HarnessRoundManifest.model_validate_json(json.dumps(fields))
    fields["analysis"]["comparisons"] = []
    fields["kind"] = "rehearsal"
    with pytest.raises(ValueError, match=r"analysis\.comparisons"):
        HarnessRoundManifest.model_validate_json(json.dumps(fields))
