"""Verification of Ed25519 signatures (RFC 8032) in plain integers.

Stricter than the RFC where it leaves a choice: S below the group's order, encodings reduced, and no key of small order,
under which one signature would fit every message. The equation is the one without the cofactor, which compares bytes.
"""

from __future__ import annotations

import hashlib
from typing import Optional, Tuple

P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
ROOT_OF_MINUS_ONE = pow(2, (P - 1) // 4, P)

Point = Tuple[int, int, int, int]  # X, Y, Z, T with x = X/Z, y = Y/Z, xy = T/Z
NEUTRAL: Point = (0, 1, 1, 0)


def verify(key: bytes, signature: bytes, message: bytes) -> bool:
    """True when the holder of the key signed the message. False for every malformed or weak input."""
    if len(key) != 32 or len(signature) != 64:
        return False
    point = decode(key)
    scalar = int.from_bytes(signature[32:], "little")
    if point is None or scalar >= ORDER or has_small_order(point):
        return False
    challenge = int.from_bytes(hashlib.sha512(signature[:32] + key + message).digest(), "little") % ORDER
    x, y, z, t = point
    found = _add(_times(scalar, BASE), _times(challenge, (P - x, y, z, P - t)))
    return encode(found) == signature[:32]


def has_small_order(point: Point) -> bool:
    """True for the eight points whose order divides 8."""
    for _ in range(3):
        point = _add(point, point)
    return point[0] == 0 and point[1] == point[2]


def decode(data: bytes) -> Optional[Point]:
    """The point of 32 bytes; None when they are not the reduced encoding of a point."""
    number = int.from_bytes(data, "little")
    sign, y = number >> 255, number & (2**255 - 1)
    if y >= P:
        return None
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * ROOT_OF_MINUS_ONE % P
    if (x * x - square) % P or (x == 0 and sign):
        return None
    if x & 1 != sign:
        x = P - x
    return x, y, 1, x * y % P


def encode(point: Point) -> bytes:
    """The 32 bytes of a point."""
    x, y, z, _ = point
    inverse = pow(z, P - 2, P)
    x, y = x * inverse % P, y * inverse % P
    return (y | (x & 1) << 255).to_bytes(32, "little")


def _add(first: Point, second: Point) -> Point:
    x1, y1, z1, t1 = first
    x2, y2, z2, t2 = second
    a, b = (y1 - x1) * (y2 - x2) % P, (y1 + x1) * (y2 + x2) % P
    c, d = 2 * t1 * t2 * D % P, 2 * z1 * z2 % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % P, g * h % P, f * g % P, e * h % P


def _times(scalar: int, point: Point) -> Point:
    found = NEUTRAL
    while scalar:
        if scalar & 1:
            found = _add(found, point)
        point = _add(point, point)
        scalar >>= 1
    return found


def _base() -> Point:
    found = decode((4 * pow(5, P - 2, P) % P).to_bytes(32, "little"))
    assert found is not None
    return found


BASE = _base()
