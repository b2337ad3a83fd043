"""Canonical JSON, typed reading, amounts, trees and signed notes: one spelling of everything, and all else refused."""

from __future__ import annotations

import base64
import json
import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, Literal, Optional

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.domain.money import usd_to_text
from controller.errors import NotCanonical
from controller.evidence import canonical as full
from controller.evidence import merkle as full_merkle
from controller.evidence.envelope import INDEX_TYPE, sign
from controller.evidence.note import Checkpoint, sign_checkpoint
from controller.offline.canonical import dumps, loads, loads_lines
from controller.offline.merkle import leaf_hash, root
from controller.offline.money import total, usd_text
from controller.offline.refusal import Refused
from controller.offline.shapes import Between, Digest, Partial, Usd, read
from controller.offline.signatures import checkpoint_of, payload_of, read_keys
from tests.unit.offline.test_agreement import ring
from tests.world.signer import FixedSigner

TEXTS = st.text(st.characters(blacklist_categories=["Cs"]), max_size=4)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
SIGNER = FixedSigner()


@given(JSON)
def test_canonical_bytes_are_those_of_the_other_implementation(value: Any) -> None:
    try:
        expected = full.dumps(value)
    except NotCanonical:
        with pytest.raises(Refused):
            dumps(value)
        return
    assert dumps(value) == expected
    assert loads(expected, "x") == value


@pytest.mark.parametrize(
    "data",
    [
        b"", b" {}", b"{} ", b'{"a":1,"a":1}', b'{"b":1,"a":1}', b"1.0", b"1e3", b"NaN", b"Infinity", b"-0",
        b"9007199254740992", b"1" * 5_000, b'"\\u0041"', b'"\xff"', b'"\\ud800"', b"[1, 2]", b"{}{}", b"\xef\xbb\xbf{}",
        b"[" * 100_000, b"[" * 70 + b"1" + b"]" * 70, b'{"\\u00e9":1}', b"tru", b"'a'", b"01", b'"\t"',
    ],
)  # fmt: skip
def test_every_other_spelling_is_refused(data: bytes) -> None:
    with pytest.raises(Refused):
        loads(data, "x")
    with pytest.raises(NotCanonical):
        full.loads(data, "x")


def test_keys_are_ordered_by_their_utf_16_units() -> None:
    """U+10000 is written with a surrogate of D800, so it comes before U+FFFD."""
    assert dumps({"\ufffd": 1, "\U00010000": 2}) == '{"\U00010000":2,"\ufffd":1}'.encode()


@pytest.mark.parametrize("data", [b"{}", b"{}\n\n", b"\n", b"{}\r\n"])
def test_lines_end_with_one_newline_each(data: bytes) -> None:
    with pytest.raises(Refused):
        loads_lines(data, "x")


@dataclass(frozen=True)
class Sample:
    name: Annotated[str, re.compile("[a-z]+")]
    count: Annotated[int, Between(1, 3)]
    kind: Literal["a", "b"]
    pair: tuple[int, int]
    usd: Optional[Usd] = None  # noqa: UP045  (as Python 3.9 spells it)


@dataclass(frozen=True)
class Open(Partial):
    digest: Digest


GOOD = {"name": "abc", "count": 2, "kind": "a", "pair": [1, 2], "usd": "0.5"}


def test_a_record_is_read_as_it_is() -> None:
    assert read(Sample, GOOD, "x") == Sample("abc", 2, "a", (1, 2), "0.5")
    assert read(Sample, {key: GOOD[key] for key in ("name", "count", "kind", "pair")}, "x").usd is None
    assert read(Open, {"digest": "sha256:" + "0" * 64, "more": 1}, "x").digest.endswith("0")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", "Abc"), ("name", "abc\n"), ("name", 1), ("name", None), ("count", 0), ("count", 4), ("count", True),
        ("count", "2"), ("kind", "c"), ("kind", ["a"]), ("kind", {}), ("pair", [1]), ("pair", [1, 2, 3]),
        ("pair", [1, True]), ("pair", {"0": 1}), ("usd", "1e3"), ("usd", "-1"), ("usd", "01"), ("usd", ".5"),
        ("usd", 1), ("more", 1),
    ],
)  # fmt: skip
def test_a_field_that_is_not_as_declared_is_refused_by_name(field: str, value: object) -> None:
    with pytest.raises(Refused, match=field):
        read(Sample, {**GOOD, field: value}, "x")


