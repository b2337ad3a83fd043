from __future__ import annotations

import json
from typing import Any

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from controller.domain.keys import KeyRing
from controller.errors import NotCanonical
from controller.evidence.canonical import canonical, dumps, lines, loads, parse, parse_lines
from tests.world.signer import FixedSigner

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=20,
)


@given(JSON)
def test_canonical_bytes_round_trip(value: Any) -> None:
    data = dumps(value)
    assert loads(data, "x") == value
    assert dumps(loads(data, "x")) == data


@given(JSON)
def test_every_value_is_spelled_as_the_reference_library_spells_it(value: Any) -> None:
    assert dumps(value) == rfc8785.dumps(value)


def test_every_single_character_is_spelled_as_the_reference_library_spells_it() -> None:
    plain = [chr(code) for code in range(0x3000) if not 0xD800 <= code < 0xE000]
    for value in (plain, {"\U00010000": 1, "\ue000": 2, "\x7f": 3, "a": 4}, {"": "\u2028\u2029\ufeff\U0001f600"}):
        assert dumps(value) == rfc8785.dumps(value)


@pytest.mark.parametrize("value", [{1: 2}, [b"x"], {"a": {1, 2}}, object(), "\ud800", {"\ud800": 1}])
def test_what_json_does_not_have_is_refused(value: Any) -> None:
    with pytest.raises(NotCanonical):
        dumps(value)


@pytest.mark.parametrize(
    ("data", "part"),
    [
        (b'{"a":1,"a":2}', "twice"),
        (b'{"a":{"b":1,"b":1}}', "twice"),
        (b"[1.0]", "floats"),
        (b"[1e400]", "floats"),
        (b"[NaN]", "floats"),
        (b"[-Infinity]", "floats"),
        (b'{"b":1,"a":2}', "byte 2"),
        (b'{"a": 1}', "byte 5"),
        (b'{"a":1}\n', "byte 7"),
        (b'["\\u0061"]', "byte 2"),
        (b"[9007199254740993]", "canonical form"),
        (b"[-0]", "byte 1"),
        (b'["\\ud800"]', "canonical form"),
        (b"\xff", "utf-8"),
        ("[1]".encode("utf-16"), "utf-8"),
        (b"\xef\xbb\xbf[1]", "Expecting value: line 1 column 1"),
        (b"[" * 5000 + b"]" * 5000, "f.json"),
        (b"[" * 70 + b"]" * 70, "deeper"),
        (b"[" + b"9" * 5000 + b"]", "f.json"),
        (b"", "Expecting value"),
    ],
)
def test_any_other_spelling_is_refused_with_its_place(data: bytes, part: str) -> None:
    with pytest.raises(NotCanonical, match=r"f\.json") as caught:
        loads(data, "f.json")
    assert part in str(caught.value)


@given(st.floats())
def test_floats_are_never_written(value: float) -> None:
    with pytest.raises(NotCanonical, match=r"\$\.a\[0\]"):
        dumps({"a": [value]})


def test_a_record_is_read_back_and_a_bad_field_is_named() -> None:
    ring = FixedSigner().ring
    assert parse(canonical(ring), KeyRing) == ring
    broken = json.loads(canonical(ring))
    broken["keys"][0]["public_hex"] = "00"
    with pytest.raises(NotCanonical, match=r"keys\.json: keys\[0\]\.public_hex"):
        parse(dumps(broken), KeyRing, "keys.json")


def test_lines_round_trip_and_refuse_blank_or_open_lines() -> None:
    rings = (FixedSigner("a").ring, FixedSigner("b").ring)
    data = lines(rings)
    assert parse_lines(data, KeyRing, "l") == rings
    assert parse_lines(b"", KeyRing, "l") == ()
    for broken in (data[:-1], data + b"\n", b"\n" + data, data.replace(b"\n", b"\r\n")):
        with pytest.raises(NotCanonical, match="l"):
            parse_lines(broken, KeyRing, "l")
