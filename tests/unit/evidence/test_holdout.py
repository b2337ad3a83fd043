"""The draw is fair and computable by others; the check refuses every change, by the step that sees it."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

from controller.adapters.bls_arkworks import ArkworksSignatures
from controller.conductor.recompute import RoundRecompute
from controller.domain.beacon import CHAINS, Beacon
from controller.domain.ids import sha256_digest
from controller.domain.instant import InstantMs
from controller.errors import BeaconRejected, InvalidInput
from controller.evidence.canonical import canonical, dumps
from controller.evidence.envelope import sign
from controller.evidence.holdout import (
    LEAD_MS,
    SELECTION_TYPE,
    HoldoutRequest,
    candidates,
    check_sites,
    chosen,
    relay_site,
    request_of,
)
from controller.evidence.holdout_check import STEPS, HoldoutExhibits, check_selection
from controller.evidence.holdout_draw import draw, residue
from controller.freeze import load_frozen
from tests.world.beacons import answer_of, moved, recorded_beacon
from tests.world.holdouts import HOLDOUTS, HoldoutRound, holdout_round
from tests.world.signer import FixedSigner

ROUND = 3311596
CHAIN = CHAINS["default"]
BEACON = recorded_beacon("default", ROUND)
RELAYS = ("https://api.drand.sh", "https://drand.cloudflare.com", "https://api.drand.secureweb3.com:6875")


def second_draw(chain_hash: bytes, number: int, signature: bytes, manifest: bytes, n: int) -> int:
    """The rule of docs/holdout.md once more, by another way: one endless stream of bits, cut into 64."""
    preimage = b"holdout-select/v1" + bytes(1) + chain_hash + bytes.fromhex(f"{number:016x}")
    preimage += hashlib.sha256(signature).digest() + manifest + bytes.fromhex(f"{n:016x}")
    start = hashlib.sha256(preimage).hexdigest()
    stream = "".join(hashlib.sha256(bytes.fromhex(f"{start}{i:016x}")).hexdigest() for i in range(40))
    whole_runs = 2**64 // n
    for place in range(0, len(stream), 16):
        quotient, remainder = divmod(int(stream[place : place + 16], 16), n)
        if quotient < whole_runs:
            return remainder
    raise AssertionError("no word was fit")


def test_a_second_implementation_draws_the_same_index() -> None:
    chance = Random(5)
    indices = set()
    for _ in range(1000):
        number, n = chance.randrange(1, 2**40), chance.choice([1, 2, 3, 4, 7, 100, 2**32 + 1, 2**63 + 1, 2**64 - 1])
        chain_hash, signature, manifest = chance.randbytes(32), chance.randbytes(96), chance.randbytes(32)
        found = draw(chain_hash, Beacon(number, signature, None), f"sha256:{manifest.hex()}", n)
        assert found == second_draw(chain_hash, number, signature, manifest, n)
        assert 0 <= found < n
        indices.add(found)
    assert len(indices) > 300


@pytest.mark.parametrize("n", range(1, 257))
def test_every_index_has_equally_many_words(n: int) -> None:
    counts = Counter(residue(word, n, bits=8) for word in range(256))
    skipped = counts.pop(None, 0)
    assert set(counts) == set(range(n))
    assert set(counts.values()) == {256 // n}
    assert skipped == 256 % n


def test_words_that_would_favour_small_indices_are_skipped() -> None:
    assert residue(2**64 - 1, 3) is None, "2^64 is one more than a multiple of 3"
    assert residue(2**64 - 2, 3) == 2
    assert residue(2**64 - 1, 4) == 3, "a power of two leaves no rest"


@pytest.fixture(scope="module")
def frozen(tmp_path_factory: pytest.TempPathFactory) -> HoldoutRound:
    return holdout_round(tmp_path_factory.mktemp("rounds") / "matrix", FixedSigner())


def test_the_candidates_are_the_holdouts_in_byte_order_of_their_digests(frozen: HoldoutRound) -> None:
    tasks = load_frozen(frozen.directory).manifest.tasks
    named = candidates(tasks)
    assert {candidate.task for candidate in named} == set(HOLDOUTS)
    assert [c.digest for c in named] == sorted(sha256_digest(canonical(t)) for t in tasks if t.visibility == "holdout")
    assert candidates(tuple(reversed(tasks))) == named


def test_the_round_is_the_first_a_day_after_the_commitment(frozen: HoldoutRound) -> None:
    manifest = load_frozen(frozen.directory).manifest
    for at in (1_796_000_000_000, 1_796_000_009_999, 1_796_000_010_000, 1_796_000_010_001):
        request = request_of(manifest, frozen.digest, CHAIN, at=InstantMs(at))
        wait = CHAIN.due_at(request.beacon_round) - at
        assert LEAD_MS <= wait < LEAD_MS + 30_000
        assert request.beacon_round == math.ceil((at + LEAD_MS) / 1000 / 30 - 1595431050 / 30) + 1


def test_a_manifest_without_holdouts_has_nothing_to_select(tmp_path: Path) -> None:
    plain = holdout_round(tmp_path / "plain", FixedSigner(), ())
    with pytest.raises(InvalidInput, match="no task of the manifest is a holdout"):
        plain.request("default", ROUND)


def test_beacons_reach_every_candidate(frozen: HoldoutRound) -> None:
    request = frozen.request("default", ROUND)
    found = Counter(chosen(request, CHAIN, Beacon(ROUND, bytes([i]), None)).task for i in range(200))
    assert set(found) == set(HOLDOUTS)
    assert min(found.values()) > 25


@pytest.mark.parametrize(
    ("relay", "site"),
    [
        ("https://api.drand.sh", "drand.sh"),
        ("https://drand.cloudflare.com", "cloudflare.com"),
        ("https://api.drand.secureweb3.com:6875", "secureweb3.com"),
        ("https://a.b.co.uk", "co.uk"),
        ("http://127.0.0.1:8080", "127.0.0.1"),
        ("https://127.0.0.2:8080", "127.0.0.2"),
    ],
)
def test_the_site_of_a_relay(relay: str, site: str) -> None:
    assert relay_site(relay) == site


@pytest.mark.parametrize(
    "relay",
    [
        "", "api.drand.sh", "http://api.drand.sh", "ftp://api.drand.sh", "file:///etc/passwd", "https://localhost",
        "https://API.drand.sh", "https://api.drand.sh.", "https://api.drand.sh/", "https://api.drand.sh/x",
        "https://api.drand.sh?x", "https://api.drand.sh#x", "https://user@api.drand.sh", "https://api.drand.sh:",
        "https://api.drand.sh:0", "https://api.drand.sh:99999999", "https://api.drand.sh\n", " https://api.drand.sh",
        "https://10.0.0.1", "https://[::1]", "https://2130706433", "http://127.0.0.1.evil.org", "https://dränd.sh.org",
        "https://api..sh",
    ],
)  # fmt: skip
def test_what_is_no_relay_is_refused(relay: str) -> None:
    with pytest.raises(InvalidInput, match="relay "):
        relay_site(relay)


def test_relays_of_one_domain_are_one_voice() -> None:
    assert len(check_sites(RELAYS)) == 3
    with pytest.raises(InvalidInput, match=r"two of them lie in drand\.sh"):
        check_sites(("https://api.drand.sh", "https://api2.drand.sh", "https://drand.cloudflare.com"))
    with pytest.raises(InvalidInput, match="2 named"):
        check_sites(RELAYS[:2])


def answers(beacon: Beacon = BEACON, **fields: object) -> list[dict[str, Any]]:
    due = CHAIN.due_at(beacon.round)
    body = json.dumps(answer_of(beacon, **fields))
    return [{"relay": relay, "received_at": due + place, "body": body} for place, relay in enumerate(RELAYS)]


def record(frozen: HoldoutRound, bound: HoldoutRequest | None = None, **fields: Any) -> bytes:
    """The signed record of an honest selection; `fields` replace its own."""
    request = bound or frozen.request("default", ROUND)
    made = {
        "schema_version": "fairtrial.holdout-selection/1",
        "request": frozen.signed(request).decode(),
        "answers": answers(),
        "task": chosen(request, CHAIN, BEACON).task,
    }
    return sign(SELECTION_TYPE, dumps(made | fields), frozen.signer)


def exhibits(frozen: HoldoutRound, data: bytes, **fields: Any) -> HoldoutExhibits:
    return dataclasses.replace(
        HoldoutExhibits(
            record=data,
            manifest=frozen.manifest,
            keys=FixedSigner().ring,
            read_manifest=RoundRecompute().manifest,
            signatures=ArkworksSignatures(),
        ),
        **fields,
    )


def test_an_honest_selection_passes_every_step(frozen: HoldoutRound) -> None:
    steps = check_selection(exhibits(frozen, record(frozen)))
    assert [step.name for step in steps] == [name for name, _ in STEPS]
    assert all(step.passed for step in steps)
    assert "drand.sh, cloudflare.com, secureweb3.com" in steps[4].detail
    assert hashlib.sha256(BEACON.signature).hexdigest() in steps[5].detail


def refused(frozen: HoldoutRound, data: bytes, **fields: Any) -> str:
    with pytest.raises(BeaconRejected) as fault:
        check_selection(exhibits(frozen, data, **fields))
    return str(fault.value)


def test_another_key_is_not_trusted(frozen: HoldoutRound) -> None:
    assert refused(frozen, record(frozen), keys=FixedSigner("rival").ring).startswith("step 1 (record)")
    rival = dataclasses.replace(frozen, signer=FixedSigner("rival"))
    theirs = rival.signed(frozen.request("default", ROUND)).decode()
    assert refused(frozen, record(frozen, request=theirs)).startswith("step 2 (request)")


def test_a_record_of_the_wrong_type_is_refused(frozen: HoldoutRound) -> None:
    assert "payload type" in refused(frozen, frozen.signed(frozen.request("default", ROUND)))


def test_every_flipped_byte_of_the_record_is_refused(frozen: HoldoutRound) -> None:
    data = record(frozen)
    for place in range(0, len(data), 7):
        mutant = data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]
        assert refused(frozen, mutant).startswith("step 1")


REQUESTS: dict[str, tuple[dict[str, Any], str]] = {
    "another manifest": ({"manifest_digest": "sha256:" + "0" * 64}, "step 3 (manifest)"),
    "another round id": ({"round_id": "other"}, "step 3 (manifest)"),
    "a holdout left out": ({"candidates": lambda found: found[1:]}, "step 3 (manifest)"),
    "a holdout twice": ({"candidates": lambda found: [*found, found[0]]}, "step 3 (manifest)"),
    "another order": ({"candidates": lambda found: found[::-1]}, "step 3 (manifest)"),
    "another name": ({"candidates": lambda found: [found[0] | {"task": "x"}, *found[1:]]}, "step 3 (manifest)"),
    "no candidate": ({"candidates": []}, "step 2 (request)"),
    "the next round": ({"beacon_round": ROUND + 1}, "step 4 (round)"),
    "the round before": ({"beacon_round": ROUND - 1}, "step 4 (round)"),
    "committed later": ({"committed_at": lambda at: at + 1}, "step 4 (round)"),
    "committed much earlier": ({"committed_at": lambda at: at - 30_000}, "step 4 (round)"),
    "no instant": ({"committed_at": 2**53 - 1}, "step 2 (request)"),
    "the other chain": ({"chain": "quicknet"}, "step 4 (round)"),
    "another hash": ({"chain_hash": "0" * 64}, "step 4 (round)"),
    "an unknown chain": ({"chain": "fastnet"}, "step 2 (request)"),
    "another rule": ({"rule": "holdout-select/v0"}, "step 2 (request)"),
    "another fallback": ({"fallback": "whatever suits us"}, "step 4 (round)"),
    "another field": ({"more": 1}, "step 2 (request)"),
    "another version": ({"schema_version": "fairtrial.holdout-request/2"}, "step 2 (request)"),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_that_leaves_a_choice_is_refused_by_its_step(name: str, frozen: HoldoutRound) -> None:
    changes, step = REQUESTS[name]
    honest = frozen.request("default", ROUND).model_dump(mode="json")
    payload = honest | {k: v(honest[k]) if callable(v) else v for k, v in changes.items()}
    data = sign("application/vnd.fairtrial.holdout-request+json", dumps(payload), frozen.signer).decode()
    assert refused(frozen, record(frozen, request=data)).startswith(step)


PREVIOUS = recorded_beacon("default", 72785)
SELECTIONS: dict[str, tuple[dict[str, Any], str]] = {
    "another task": ({"task": "first"}, "step 7 (selection)"),
    "two answers": ({"answers": answers()[:2]}, "step 1 (record)"),
    "four answers": ({"answers": answers() * 2}, "step 1 (record)"),
    "one relay thrice": ({"answers": [answers()[0]] * 3}, "step 5 (relays)"),
    "no relay": ({"answers": [one | {"relay": "me"} for one in answers()]}, "step 5 (relays)"),
    "too early": ({"answers": [one | {"received_at": one["received_at"] - 9} for one in answers()]}, "step 5 (relays)"),
    "another round": ({"answers": answers(PREVIOUS)}, "step 5 (relays)"),
    "a renumbered round": ({"answers": answers(dataclasses.replace(PREVIOUS, round=ROUND))}, "step 6 (beacon)"),
    "one differs": ({"answers": [*answers()[:2], answers(previous_signature="0" * 192)[2]]}, "step 5 (relays)"),
    "all forged": ({"answers": answers(previous_signature="0" * 192)}, "step 6 (beacon)"),
    "not JSON": ({"answers": [one | {"body": "{"} for one in answers()]}, "step 5 (relays)"),
    "other chain": (
        {"answers": answers(dataclasses.replace(recorded_beacon("quicknet", 123), round=ROUND))},
        "step 5 (relays)",
    ),
    "outside the subgroup": ({"answers": answers(signature=moved(BEACON.signature).hex())}, "step 6 (beacon)"),
    "too long": ({"answers": [one | {"body": " " * 4097} for one in answers()]}, "step 1 (record)"),
    "no envelope inside": ({"request": "{}"}, "step 2 (request)"),
}


@pytest.mark.parametrize("name", SELECTIONS)
def test_a_selection_that_does_not_follow_is_refused_by_its_step(name: str, frozen: HoldoutRound) -> None:
    changes, step = SELECTIONS[name]
    assert refused(frozen, record(frozen, **changes)).startswith(step)


def test_every_other_candidate_is_refused(frozen: HoldoutRound) -> None:
    honest = chosen(frozen.request("default", ROUND), CHAIN, BEACON).task
    for task in set(HOLDOUTS) - {honest}:
        assert f"the beacon selects {honest}" in refused(frozen, record(frozen, task=task))


@pytest.mark.parametrize("manifest", [b"", b"{}", b"null", b'{"tasks":[]}', b"\xff"], ids=str)
def test_a_manifest_that_is_none_is_refused(manifest: bytes, frozen: HoldoutRound) -> None:
    assert refused(frozen, record(frozen), manifest=manifest).startswith("step 3 (manifest)")
    bound = frozen.request("default", ROUND, manifest_digest=sha256_digest(manifest))
    assert refused(frozen, record(frozen, bound), manifest=manifest).startswith("step 3 (manifest)")


def amendment(frozen: HoldoutRound, data: bytes, **fields: Any) -> dict[str, Any]:
    """The exhibits' manifest, when a later one names the selection."""
    found = exhibits(frozen, data)
    selection = {
        "scenario": found.selection.task,
        "record_digest": sha256_digest(canonical(found.selection)),
        "request_digest": sha256_digest(canonical(found.request)),
    }
    named = {
        "amends": {"round_id": "small", "manifest_digest": frozen.digest, "why": "the holdout was drawn"},
        "selection": selection,
    }
    later = (
        json.loads(frozen.manifest)
        | {"round_id": "later"}
        | {name: named[name] | fields.get(name, {}) for name in named}
    )
    return {"manifest": dumps(later)}


