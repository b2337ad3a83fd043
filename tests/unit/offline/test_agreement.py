"""Two checkers of one bundle, written apart: they accept the same, and refuse the same at the same step."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from controller.adapters.files_durable import LocalFiles
from controller.conductor.recompute import RoundRecompute
from controller.evidence.bundle import BUNDLE_BYTES_MAX
from controller.evidence.check import STEPS as FULL_STEPS
from controller.evidence.check import examine as examine_full
from controller.offline.check import Report, examine
from controller.offline.examination import STEPS
from controller.offline.signatures import KeyRing, read_keys
from tests.unit.conductor.test_protocol_rounds import OTHERS, _round
from tests.world.recorded_round import Protocol
from tests.world.signer import FixedSigner
from tests.world.tampering import Files, resigned

RING = FixedSigner().ring
MUTATIONS, MANY_MUTATIONS = 150, 10_000


def ring() -> KeyRing:
    key = FixedSigner().key
    data = b'{"keys":[{"algorithm":"ed25519","id":"%b","public_hex":"%b"}],"schema_version":"fairtrial.keys/1"}'
    return read_keys(data % (key.id.encode(), key.public_hex.encode()), "keys")


def offline(files: Files) -> Report:
    return examine(files, ring(), is_pinned=True)


def failed_step(report: Report) -> int | None:
    return next((step.number for step in report.steps if step.passed is False), None)


def offline_step(files: Files) -> int | None:
    return failed_step(offline(files))


def full_step(files: Files) -> int | None:
    report = examine_full(files, RoundRecompute(), keys=RING)
    return next((step.number for step in report.steps if step.passed is False), None)


def test_the_steps_have_the_same_numbers_and_names() -> None:
    assert [name for name, _ in STEPS] == [name for name, _ in FULL_STEPS]


def test_a_good_bundle_is_accepted_with_every_step_and_what_was_left_out(good_bundle: Files) -> None:
    report = offline(good_bundle)
    assert report.passed, report
    assert all(step.passed and step.detail for step in report.steps)
    assert (report.kind, report.round_id, report.trust) == ("rehearsal", "small", "pinned")
    assert any("report.html" in what for what in report.not_recomputed)
    assert not any("analysis" in what for what in report.not_recomputed)


@pytest.mark.parametrize("protocol", OTHERS)
def test_of_another_protocol_it_checks_all_but_the_analysis_and_says_so(tmp_path: Path, protocol: Protocol) -> None:
    release = _round(tmp_path, protocol).publish()
    report = offline(LocalFiles().read_directory(release.path, bytes_max=BUNDLE_BYTES_MAX))
    assert report.passed, report
    assert any("analysis.json, aggregate.json and the" in what and protocol in what for what in report.not_recomputed)
    assert "the analysis was not recomputed here" in report.steps[8].detail


def _disagreements(files: Files, count: int, *, seed: int) -> list[tuple[int, str, int, list[int | None]]]:
    """Change, drop, insert or cut at one random byte; every other time the key's holder signs the index anew, so that
    later steps see it too. Returns where the verdicts or the steps differ, or one was accepted without the key.

    With the key, some changes are to nothing that follows from anything, such as the time of a refusal.
    """
    chance, found, names = Random(seed), [], sorted(files)
    for number in range(count):
        name = names[number % len(names)]
        data = bytearray(files[name])
        place = chance.randrange(len(data))
        change = chance.randrange(4)
        if change == 0:
            data[place] ^= 1 << chance.randrange(8)
        elif change == 1:
            del data[place]
        elif change == 2:
            data.insert(place, chance.randrange(256))
        else:
            del data[place:]
        changed = {**files, name: bytes(data)}
        is_signed = number // len(names) % 2 == 1 and name != "index.dsse.json"
        steps = [each(resigned(changed) if is_signed else changed) for each in (offline_step, full_step)]
        if steps[0] != steps[1] or (steps[0] is None and not is_signed):
            found.append((number, name, place, steps))
    return found


def test_both_find_the_same_of_every_mutation(good_bundle: Files) -> None:
    assert _disagreements(good_bundle, MUTATIONS, seed=20261130) == []


@pytest.mark.slow
def test_both_find_the_same_of_many_mutations(good_bundle: Files) -> None:
    assert _disagreements(good_bundle, MANY_MUTATIONS, seed=2) == []


def test_nothing_passes_without_the_key(good_bundle: Files) -> None:
    chance, names = Random(5), sorted(good_bundle)
    for number in range(500):
        name = names[number % len(names)]
        data = bytearray(good_bundle[name])
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        assert failed_step(offline({**good_bundle, name: bytes(data)})) == 1
