"""Beacons of drand: two pinned chains, which round comes when, and what a relay's answer must look like.

A beacon is a BLS signature over the number of its round, so nobody can choose it. `randomness` in an answer is not
signed and is never read: it is SHA-256 of the signature.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from controller.domain.instant import InstantMs
from controller.domain.json_files import read_json
from controller.errors import BeaconRejected, InvalidInput

ChainName = Literal["default", "quicknet"]
SignatureGroup = Literal["G1", "G2"]

_G1_BYTES: Final = 48
_G2_BYTES: Final = 96


@dataclass(frozen=True, slots=True)
class Scheme:
    """How a chain signs. The public key lies in the other group."""

    is_chained: bool  # the message covers the signature of the round before
    signature_group: SignatureGroup
    domain_tag: bytes  # of the hash to the curve (RFC 9380)

    @property
    def signature_bytes(self) -> int:
        return _G1_BYTES if self.signature_group == "G1" else _G2_BYTES


@dataclass(frozen=True, slots=True)
class Beacon:
    """One answer as numbers and bytes. What relays are compared by, and nothing else."""

    round: int
    signature: bytes
    previous_signature: bytes | None  # of a chained scheme only

    @property
    def message(self) -> bytes:
        """What the network signed: 32 bytes."""
        return hashlib.sha256((self.previous_signature or b"") + self.round.to_bytes(8, "big")).digest()

    @property
    def randomness(self) -> bytes:
        """Derived, since nothing signs the field of that name: 32 bytes."""
        return hashlib.sha256(self.signature).digest()


@dataclass(frozen=True, slots=True)
class Chain:
    """The parameters of a drand network. Its hash is computed from them and never stored."""

    name: ChainName
    scheme: Scheme
    public_key: bytes
    period_seconds: int
    genesis_seconds: int  # since the epoch: when round 1 is due
    group_hash: bytes
    beacon_id: str

    @property
    def hash(self) -> bytes:
        """What relays name the chain by: 32 bytes."""
        data = self.period_seconds.to_bytes(4, "big") + self.genesis_seconds.to_bytes(8, "big")
        data += self.public_key + self.group_hash
        # The first network had no id when its hash was made.
        return hashlib.sha256(data + (b"" if self.beacon_id == "default" else self.beacon_id.encode())).digest()

    def due_at(self, number: int) -> InstantMs:
        """When that round is emitted; rounds count from 1."""
        return InstantMs(1000 * (self.genesis_seconds + (number - 1) * self.period_seconds))

    def first_round_from(self, at: InstantMs) -> int:
        """The first round that is due at that instant or later."""
        late_ms = at - 1000 * self.genesis_seconds
        return max(0, -(-late_ms // (1000 * self.period_seconds))) + 1


CHAINS: Final[Mapping[ChainName, Chain]] = {
    chain.name: chain
    for chain in (
        Chain(
            name="default",
            scheme=Scheme(True, "G2", b"BLS_SIG_BLS12381G2_XMD:SHA-256_SSWU_RO_NUL_"),
            public_key=bytes.fromhex(
                "868f005eb8e6e4ca0a47c8a77ceaa5309a47978a7c71bc5cce96366b5d7a569937c529eeda66c7293784a9402801af31"
            ),
            period_seconds=30,
            genesis_seconds=1_595_431_050,
            group_hash=bytes.fromhex("176f93498eac9ca337150b46d21dd58673ea4e3581185f869672e59fa4cb390a"),
            beacon_id="default",
        ),
        Chain(
            name="quicknet",
            scheme=Scheme(False, "G1", b"BLS_SIG_BLS12381G1_XMD:SHA-256_SSWU_RO_NUL_"),
            public_key=bytes.fromhex(
                "83cf0f2896adee7eb8b5f01fcad3912212c437e0073e911fb90022d3e760183c8c4b450b6a0a6c3ac6a5776a2d106451"
                "0d1fec758c921cc22b0e17e63aaf4bcb5ed66304de9cf809bd274ca73bab4af5a6e9c76a4bc09e76eae8991ef5ece45a"
            ),
            period_seconds=3,
            genesis_seconds=1_692_803_367,
            group_hash=bytes.fromhex("f477d5c89f21a17c863a7f937c6a6d15859414d2be09cd448d4279af331c5d3e"),
            beacon_id="quicknet",
        ),
    )
}


def read_beacon(data: bytes, chain: Chain, number: int, where: str) -> Beacon:
    """The beacon in a relay's answer (`GET /<chain hash>/public/<round>`); its signature is not yet checked.

    Fields that are unknown, and `randomness`, are not read: nothing signs them. Raises BeaconRejected naming the field.
    """
    try:
        value = read_json(data, where)
    except InvalidInput as error:
        raise BeaconRejected(str(error)) from None
    if not isinstance(value, dict):
        raise BeaconRejected(f"{where}: not a JSON object")
    found = value.get("round")
    if type(found) is not int or found != number:
        raise BeaconRejected(f"{where}: round is {str(found)[:40]!r}, not {number}")
    signature = _octets(value, "signature", chain.scheme.signature_bytes, where)
    if not chain.scheme.is_chained:
        if value.get("previous_signature"):
            raise BeaconRejected(f"{where}: previous_signature: this chain has none")
        return Beacon(number, signature, None)
    if number > 1:
        return Beacon(number, signature, _octets(value, "previous_signature", chain.scheme.signature_bytes, where))
    previous = _octets(value, "previous_signature", len(chain.group_hash), where)
    if previous != chain.group_hash:
        raise BeaconRejected(f"{where}: previous_signature: the first round follows from the chain's group hash")
    return Beacon(number, signature, previous)


def _octets(value: Mapping[str, Any], field: str, count: int, where: str) -> bytes:
    text = value.get(field)
    if not isinstance(text, str) or re.fullmatch(f"[0-9a-f]{{{2 * count}}}", text) is None:
        raise BeaconRejected(f"{where}: {field}: not {count} bytes in lower-case hex")
    return bytes.fromhex(text)