def test_a_manifest_that_amends_the_committed_one_by_this_selection_will_do(frozen: HoldoutRound) -> None:
    data = record(frozen)
    steps = check_selection(exhibits(frozen, data, **amendment(frozen, data)))
    assert "of an amendment that names this selection" in steps[2].detail


def test_an_amendment_that_names_another_holdout_is_refused(frozen: HoldoutRound) -> None:
    data = record(frozen)
    other = next(task for task in HOLDOUTS if task != exhibits(frozen, data).selection.task)
    said = refused(frozen, data, **amendment(frozen, data, selection={"scenario": other}))
    assert "its selection is not this record's" in said


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"amends": {"manifest_digest": sha256_digest(b"other")}}, "neither is that nor amends it"),
        ({"amends": {"round_id": "other"}}, "the manifest is of round other"),
        ({"selection": {"scenario": "first"}}, "'first' is not a frozen holdout"),
        ({"selection": {"record_digest": sha256_digest(b"other")}}, "its selection is not this record's"),
        ({"selection": {"request_digest": sha256_digest(b"other")}}, "its selection is not this record's"),
    ],
)
def test_an_amendment_that_names_something_else_is_refused(
    fields: dict[str, Any], why: str, frozen: HoldoutRound
) -> None:
    data = record(frozen)
    said = refused(frozen, data, **amendment(frozen, data, **fields))
    assert said.startswith("step 3 (manifest)")
    assert why in said


def test_a_commitment_older_than_its_manifest_is_refused(frozen: HoldoutRound) -> None:
    manifest = dumps(json.loads(frozen.manifest) | {"frozen_at": frozen.request("default", ROUND).committed_at + 1})
    bound = dataclasses.replace(frozen, manifest=manifest).request("default", ROUND)
    assert "older than the manifest" in refused(frozen, record(frozen, bound), manifest=manifest)


def test_the_randomness_that_a_relay_claims_is_not_read(frozen: HoldoutRound) -> None:
    steps = check_selection(exhibits(frozen, record(frozen, answers=answers(randomness="0" * 64))))
    assert "0" * 64 not in steps[5].detail
