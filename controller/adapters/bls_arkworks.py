"""The BeaconSignatures port over py_arkworks_bls12381, the binding of arkworks that Ethereum's specifications use."""

from __future__ import annotations

from typing import TypeVar

from py_arkworks_bls12381 import GT, G1Point, G2Point

from controller.domain.beacon import Scheme
from controller.errors import BeaconRejected

P = TypeVar("P", G1Point, G2Point)


class ArkworksSignatures:
    """BLS signatures on BLS12-381."""

    def check(self, scheme: Scheme, public_key: bytes, message: bytes, signature: bytes) -> None:
        if scheme.signature_group == "G1":
            key, signed = _point(G2Point, public_key, "public key"), _point(G1Point, signature, "signature")
            digest = G1Point.hash_to_curve(message, scheme.domain_tag)
            holds = GT.pairing_check([signed, -digest], [G2Point(), key])
        else:
            key1, signed2 = _point(G1Point, public_key, "public key"), _point(G2Point, signature, "signature")
            digest2 = G2Point.hash_to_curve(message, scheme.domain_tag)
            holds = GT.pairing_check([G1Point(), -key1], [signed2, digest2])
        if not holds:
            raise BeaconRejected("signature: not the network's for this round")


def _point(group: type[P], data: bytes, name: str) -> P:
    """A point other than infinity of the prime-order subgroup, from its one compressed spelling."""
    try:
        point = group.from_compressed_bytes(data)
    except ValueError as error:
        raise BeaconRejected(f"{name}: not a point of the curve's subgroup: {error}") from None
    # `from_compressed_bytes` looks at the subgroup too. A signature moved by a point of small order would satisfy the
    # pairing and give another randomness, so the check also stands here, whatever the library's next version does.
    if point == group.identity() or not point.is_in_subgroup():
        raise BeaconRejected(f"{name}: infinity, or outside the curve's subgroup")
    if point.to_compressed_bytes() != data:
        raise BeaconRejected(f"{name}: not the canonical spelling of its point")
    return point
