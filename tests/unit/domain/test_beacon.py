"""Chains, rounds and instants, and what counts as an answer of a relay."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from controller.domain.beacon import CHAINS, ChainName, read_beacon
from controller.domain.instant import InstantMs, instant_text
from controller.errors import BeaconRejected
from tests.world.beacons import VECTORS, answer_of, recorded, recorded_beacon

DEFAULT, QUICKNET = CHAINS["default"], CHAINS["quicknet"]
CHAINED, UNCHAINED = recorded_beacon("default", 72785), recorded_beacon("quicknet", 123)


@pytest.mark.parametrize("name", ["default", "quicknet"])
def test_the_pinned_chains_are_the_published_ones(name: ChainName) -> None:
    published = next(chain for chain in VECTORS["chains"] if chain["name"] == name)
    pinned = CHAINS[name]
    assert pinned.hash.hex() == published["chain_hash"]
    assert pinned.public_key.hex() == published["public_key"]
    assert (pinned.period_seconds, pinned.genesis_seconds) == (published["period"], published["genesis_time"])


def test_a_published_round_is_due_at_its_published_time() -> None:
    known = VECTORS["round_6333716"]
    assert instant_text(DEFAULT.due_at(6333716)) == known["time_utc"].replace("Z", ".000Z")
    assert DEFAULT.due_at(1) == 1000 * DEFAULT.genesis_seconds


@pytest.mark.parametrize("chain", CHAINS.values(), ids=str)
@pytest.mark.parametrize("number", [1, 2, 6_687_400])
def test_the_first_round_from_an_instant_is_due_then_or_later_and_the_one_before_is_not(
    chain: Any, number: int
) -> None:
    due = chain.due_at(number)
    assert chain.first_round_from(due) == number
    assert chain.first_round_from(InstantMs(due + 1)) == number + 1
    assert chain.first_round_from(InstantMs(due - 1)) == number


def test_before_genesis_the_first_round_is_the_first() -> None:
    assert DEFAULT.first_round_from(InstantMs(0)) == 1


def test_every_recorded_answer_is_read_and_its_randomness_is_derived() -> None:
    for one in recorded():
        assert one.beacon.randomness == hashlib.sha256(one.beacon.signature).digest()
        if one.chain in CHAINS:
            data = json.dumps(answer_of(one.beacon)).encode()
            chain = next(pinned for pinned in CHAINS.values() if pinned.name == one.chain)
            assert read_beacon(data, chain, one.beacon.round, "relay") == one.beacon


def test_what_nothing_signs_is_not_read() -> None:
    data = json.dumps(answer_of(UNCHAINED, randomness="00" * 32, metadata={"a": [None]})).encode()
    assert read_beacon(data, QUICKNET, 123, "relay") == UNCHAINED
    without = json.dumps(answer_of(UNCHAINED, randomness=None, previous_signature="")).encode()
    assert read_beacon(without, QUICKNET, 123, "relay") == UNCHAINED


SIGNATURE = CHAINED.signature.hex()
PREVIOUS = (CHAINED.previous_signature or b"").hex()
TEXT = json.dumps(answer_of(CHAINED))


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "not readable as JSON"),
        (b"{", "not readable as JSON"),
        (b"null", "not a JSON object"),
        (b"[]", "not a JSON object"),
        (b'"text"', "not a JSON object"),
        (b"\xef\xbb\xbf" + TEXT.encode(), "not readable as JSON"),
        (b"\xff" + TEXT.encode(), "not readable as JSON"),
        (TEXT.encode("utf-16"), "not readable as JSON"),
        (TEXT.encode() + b"{}", "not readable as JSON"),
        (b'{"round":72785,' + TEXT.encode()[1:], "round: the key is given twice"),
        (b'{"signature":"00",' + TEXT.encode()[1:], "signature: the key is given twice"),
        (b'{"x":' * 100 + b"1" + b"}" * 100, "nested deeper"),
        (b"[" * 100_000, "not readable as JSON"),
        (b'{"round":' + b"9" * 5000 + b"}", "digits"),
        (TEXT.replace("72785", "72785.0").encode(), "is a float"),
        (TEXT.replace("72785", "7.2785e4").encode(), "is a float"),
        (TEXT.replace("72785", "NaN").encode(), "not a number"),
        (TEXT.replace("72785", "072785").encode(), "not readable as JSON"),
        (TEXT.replace("72785", '"72785"').encode(), "not 72785"),
        (TEXT.replace("72785", "72784").encode(), "round is '72784', not 72785"),
        (TEXT.replace("72785", "-72785").encode(), "not 72785"),
        (TEXT.replace("72785", "true").encode(), "not 72785"),
        (TEXT.replace("72785", "null").encode(), "not 72785"),
        (json.dumps(answer_of(CHAINED, round=None)).encode(), "round is 'None'"),
        *(
            (json.dumps(answer_of(CHAINED, **{field: value})).encode(), f"{field}: not 96 bytes in lower-case hex")
            for field, hexed in (("signature", SIGNATURE), ("previous_signature", PREVIOUS))
            for value in (
                None, "", hexed.upper(), hexed[:-1], hexed[:-2], hexed + "00", "0x" + hexed[2:], hexed[:-1] + "g",
                hexed[:-1] + "٣", " " + hexed[1:], hexed + "\n", [hexed], {"hex": hexed}, 7, True,
            )
        ),
    ],
)  # fmt: skip
def test_a_malformed_answer_is_refused_by_its_field(data: bytes, why: str) -> None:
    with pytest.raises(BeaconRejected, match=r"^relay: ") as refused:
        read_beacon(data, DEFAULT, 72785, "relay")
    assert why in str(refused.value)


def test_an_unchained_answer_has_no_previous_signature() -> None:
    data = json.dumps(answer_of(UNCHAINED, previous_signature=PREVIOUS)).encode()
    with pytest.raises(BeaconRejected, match="this chain has none"):
        read_beacon(data, QUICKNET, 123, "relay")


def test_the_first_round_follows_from_the_group_hash_and_nothing_else() -> None:
    first = recorded_beacon("default", 1)
    assert read_beacon(json.dumps(answer_of(first)).encode(), DEFAULT, 1, "relay") == first
    for previous in ("00" * 32, PREVIOUS, ""):
        with pytest.raises(BeaconRejected, match="previous_signature"):
            read_beacon(json.dumps(answer_of(first, previous_signature=previous)).encode(), DEFAULT, 1, "relay")
