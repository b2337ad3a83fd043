"""Cosignatures: their C2SP form, and that a witness vouches for growth only."""

from __future__ import annotations

import base64
import hashlib

import pytest

from controller.conductor.recompute import RoundRecompute
from controller.domain.ids import sha256_digest
from controller.domain.instant import InstantMs
from controller.errors import BadSignature, BundleRejected, InvalidInput, LogRewritten
from controller.evidence import bundle, merkle
from controller.evidence.check import NO_WITNESS, check, examine
from controller.evidence.exhibits import Outsiders
from controller.evidence.note import Checkpoint, check_checkpoint, log_origin, sign_checkpoint
from controller.evidence.witness import (
    Witness,
    check_cosigned,
    check_growth,
    cosign,
    parse_witnesses,
    publishers_note,
    witness_of,
)
from tests.world.signer import FixedSigner

PUBLISHER, SIGNER = FixedSigner(), FixedSigner("witness")
WITNESS = witness_of("example.org/witness", SIGNER.key)
AT = InstantMs(1_790_000_000_999)
LEAVES = [bytes([number]) for number in range(40)]


def state(size: int, leaves: list[bytes] = LEAVES) -> Checkpoint:
    return Checkpoint(origin=log_origin("demo"), size=size, root=merkle.root(leaves[:size]))


NOTE = sign_checkpoint(state(5), PUBLISHER)
COSIGNED = cosign(NOTE, WITNESS, SIGNER, at=AT)


def test_a_cosignature_has_the_form_of_the_standard() -> None:
    """Written out from https://c2sp.org/tlog-cosignature, without the code that makes it."""
    text = COSIGNED.decode()
    body, _, lines = text.partition("\n\n")
    publisher_line, witness_line = lines.splitlines()
    assert publisher_line.startswith("— fairtrial/round/demo ")
    dash, name, blob = witness_line.split(" ")
    raw = base64.b64decode(blob)
    public = bytes.fromhex(SIGNER.key.public_hex)
    assert (dash, name) == ("—", "example.org/witness")
    assert raw[:4] == hashlib.sha256(b"example.org/witness\n\x04" + public).digest()[:4]
    assert raw[4:12] == (1_790_000_000).to_bytes(8, "big")
    assert raw[12:] == SIGNER.sign(f"cosignature/v1\ntime 1790000000\n{body}\n".encode())
    assert WITNESS.vkey == f"example.org/witness+{raw[:4].hex()}+{base64.b64encode(b'%c' % 4 + public).decode()}"


def test_the_example_of_the_standard_has_the_key_hash_of_its_kind() -> None:
    """The witness line of the standard's own example is of 76 bytes, with the time 1679315147."""
    blob = base64.b64decode(
        "jWbPPwAAAABkGFDLEZMHwSRaJNiIDoe9DYn/zXcrtPHeolMI5OWXEhZCB9dlrDJsX3b2oyin1nPZqhf5nNo0xUe+mbIUBkBIfZ+qnA=="
    )
    assert (len(blob), int.from_bytes(blob[4:12], "big")) == (76, 1_679_315_147)


def test_what_was_cosigned_comes_back_to_the_second_and_another_witness_is_passed_over() -> None:
    assert check_cosigned(COSIGNED, WITNESS, "w") == 1_790_000_000_000
    assert publishers_note(COSIGNED) == NOTE
    for other in (witness_of("example.org/other", SIGNER.key), witness_of(WITNESS.name, FixedSigner("rival").key)):
        assert check_cosigned(COSIGNED, other, "w") is None


