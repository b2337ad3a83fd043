"""Real beacons of drand from public files, a network whose key is known, and signatures moved out of the subgroup."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from py_arkworks_bls12381 import G1Point, G2Point, Scalar

from controller.domain.beacon import CHAINS, Beacon, Chain, Scheme

VECTORS: Final[dict[str, Any]] = json.loads((Path(__file__).parents[1] / "assets" / "drand.json").read_bytes())
P: Final = 0x1A0111EA397FE69A4B1BA7B6434BACD764774B84F38512BF6730D2A0F6B0F6241EABFFFEB153FFFFB9FEFFFFFFFFAAAB
GROUP_ORDER: Final = 0x73EDA753299D7D483339D80809A1D80553BDA402FFFE5BFEFFFFFFFF00000001
_G1_TAG: Final = b"BLS_SIG_BLS12381G1_XMD:SHA-256_SSWU_RO_NUL_"
_G2_TAG: Final = b"BLS_SIG_BLS12381G2_XMD:SHA-256_SSWU_RO_NUL_"
_SCHEMES: Final = {
    "pedersen-bls-chained": Scheme(True, "G2", _G2_TAG),
    "pedersen-bls-unchained": Scheme(False, "G2", _G2_TAG),
    "bls-unchained-on-g1": Scheme(False, "G1", _G2_TAG),  # the first scheme in G1 kept the tag of G2 by mistake
    "bls-unchained-g1-rfc9380": Scheme(False, "G1", _G1_TAG),
}
Point = TypeVar("Point", G1Point, G2Point)


@dataclass(frozen=True)
class Recorded:
    """One beacon with what is needed to verify it."""

    chain: str
    scheme: Scheme
    public_key: bytes
    beacon: Beacon

    def __str__(self) -> str:
        return f"{self.chain}-{self.beacon.round}"


def recorded() -> list[Recorded]:
    """All beacons of the vectors."""
    chains = {chain["name"]: chain for chain in VECTORS["chains"]}
    found = []
    for item in VECTORS["beacons"]:
        chain, previous = chains[item["chain"]], item["previous_signature"]
        beacon = Beacon(
            item["round"], bytes.fromhex(item["signature"]), None if previous is None else bytes.fromhex(previous)
        )
        scheme = _SCHEMES[chain["scheme"]]
        found.append(Recorded(item["chain"], scheme, bytes.fromhex(chain["public_key"]), beacon))
    return found


def recorded_beacon(chain: str, number: int) -> Beacon:
    return next(one.beacon for one in recorded() if (one.chain, one.beacon.round) == (chain, number))


def answer_of(beacon: Beacon, **fields: object) -> dict[str, object]:
    """What a relay says of the beacon; `fields` replace its own, and None takes one away."""
    said: dict[str, object] = {
        "round": beacon.round,
        "randomness": beacon.randomness.hex(),
        "signature": beacon.signature.hex(),
    }
    if beacon.previous_signature is not None:
        said["previous_signature"] = beacon.previous_signature.hex()
    return {name: value for name, value in (said | fields).items() if value is not None}


class OwnNetwork:
    """A chained network whose secret the test knows, so that it can sign what no real network would."""

    def __init__(self, secret: int = 0x5EC4E7) -> None:
        self._secret = Scalar(secret)
        public_key = (G1Point() * self._secret).to_compressed_bytes()
        self.chain: Chain = dataclasses.replace(CHAINS["default"], public_key=public_key)

    def beacon(self, number: int, previous_signature: bytes) -> Beacon:
        """The valid beacon of that round after that signature."""
        unsigned = Beacon(number, b"", previous_signature)
        point = G2Point.hash_to_curve(unsigned.message, _G2_TAG) * self._secret
        return Beacon(number, point.to_compressed_bytes(), previous_signature)


def outside_subgroup(group: type[Point], size: int) -> Point:
    """A point of the curve whose order divides the cofactor: no multiple of the generator, and not infinity."""
    for x in range(1, 200):
        try:
            on_curve = group.from_compressed_bytes_unchecked((0x80 << 8 * (size - 1) | x).to_bytes(size, "big"))
        except ValueError:
            continue
        # By additions only: the library's multiplication may take short cuts that hold in the subgroup alone.
        total, term = group.identity(), on_curve
        for bit in range(GROUP_ORDER.bit_length()):
            if GROUP_ORDER >> bit & 1:
                total = total + term
            term = term + term
        if total != group.identity():
            return total
    raise AssertionError("no point found")


def moved(signature: bytes) -> bytes:
    """The signature plus such a point: it satisfies the pairing equation and has another SHA-256."""
    if len(signature) == 48:
        point = G1Point.from_compressed_bytes(signature) + outside_subgroup(G1Point, 48)
        return point.to_compressed_bytes()
    point2 = G2Point.from_compressed_bytes(signature) + outside_subgroup(G2Point, 96)
    return point2.to_compressed_bytes()
