"""Real beacons verify; nothing else does: mutations, odd spellings, other rounds, points outside the subgroup."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterator
from random import Random

import pytest
from py_arkworks_bls12381 import GT, G1Point, G2Point

from controller.adapters.bls_arkworks import ArkworksSignatures
from controller.errors import BeaconRejected
from tests.world.beacons import P, Recorded, moved, recorded

BEACONS = recorded()
QUICKNET = [one for one in BEACONS if one.chain == "quicknet"]


def verify(one: Recorded) -> None:
    ArkworksSignatures().check(one.scheme, one.public_key, one.beacon.message, one.beacon.signature)


def refused(one: Recorded) -> bool:
    try:
        verify(one)
    except BeaconRejected:
        return True
    return False


def changed(one: Recorded, **fields: object) -> Recorded:
    """The same with another signature, round, previous_signature or public_key."""
    if "public_key" in fields:
        return dataclasses.replace(one, **fields)  # type: ignore[arg-type]
    return dataclasses.replace(one, beacon=dataclasses.replace(one.beacon, **fields))  # type: ignore[arg-type]


@pytest.mark.parametrize("one", BEACONS, ids=str)
def test_a_real_beacon_verifies(one: Recorded) -> None:
    verify(one)


def flips(one: Recorded) -> Iterator[Recorded]:
    """Every single-bit change of signature, round, public key and previous signature."""
    beacon = one.beacon
    yield from (changed(one, signature=flipped) for flipped in _flips(beacon.signature))
    yield from (changed(one, public_key=flipped) for flipped in _flips(one.public_key))
    for flipped in _flips(beacon.round.to_bytes(8, "big")):
        yield changed(one, round=int.from_bytes(flipped, "big"))
    if beacon.previous_signature is not None:
        yield from (changed(one, previous_signature=flipped) for flipped in _flips(beacon.previous_signature))


def _flips(data: bytes) -> Iterator[bytes]:
    for bit in range(8 * len(data)):
        yield (int.from_bytes(data, "big") ^ 1 << bit).to_bytes(len(data), "big")


def test_beacons_of_five_chains_are_tried() -> None:
    assert len(BEACONS) >= 10
    assert len({one.chain for one in BEACONS}) == 5


def test_some_flipped_bits_of_every_beacon_are_refused() -> None:
    for one in BEACONS:
        for mutant in Random(str(one)).sample(list(flips(one)), 60):
            assert refused(mutant), mutant


@pytest.mark.slow
def test_every_flipped_bit_of_every_beacon_is_refused() -> None:
    mutants = [mutant for one in BEACONS for mutant in flips(one)]
    assert len(mutants) >= 9_000
    assert [str(mutant) for mutant in mutants if not refused(mutant)] == []


def _negatives(one: Recorded) -> Iterator[tuple[str, Recorded]]:
    signature, key, size = one.beacon.signature, one.public_key, len(one.beacon.signature)
    infinity = b"\xc0" + bytes(size - 1)
    key_infinity = b"\xc0" + bytes(len(key) - 1)
    yield "negated signature", changed(one, signature=bytes([signature[0] ^ 0x20]) + signature[1:])
    yield "negated key", changed(one, public_key=bytes([key[0] ^ 0x20]) + key[1:])
    yield "infinity", changed(one, signature=infinity)
    yield "both infinite", changed(changed(one, signature=infinity), public_key=key_infinity)
    yield "infinity, signed", changed(one, signature=b"\xe0" + infinity[1:])
    yield "infinity with a coordinate", changed(one, signature=b"\xc0" + signature[1:])
    yield "infinity with a last bit", changed(one, signature=infinity[:-1] + b"\1")
    yield "generator", changed(one, signature=_generator(size))
    for flag in (0x80, 0x40, 0x20, 0x60, 0xA0, 0xC0, 0xE0):
        yield f"flag bits {flag:02x}", changed(one, signature=bytes([signature[0] ^ flag]) + signature[1:])
    for length in (0, 1, size - 1, size - 48, 2 * size):
        yield f"{length} bytes", changed(one, signature=(signature * 2)[:length])
    yield "one byte more", changed(one, signature=signature + b"\0")
    yield "one byte less of a key", changed(one, public_key=key[:-1])
    yield "one byte more of a key", changed(one, public_key=key + b"\0")
    yield "next round", changed(one, round=one.beacon.round + 1)
    yield "round before", changed(one, round=one.beacon.round - 1)
    previous = one.beacon.previous_signature
    yield "another previous signature", changed(one, previous_signature=hashlib.sha256(previous or b"").digest())
    yield "with or without a previous signature", changed(one, previous_signature=None if previous else signature)
    yield "outside the subgroup", changed(one, signature=moved(signature))
    for rival in BEACONS:
        if rival.beacon != one.beacon and len(rival.beacon.signature) == size:
            yield f"signature of {rival}", changed(one, signature=rival.beacon.signature)
        if rival.public_key != key:
            yield f"key of {rival}", changed(one, public_key=rival.public_key)
    for place in range(0, size, 48):
        for name, shifted in _beyond(signature, place):
            yield name, changed(one, signature=shifted)


def _generator(size: int) -> bytes:
    return (G1Point() if size == 48 else G2Point()).to_compressed_bytes()


def _beyond(signature: bytes, place: int) -> Iterator[tuple[str, bytes]]:
    """The same residue spelled p higher, where it fits beside the three flag bits of the first coordinate."""
    flags = signature[place] & 0xE0 if place == 0 else 0
    number = int.from_bytes(bytes([signature[place] ^ flags]) + signature[place + 1 : place + 48], "big") + P
    if number < 1 << (381 if place == 0 else 384):
        octets = number.to_bytes(48, "big")
        yield (
            f"coordinate at {place} plus p",
            (signature[:place] + bytes([octets[0] | flags]) + octets[1:] + signature[place + 48 :]),
        )


@pytest.mark.parametrize("one", BEACONS, ids=str)
def test_structured_forgeries_are_refused(one: Recorded) -> None:
    tried = dict(_negatives(one))
    assert len(tried) >= 30
    assert [name for name, mutant in tried.items() if not refused(mutant)] == []


def test_a_coordinate_beyond_the_field_was_among_them() -> None:
    beyond = [name for one in BEACONS for name, _ in _negatives(one) if name.startswith("coordinate at")]
    assert {"coordinate at 0 plus p", "coordinate at 48 plus p"} <= set(beyond)


@pytest.mark.parametrize("one", QUICKNET, ids=str)
def test_a_signature_moved_out_of_the_subgroup_passes_the_pairing_and_is_refused_all_the_same(one: Recorded) -> None:
    forged = moved(one.beacon.signature)
    assert hashlib.sha256(forged).digest() != one.beacon.randomness, "a free choice of randomness, if it were accepted"
    message, tag = one.beacon.message, one.scheme.domain_tag
    points = [G1Point.from_compressed_bytes_unchecked(forged), -G1Point.hash_to_curve(message, tag)]
    holds = GT.pairing_check(points, [G2Point(), G2Point.from_compressed_bytes(one.public_key)])
    assert holds, "without the subgroup check this forgery would verify"
    with pytest.raises(BeaconRejected, match="subgroup"):
        verify(changed(one, signature=forged))
