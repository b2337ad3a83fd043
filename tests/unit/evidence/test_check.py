"""The check against outsiders, who can change bytes, and against the key's holder, who can sign what he changed."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from controller.conductor.recompute import RoundRecompute
from controller.domain.plan import LogicalRun, RoundManifest
from controller.errors import BundleRejected
from controller.evidence import bundle
from controller.evidence.check import STEPS, check, choose_keys, examine
from tests.world.signer import FixedSigner
from tests.world.tampering import TAMPERS, Files, Tamper, resigned

SIGNER = FixedSigner()
MUTATIONS, MANY_MUTATIONS = 2_500, 20_000


def _failed_step(files: Files, recompute: RoundRecompute | None = None) -> tuple[int, str]:
    report = examine(files, recompute or RoundRecompute(), keys=SIGNER.ring)
    assert not report.passed
    return next((step.number, step.detail) for step in report.steps if step.passed is False)


def test_a_good_bundle_passes_every_step(good_bundle: Files) -> None:
    report = check(good_bundle, RoundRecompute(), keys=SIGNER.ring)
    assert report.passed
    assert report.kind == "rehearsal"
    assert [step.number for step in report.steps] == list(range(1, 12))
    assert all(step.passed and step.detail for step in report.steps)


def test_the_numbers_of_the_steps_are_those_of_the_prose() -> None:
    from controller.evidence import check as module

    text = module.__doc__ or ""
    assert all(f"{number:2}. " in text for number in range(1, len(STEPS) + 1))
    assert f"{len(STEPS) + 1:2}. " not in text
    guide = (Path(__file__).parents[3] / "docs" / "evidence.md").read_text().lower()
    for number, (name, _) in enumerate(STEPS, start=1):
        assert f"\n{number}. **{name}" in guide


def _accepted_mutations(files: Files, count: int, *, seed: int) -> list[tuple[int, str, int]]:
    """Change, drop, insert or cut at one random byte of one file after the other; returns what the check accepted."""
    chance, accepted, names = Random(seed), [], sorted(files)
    for number in range(count):
        name = names[number % len(names)]
        data = bytearray(files[name])
        place = chance.randrange(len(data))
        match chance.randrange(4):
            case 0:
                data[place] ^= 1 << chance.randrange(8)
            case 1:
                del data[place]
            case 2:
                data.insert(place, chance.randrange(256))
            case _:
                del data[place:]
        for keys in (SIGNER.ring, None) if number % 5 == 0 else (SIGNER.ring,):
            if examine({**files, name: bytes(data)}, RoundRecompute(), keys=keys).passed:
                accepted.append((number, name, place))
    return accepted


def test_every_mutation_of_a_byte_is_refused(good_bundle: Files) -> None:
    assert _accepted_mutations(good_bundle, MUTATIONS, seed=20261130) == []


@pytest.mark.slow
def test_every_one_of_many_mutations_is_refused(good_bundle: Files) -> None:
    assert _accepted_mutations(good_bundle, MANY_MUTATIONS, seed=1) == []


def test_every_bit_of_the_index_matters(good_bundle: Files) -> None:
    index = good_bundle[bundle.INDEX]
    chance = Random(7)
    for bit in chance.sample(range(len(index) * 8), 1_000):
        changed = bytearray(index)
        changed[bit // 8] ^= 1 << bit % 8
        assert not examine({**good_bundle, bundle.INDEX: bytes(changed)}, RoundRecompute(), keys=SIGNER.ring).passed


def test_missing_extra_and_exchanged_files_are_refused(good_bundle: Files) -> None:
    for name in good_bundle:
        rest = {key: data for key, data in good_bundle.items() if key != name}
        assert not examine(rest, RoundRecompute(), keys=SIGNER.ring).passed
        for other in good_bundle:
            if good_bundle[other] != good_bundle[name]:
                swapped = {**good_bundle, name: good_bundle[other], other: good_bundle[name]}
                assert not examine(swapped, RoundRecompute(), keys=SIGNER.ring).passed
    assert _failed_step({**good_bundle, "patches/att-0.patch": b""}) == (1, "patches/att-0.patch is not in the index")


def test_nothing_in_a_hostile_bundle_makes_the_check_raise() -> None:
    for files in ({}, {bundle.KEYS: b"{}"}, {bundle.KEYS: b"\xff", bundle.INDEX: b"["}):
        assert not examine(files, RoundRecompute()).passed
        assert not examine(files, RoundRecompute(), keys=SIGNER.ring).passed


def test_whose_key_it_was_is_said(good_bundle: Files) -> None:
    alone = examine(good_bundle, RoundRecompute())
    assert alone.passed
    assert alone.trust == "self-signed"
    assert "integrity only" in alone.trust_text
    with pytest.raises(BundleRejected, match=r"step 1 \(index\): .* not a trusted key"):
        check(good_bundle, RoundRecompute(), keys=FixedSigner("rival").ring)
    assert choose_keys(good_bundle, pinned=None, local=SIGNER.ring) == (SIGNER.ring, "publisher")
    assert choose_keys(good_bundle, pinned=None, local=FixedSigner("rival").ring) == (None, "self-signed")
    assert choose_keys({}, pinned=None, local=SIGNER.ring) == (None, "self-signed")
    pinned = FixedSigner("rival").ring
    assert choose_keys(good_bundle, pinned=pinned, local=SIGNER.ring) == (pinned, "pinned")


@pytest.mark.parametrize(("step", "finding", "tamper"), [t[1:] for t in TAMPERS], ids=[t[0] for t in TAMPERS])
def test_what_the_key_holder_signs_anew_is_still_refused(
    good_bundle: Files, step: int, finding: str, tamper: Tamper
) -> None:
    files = dict(good_bundle)
    tamper(files)
    number, detail = _failed_step(resigned(files))
    assert finding in detail
    assert number == step


def test_another_schedule_than_the_seeds_is_refused(good_bundle: Files) -> None:
    class Otherwise(RoundRecompute):
        def schedule(self, manifest: RoundManifest) -> tuple[LogicalRun, ...]:
            return tuple(reversed(manifest.schedule))

    assert _failed_step(good_bundle, Otherwise()) == (8, "the schedule does not follow from the seed")


def test_a_bundle_built_twice_is_the_same_bytes(good_bundle: Files) -> None:
    assert resigned(good_bundle) == good_bundle
    assert list(resigned(good_bundle)) == sorted(good_bundle, key=str.encode)
