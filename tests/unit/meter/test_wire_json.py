"""JSON from a provider has one meaning or none."""

from __future__ import annotations

import pytest

from controller.meter.wire_json import document, record


def test_what_is_json_is_read() -> None:
    assert document(b'\xef\xbb\xbf[1, 2.5, "\\u2028\\ud83d", {"a": null}]') == [1, 2.5, "\u2028\ud83d", {"a": None}]
    assert record(bytearray(b'{"usage": {}}')) == {"usage": {}}


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b"{}{}",
        b'{"usage": {"input_tokens": 1}, "usage": {"input_tokens": 2}}',
        b'{"a": {"b": 1, "b": 1}}',
        b"[NaN]",
        b"[-Infinity]",
        b"[1e999]",
        b"[" + b"9" * 5_000 + b"]",
        b'["\xff"]',
        b'["\xed\xa0\x80"]',
        '"ä"'.encode("utf-16"),
        b"\xef\xbb\xbf\xef\xbb\xbf{}",
    ],
)
def test_what_has_two_meanings_or_none_is_refused(raw: bytes) -> None:
    with pytest.raises(ValueError):
        document(raw)


@pytest.mark.parametrize("raw", [b"[]", b"1", b'"{}"', b"null"])
def test_a_record_is_an_object(raw: bytes) -> None:
    with pytest.raises(ValueError, match="not a JSON object"):
        record(raw)