@pytest.mark.parametrize("value", [None, [], "a", 1, {"name": "abc"}])
def test_what_is_no_such_object_is_refused(value: object) -> None:
    with pytest.raises(Refused):
        read(Sample, value, "x")


@given(st.integers(0, 10**20), st.integers(0, 24))
def test_an_amount_has_its_shortest_decimal_text(digits: int, places: int) -> None:
    amount = Fraction(digits, 10**places)
    assert usd_text(amount) == usd_to_text(amount)
    assert Fraction(usd_text(amount)) == amount


def test_sums_are_exact_and_unknown_poisons_them() -> None:
    assert total(["0.1", "0.2"]) == "0.3"
    assert total([]) == "0"
    assert total(["1", None]) is None
    with pytest.raises(Refused):
        usd_text(Fraction(1, 3))


@pytest.mark.parametrize("size", range(40))
def test_the_root_is_that_of_the_recursive_definition(size: int) -> None:
    leaves = [b"leaf %d" % number for number in range(size)]
    assert root([leaf_hash(leaf) for leaf in leaves]) == full_merkle.root(leaves)


def test_an_envelope_is_read_by_the_right_key_and_type_only() -> None:
    good = sign(INDEX_TYPE, b"payload", SIGNER)
    assert payload_of(good, INDEX_TYPE, ring(), "e") == b"payload"
    parsed = json.loads(good)
    signature = parsed["signatures"][0]
    bad: list[tuple[bytes, str]] = [
        (good, "application/other"),
        (sign(INDEX_TYPE, b"payload", FixedSigner("rival")), INDEX_TYPE),
        (dumps({**parsed, "signatures": [signature, signature]}), INDEX_TYPE),
        (dumps({**parsed, "signatures": []}), INDEX_TYPE),
        (dumps({**parsed, "payload": base64.b64encode(b"pay1oad").decode()}), INDEX_TYPE),
        (dumps({**parsed, "payload": parsed["payload"].rstrip("=")}), INDEX_TYPE),
        (dumps({**parsed, "payload": parsed["payload"] + "\n"}), INDEX_TYPE),
        (dumps({**parsed, "signatures": [{**signature, "sig": signature["sig"][:-3] + "x=="}]}), INDEX_TYPE),
        (dumps({**parsed, "note": 1}), INDEX_TYPE),
        (b" " + good, INDEX_TYPE),
    ]
    for envelope, kind in bad:
        with pytest.raises(Refused):
            payload_of(envelope, kind, ring(), "e")


def test_bits_under_the_padding_are_zero() -> None:
    """`cGF5bG9hZB==` and `cGF5bG9hZA==` decode to one payload; only one is its spelling."""
    parsed = json.loads(sign(INDEX_TYPE, b"payload", SIGNER))
    assert parsed["payload"] == "cGF5bG9hZA=="
    assert base64.b64decode("cGF5bG9hZB==") == b"payload"
    with pytest.raises(Refused, match="canonical base64"):
        payload_of(dumps({**parsed, "payload": "cGF5bG9hZB=="}), INDEX_TYPE, ring(), "e")


def test_a_checkpoint_is_read_by_the_right_key_and_origin_only() -> None:
    note = sign_checkpoint(Checkpoint(origin="fairtrial/round/r", size=5, root=b"r" * 32), SIGNER)
    found = checkpoint_of(note, "fairtrial/round/r", ring(), "c")
    assert (found.size, found.root) == (5, b"r" * 32)
    with pytest.raises(Refused, match="origin"):
        checkpoint_of(note, "fairtrial/round/s", ring(), "c")
    rival = sign_checkpoint(Checkpoint(origin="fairtrial/round/r", size=5, root=b"r" * 32), FixedSigner("rival"))
    sizes = [note.replace(b"\n5\n", b"\n%b\n" % size) for size in (b"6", b"05", b"+5", b"")]
    for bad in (rival, *sizes, note + b"\n", note[:-1], b"\xff" + note, b""):
        with pytest.raises(Refused):
            checkpoint_of(bad, "fairtrial/round/r", ring(), "c")


RING = b'{"keys":[%b],"schema_version":"fairtrial.keys/1"}'
KEY = b'{"algorithm":"%b","id":"ed25519:' + b"0" * 64 + b'","public_hex":"' + b"0" * 64 + b'"}'


@pytest.mark.parametrize("data", [b"", b"{}", RING % b"", RING % (KEY % b"rsa"), RING % (KEY % b"ed25519")])
def test_keys_that_are_none_are_refused(data: bytes) -> None:
    with pytest.raises(Refused):
        read_keys(data, "k")
