"""A place of inference costs more only where the card says so, and then in the live meter as well."""

from __future__ import annotations

from controller.domain.rate_card import Surcharge
from controller.domain.usage import RequestState
from controller.meter.dialects import READERS
from controller.meter.rules import Ending, Exchange, LaneTerms, ending
from tests.world.processes import CARD, MODEL

LANE = LaneTerms("rehearsal", MODEL, (MODEL,), "standard")
WHOLE = Exchange(connected=True, status=200, ended_well=True)
US = Surcharge(geo="us", token_multiplier="1.1", source="invented", retrieved_on="2026-01-01")


def answered_in(geo: str, *surcharges: Surcharge) -> Ending:
    """The end of 3,000 tokens in and 400 out, at 4 and 20 dollars per million: 0.02 dollars at the list price."""
    row = CARD.rows[0].model_copy(update={"surcharges": surcharges})
    reader = READERS["anthropic"]()
    usage = {"input_tokens": 3_000, "output_tokens": 400, "inference_geo": geo}
    reader.body({"id": "m", "model": MODEL, "usage": usage})
    return ending(WHOLE, reader, LANE, CARD.model_copy(update={"rows": (row,)}), free=False)


def test_a_declared_surcharge_is_charged() -> None:
    end = answered_in("us", US)
    assert (end.state, end.usd) == (RequestState.SETTLED, "0.022")


def test_an_undeclared_place_is_unknown() -> None:
    assert answered_in("us").state is RequestState.UNKNOWN
    assert answered_in("eu", US).state is RequestState.UNKNOWN