def test_no_flipped_bit_is_taken_for_the_witness() -> None:
    for bit in range(len(COSIGNED) * 8):
        changed = bytearray(COSIGNED)
        changed[bit // 8] ^= 1 << bit % 8
        data = bytes(changed)
        try:
            check_checkpoint(publishers_note(data), log_origin("demo"), PUBLISHER.ring)
            at = check_cosigned(data, WITNESS, "w")
        except BadSignature:
            continue
        assert at is None, f"bit {bit} was accepted"  # a changed name or key hash: a witness nobody asked for


@pytest.mark.parametrize(
    "data",
    [b"", NOTE, COSIGNED + COSIGNED, COSIGNED[:-1], COSIGNED + b"\n", COSIGNED.replace(b"=\n", b"\n"), b"\xff" * 200,
     NOTE + b"\xe2\x80\x94 w " + base64.b64encode(b"\0" * 78) + b"\n",
     NOTE + "— {} {}\n".format("w", base64.b64encode(b"\xff" * 76).decode()).encode()],
)  # fmt: skip
def test_what_is_not_a_cosigned_note_is_refused(data: bytes) -> None:
    with pytest.raises(BadSignature):
        check_checkpoint(publishers_note(data), log_origin("demo"), PUBLISHER.ring)
        check_cosigned(data, WITNESS, "w")


def test_verifier_keys_come_back() -> None:
    other = witness_of("b", FixedSigner("b").key)
    assert parse_witnesses(f"{WITNESS.vkey}\n\n{other.vkey}\n", "f") == (WITNESS, other)


@pytest.mark.parametrize(
    "text",
    ["", "\n", "x", WITNESS.vkey[:-1], WITNESS.vkey.replace("example", "exemple"), WITNESS.vkey + "\nx",
     "a b+00000000+" + "A" * 44, WITNESS.vkey.rpartition("+")[0] + "+" + base64.b64encode(b"\x01" * 33).decode()],
)  # fmt: skip
def test_what_is_no_verifier_key_is_named_by_its_line(text: str) -> None:
    with pytest.raises(InvalidInput, match="f"):
        parse_witnesses(text, "f")


@pytest.mark.parametrize("name", ["", "a b", "a+b", "a\nb", "x" * 201])
def test_a_name_that_no_line_could_carry_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match="name"):
        witness_of(name, SIGNER.key)


def test_growth_is_shown_by_the_log_or_by_a_proof() -> None:
    for last in range(1, 41):
        for new in range(last, 41):
            check_growth(state(last), state(new), log=LEAVES[:new], proof=None)
            proof = merkle.consistency_proof(LEAVES[:new], last)
            check_growth(state(last), state(new), log=None, proof=proof)


def test_a_rewritten_log_is_refused_however_it_is_shown() -> None:
    for last in range(1, 40):
        other = list(LEAVES)
        other[last - 1] = b"another"
        for new in range(last, 41):
            rewritten = state(new, other)
            with pytest.raises(LogRewritten):
                check_growth(state(last), rewritten, log=other[:new], proof=None)
            with pytest.raises(LogRewritten):
                check_growth(state(last), rewritten, log=None, proof=merkle.consistency_proof(other[:new], last))


def test_nothing_shown_or_an_older_state_is_not_signed() -> None:
    with pytest.raises(InvalidInput, match="nothing shows"):
        check_growth(state(5), state(6), log=None, proof=None)
    with pytest.raises(InvalidInput, match="5 were signed before"):
        check_growth(state(5), state(4), log=LEAVES[:4], proof=None)
    check_growth(state(5), state(5), log=None, proof=None)
    with pytest.raises(LogRewritten, match="different roots"):
        check_growth(state(5), state(5, [b"x"] * 5), log=None, proof=None)
    with pytest.raises(LogRewritten):
        check_growth(state(5), state(6), log=LEAVES[:5], proof=None)


# The check of a bundle, with witnesses.

Files = dict[str, bytes]


def _with(files: Files, added: Files) -> Files:
    rest = {name: data for name, data in {**files, **added}.items() if name != bundle.INDEX}
    rest[bundle.SUMS] = bundle.sums(rest)
    return bundle.build(rest, PUBLISHER, round_id="small", manifest_digest=sha256_digest(rest[bundle.MANIFEST]))


def _cosigned(files: Files, size: int, witness: Witness = WITNESS, signer: FixedSigner = SIGNER) -> Files:
    note = files[bundle.checkpoint_name(size)]
    return {bundle.cosigned_name(size, witness.key_hash.hex()): cosign(note, witness, signer, at=AT)}


def _sizes(files: Files) -> list[int]:
    return sorted(size for name in files if (size := bundle.checkpoint_size(name)) is not None)


ASKED = Outsiders(witnesses=(WITNESS,))


