from __future__ import annotations

import pytest

from controller.domain.bodies import OperatorAct
from controller.domain.instant import InstantMs
from controller.domain.statement import Statement, StatementKind
from controller.errors import BadSignature, BundleRejected
from controller.evidence.log import check_chain, checkpoint_of, leaves, next_statement
from controller.evidence.note import check_checkpoint, log_origin, sign_checkpoint
from tests.world.signer import FixedSigner

SIGNER = FixedSigner()


def chain(length: int, *, note: str = "") -> list[Statement]:
    """Statements that follow from one another; another note makes another history."""
    found: list[Statement] = []
    for number in range(length):
        found.append(
            next_statement(
                found[-1] if found else None,
                kind=StatementKind.OPERATOR_ACT,
                at=InstantMs(number),
                subject="demo",
                body=OperatorAct(act="resume", note=f"{note}note {number}"),
            )
        )
    return found


def test_a_chain_in_order_holds() -> None:
    check_chain([])
    check_chain(chain(5))


def test_every_change_of_a_chain_but_a_cut_tail_breaks_it() -> None:
    statements = chain(6)
    for place in range(5):
        with pytest.raises(BundleRejected, match=r"statement"):
            check_chain(statements[:place] + statements[place + 1 :])
        swapped = list(statements)
        swapped[place], swapped[place + 1] = swapped[place + 1], swapped[place]
        with pytest.raises(BundleRejected):
            check_chain(swapped)
        altered = list(statements)
        altered[place] = altered[place].model_copy(update={"subject": "other"})
        with pytest.raises(BundleRejected, match=f"statement {place + 1} does not follow"):
            check_chain(altered)


def test_the_checkpoint_sees_a_cut_tail() -> None:
    statements = chain(6)
    check_chain(statements[:5])
    assert checkpoint_of("demo", leaves(statements)) != checkpoint_of("demo", leaves(statements[:5]))


def test_a_signed_checkpoint_comes_back_and_every_flipped_bit_is_refused() -> None:
    checkpoint = checkpoint_of("demo", leaves(chain(3)))
    note = sign_checkpoint(checkpoint, SIGNER)
    assert check_checkpoint(note, log_origin("demo"), SIGNER.ring) == checkpoint
    assert note.decode().splitlines()[:2] == ["fairtrial/round/demo", "3"]
    for position in range(len(note) * 8):
        changed = bytearray(note)
        changed[position // 8] ^= 1 << position % 8
        with pytest.raises(BadSignature):
            check_checkpoint(bytes(changed), log_origin("demo"), SIGNER.ring)


def test_a_checkpoint_of_another_round_or_key_is_refused() -> None:
    note = sign_checkpoint(checkpoint_of("demo", leaves(chain(3))), SIGNER)
    with pytest.raises(BadSignature, match="origin"):
        check_checkpoint(note, log_origin("other"), SIGNER.ring)
    with pytest.raises(BadSignature, match="none of the trusted keys"):
        check_checkpoint(note, log_origin("demo"), FixedSigner("rival").ring)
