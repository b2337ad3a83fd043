from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from controller.domain.ids import sha256_digest
from controller.domain.outcome import Gate, Verdict, VerifierOutput
from controller.evidence.excerpt import EXCERPT_BYTES_MAX, Excerpt
from controller.publish.excerpts import WINDOW_CHARS, make_excerpt, verifier_text
from controller.publish.redact import to_redact
from controller.publish.rewrite import Names
from tests.world.secrets import letters

SECRET = letters("excerpt", 40)
KNOWN = to_redact([SECRET.encode()])


def excerpt(text: str) -> Excerpt:
    data = text.encode(errors="replace")
    return make_excerpt(text, KNOWN, Names(), whole_bytes=len(data), whole_digest=sha256_digest(data))


def test_a_short_text_is_whole_and_says_so() -> None:
    found = excerpt("two\nlines\n")
    assert (found.text, found.is_truncated, found.redactions, found.whole_bytes) == ("two\nlines\n", False, 0, 10)
    assert found.whole_digest == sha256_digest(b"two\nlines\n")


def test_a_secret_across_the_cut_is_taken_out_before_it() -> None:
    text = "x" * (EXCERPT_BYTES_MAX - 11) + " " + SECRET + " end"
    found = excerpt(text)
    assert (found.is_truncated, found.redactions, len(found.text)) == (True, 1, EXCERPT_BYTES_MAX)
    assert SECRET[:6] not in found.text
    assert found.text.endswith(" [redacted]")


def test_a_secret_across_the_edge_of_the_window_shows_less_than_a_run() -> None:
    filler = f"{SECRET} " * ((WINDOW_CHARS - 20) // (len(SECRET) + 1))
    text = filler + "x" * (WINDOW_CHARS - 20 - len(filler)) + SECRET
    assert text[:WINDOW_CHARS][-20:] == SECRET[:20], "the window ends within a secret, and all before it shrinks"
    found = excerpt(text)
    assert found.is_truncated
    assert SECRET[:10] not in found.text


def test_one_long_line_of_escapes_stays_within_the_bound() -> None:
    found = excerpt("\u202e" * 3000)
    assert (len(found.text), found.is_truncated) == (EXCERPT_BYTES_MAX, True)


@given(st.text(max_size=9000))
@settings(max_examples=200, deadline=None)
def test_any_text_gives_printable_ascii_within_the_bound(text: str) -> None:
    found = excerpt(text)
    assert len(found.text.encode()) <= EXCERPT_BYTES_MAX
    assert all(char in "\n\t" or " " <= char <= "~" for char in found.text)


def test_the_verifiers_output_is_told_in_fields() -> None:
    output = VerifierOutput(
        exit_code=None, cases=3, passed=1, failed=("b", "c"), report_bytes=9, report_digest=sha256_digest(b"")
    )
    verdict = Verdict(
        passed=False,
        gates=(
            Gate(name="patch-applies", passed=True, detail="yes"),
            Gate(name="hidden-verifier", passed=False, detail="1 of 3"),
        ),
        patch_digest=None,
        changed_paths=(),
        soundness="black-box",
        output=output,
    )
    assert verifier_text(verdict).splitlines() == [
        "patch-applies: passed: yes",
        "hidden-verifier: failed: 1 of 3",
        "cases passed: 1 of 3",
        "case b: failed",
        "case c: failed",
    ]