def test_a_witness_who_saw_the_whole_round_is_named_and_nobody_is_when_none_was_asked(good_bundle: Files) -> None:
    size = _sizes(good_bundle)[-1]
    files = _with(good_bundle, _cosigned(good_bundle, size))
    report = check(files, RoundRecompute(), keys=PUBLISHER.ring, outsiders=ASKED)
    assert report.witness_text == "vouched for by example.org/witness"
    assert f"example.org/witness saw {size} statements at 2026-09-21T14:13:20.000Z" in report.steps[3].detail
    assert check(files, RoundRecompute(), keys=PUBLISHER.ring).witness_text == NO_WITNESS


def test_a_witness_who_was_asked_for_must_have_seen_the_end_of_the_round(good_bundle: Files) -> None:
    other = FixedSigner("other")
    impostor = _cosigned(good_bundle, _sizes(good_bundle)[-1], WITNESS, other)
    stranger = _cosigned(good_bundle, _sizes(good_bundle)[-1], witness_of("stranger", other.key), other)
    early = _cosigned(good_bundle, _sizes(good_bundle)[1])
    for added, finding in (
        ({}, "has not signed the log up to the closing"),
        (stranger, "has not signed the log up to the closing"),
        (early, "has not signed the log up to the closing"),
        (impostor, "signature does not match"),
    ):
        with pytest.raises(BundleRejected, match=rf"step 4 \(statements\): .*{finding}"):
            check(_with(good_bundle, added), RoundRecompute(), keys=PUBLISHER.ring, outsiders=ASKED)


def test_the_publisher_is_no_witness_of_himself(good_bundle: Files) -> None:
    himself = witness_of("somebody.else", PUBLISHER.key)
    files = _with(good_bundle, _cosigned(good_bundle, _sizes(good_bundle)[-1], himself, PUBLISHER))
    with pytest.raises(BundleRejected, match="the publisher's own key"):
        check(files, RoundRecompute(), keys=PUBLISHER.ring, outsiders=Outsiders(witnesses=(himself,)))


def test_a_cosigned_state_of_another_history_is_refused_whoever_asks(good_bundle: Files) -> None:
    size = _sizes(good_bundle)[-1]
    forged = sign_checkpoint(state(size).model_copy(update={"origin": log_origin("small")}), PUBLISHER)
    name = bundle.cosigned_name(size, WITNESS.key_hash.hex())
    files = _with(good_bundle, {name: cosign(forged, WITNESS, SIGNER, at=AT)})
    for outsiders in (None, ASKED):
        report = examine(files, RoundRecompute(), keys=PUBLISHER.ring, outsiders=outsiders)
        assert "is not the signed state of that size" in report.steps[3].detail
        assert not report.passed


class Stamps:
    """The TimeAuthority port: it has stamped these bytes, and answers with their hash as its response."""

    def time_of(self, response: bytes, data: bytes) -> InstantMs:
        if response != hashlib.sha256(data).digest():
            raise BadSignature("timestamp: of other data")
        return AT


BY_STAMP = Outsiders(authority=Stamps())


def _stamped(files: Files, size: int, data: bytes | None = None) -> Files:
    stamped = files[bundle.checkpoint_name(size)] if data is None else data
    return {bundle.stamp_name(size): hashlib.sha256(stamped).digest()}


def test_a_stamp_over_the_end_of_the_round_is_told_with_its_time(good_bundle: Files) -> None:
    early, _, size = _sizes(good_bundle)
    files = _with(good_bundle, {**_stamped(good_bundle, size), **_stamped(good_bundle, early, b"another's")})
    report = check(files, RoundRecompute(), keys=PUBLISHER.ring, outsiders=BY_STAMP)
    assert report.witness_text == "vouched for by the time authority"
    assert f"{size} statements existed at 2026-09-21T14:13:20.999Z, says the time authority" in report.steps[3].detail
    assert check(files, RoundRecompute(), keys=PUBLISHER.ring).witness_text == NO_WITNESS


def test_a_stamp_that_was_asked_for_must_cover_the_end_of_the_round(good_bundle: Files) -> None:
    early, _, size = _sizes(good_bundle)
    for added, finding in (
        ({}, ""),
        (_stamped(good_bundle, early), ""),
        (_stamped(good_bundle, size, b"other"), r" \(timestamp: of other data\)"),
    ):
        with pytest.raises(BundleRejected, match=f"no timestamp of the pinned authority covers the closing.*{finding}"):
            check(_with(good_bundle, added), RoundRecompute(), keys=PUBLISHER.ring, outsiders=BY_STAMP)
