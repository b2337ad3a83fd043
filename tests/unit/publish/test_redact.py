"""No rendering of a known value survives; what a text filter can't see is written down beside it."""

from __future__ import annotations

import base64
import re
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.publish.redact import REDACT_LETTERS, REDACTED, blocks, redact, reduced, to_redact, to_scan
from tests.world.secrets import RENDERINGS, fakes, letters

FAKES = fakes()
# Redaction leaves fewer letters in a row than it needs to see; base64 rounds that up to its groups of three.
SHOWN_MAX = REDACT_LETTERS + 2


def longest_shown(secret: str, text: str) -> int:
    """How many characters in a row of the secret a reader of the text has."""
    secret = re.sub("[^A-Za-z0-9]", "", re.sub("-----[A-Z ]*-----", "", secret)).lower()
    text = re.sub("[^A-Za-z0-9]", "", text).lower()
    best = 0
    for start in range(len(secret)):
        while secret[start : start + best + 1] in text and start + best + 1 <= len(secret):
            best += 1
    return best


def test_the_corpus_is_whole_and_every_rendering_gives_its_secret_to_a_reader() -> None:
    assert (len(FAKES), len(RENDERINGS)) == (25, 16)
    for name, secret in FAKES.items():
        for rendering in RENDERINGS.values():
            shown = rendering.read(f"start {rendering.show(secret)} end")
            assert longest_shown(secret, shown) >= 16, name


@pytest.mark.parametrize("rendering", RENDERINGS)
@pytest.mark.parametrize("name", FAKES)
def test_no_rendering_of_a_known_secret_survives(name: str, rendering: str) -> None:
    secret, form = FAKES[name], RENDERINGS[rendering]
    text = f"before the secret\n{form.show(secret)}\nafter the secret\n"
    out, count = redact(text, to_redact([secret.encode()]))
    assert count >= 1
    assert REDACTED in out
    assert longest_shown(secret, form.read(out)) < SHOWN_MAX
    assert out.startswith("before the secret\n") or rendering == "spaced-over-lines"
    assert out.endswith("\nafter the secret\n")
    assert to_scan([secret.encode()]).is_in(reduced(text)), "the scan of a release sees it as well"


def test_ordinary_text_is_left_as_it_is() -> None:
    known, scan = to_redact(s.encode() for s in FAKES.values()), to_scan(s.encode() for s in FAKES.values())
    text = "def half(number):\n    return number / 2  # \u00e9\u200b, 50 %, C:\\new, &amp; \x1b[31mred\x1b[0m\n" * 50
    assert redact(text, known) == (text, 0)
    assert not scan.is_in(reduced(text))


@pytest.mark.parametrize(
    "text",
    [
        "%2573%256b%252d{rest}",
        "&#x73;&#107;&#45;{rest}",
        "\\163\\153\\055{rest}",
        "\\\\u0073\\\\u006b{rest}",
        "0x73, 0x6b, 0x2d, {rest}",
        "\\x1b[1msk-\\x1b[0m{rest}",
        "\x1b]0;title\x07sk-{rest}",
        "".join(chr(ord(c) + 0xFEE0) for c in "sk") + "-{rest}",
        "SK-{REST}",
        '"sk-" + "{rest}"',
        "s\0k\0-\0{rest}",
    ],
)
def test_odd_spellings_of_its_beginning_are_taken_out_with_the_rest(text: str) -> None:
    rest = letters("rest", 30)
    shown = text.format(rest=rest, REST=rest.upper())
    out, count = redact(f"a {shown} z", to_redact([b"sk-" + rest.encode()]))
    assert count == 1
    assert longest_shown(rest, out) < 4
    assert re.fullmatch(r"a .*\[redacted\].* z", out, re.DOTALL)


def test_two_values_beside_each_other_and_a_binary_one_are_found() -> None:
    binary = bytes(range(200, 232))
    first, second = letters("one", 20), letters("two", 20)
    known = to_redact([first.encode(), second.encode(), binary])
    assert redact(f"{first} {second} and {first}.", known) == (f"{REDACTED} and {REDACTED}.", 2)
    assert redact(binary.hex(), known) == (REDACTED, 1)
    assert redact(base64.b64encode(b"xx" + binary + b"x").decode(), known)[1] == 1


@pytest.mark.parametrize("size", [1, 7, 16, 33])
@pytest.mark.parametrize(
    "secret", [letters("block", 16), letters("block", 12), letters("block", 9), letters("block", 70)]
)
def test_a_value_across_the_edge_of_a_block_is_found(size: int, secret: str) -> None:
    known = to_scan([secret.encode()])
    for shift in range(40):
        text = "-" * 3 + "x" * shift + " " + " ".join(secret) + " " + "y" * 40
        assert any(known.is_in(block) for block in blocks(text, letters=size))
        assert "".join(blocks(text)) == reduced(text)
    assert not any(known.is_in(block) for block in blocks("xy " * 100 + secret[:7], letters=size))


def test_a_short_value_counts_whole_and_a_very_short_one_not_at_all() -> None:
    assert redact("pin 12ab34cd, 12ab34c", to_redact([b"12ab34cd"])) == (f"pin {REDACTED}, 12ab34c", 1)
    assert redact("pin 1234", to_redact([b"1234"])) == ("pin 1234", 0)


def test_the_frame_of_a_pem_file_is_no_secret() -> None:
    frame = "-----BEGIN " + "PRIVATE KEY-----"
    assert redact(f"{frame}\n...", to_redact([FAKES["pem"].encode()]))[1] == 0


def test_what_no_text_filter_sees_is_what_the_guide_says() -> None:
    """The honest limit: transformations that the search does not undo. Stages before it must keep secrets away."""
    secret = FAKES["openai"].encode()
    known = to_redact([secret])
    blind = {
        "xor": bytes(byte ^ 0x55 for byte in secret).hex(),
        "zlib": base64.b64encode(zlib.compress(secret)).decode(),
        "base32": base64.b32encode(secret).decode(),
        "base85": base64.b85encode(secret).decode(),
        "twice": base64.b64encode(base64.b64encode(secret)).decode(),
    }
    assert {name for name, text in blind.items() if redact(text, known)[1] == 0} == set(blind)


@given(before=st.text(max_size=60), after=st.text(max_size=60), cut=st.integers(0, 40))
@settings(max_examples=150, deadline=None)
def test_any_text_around_and_any_break_within_it_hides_nothing(before: str, after: str, cut: int) -> None:
    secret = letters("prop", 40)
    text = f"{before}\n{secret[:cut]}\u200b \n+{secret[cut:]}\n{after}"
    out, _ = redact(text, to_redact([secret.encode()]))
    assert secret not in re.sub("[^A-Za-z0-9]", "", out)
