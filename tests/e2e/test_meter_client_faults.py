"""Providers that fail, seen by real clients: every request that left is in the ledger, once, in the state it earned."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Literal

import anthropic
import openai
import pytest
from google.genai import errors as genai_errors

from controller.domain.limits import SpendLimits
from controller.domain.usage import MeteredRequest, RequestState
from tests.world.client_rig import ClientRig, client_rig
from tests.world.processes import call as plain_call
from tests.world.scripted_provider import TEXT, Fate
from tests.world.sdks import ANTHROPIC, CHAT, GEMINI, RESPONSES, SDKS, Sdk, status_of

SETTLED, UNKNOWN, ZERO_BILL = RequestState.SETTLED, RequestState.UNKNOWN, RequestState.ZERO_BILL
# No provider documents what a failed request costs, but for Gemini, whose 500 is documented as free.
FREE = {(GEMINI.name, "500"): ZERO_BILL}


@pytest.fixture(scope="module")
def rig() -> Iterator[ClientRig]:
    with client_rig() as running:
        yield running


@pytest.fixture(scope="module")
def hasty() -> Iterator[ClientRig]:
    """A meter that gives a silent provider half a second instead of ten minutes."""
    with client_rig(idle_seconds=0.5) as running:
        yield running


def only(rig: ClientRig) -> MeteredRequest:
    """The one request of the attempt: one left the client, one was accepted, one reached the provider."""
    (request,) = rig.account().requests
    assert len(rig.wire.requests("POST")) == len(rig.provider.received) == 1
    assert request.sequence == 1 and not rig.account().refusals
    return request


def headers_of(error: BaseException) -> Mapping[str, str]:
    """The answer's headers as the SDK's own error holds them."""
    assert isinstance(error, (anthropic.APIStatusError, openai.APIStatusError, genai_errors.APIError))
    headers: Mapping[str, str] = error.response.headers
    return headers


@pytest.mark.parametrize("fate", ["429", "500", "529"])
@pytest.mark.parametrize("sdk", SDKS, ids=str)
def test_an_error_status_reaches_the_client_as_it_was(rig: ClientRig, sdk: Sdk, fate: Fate) -> None:
    call = rig.open(sdk)
    rig.provider.play(fate)
    with pytest.raises(Exception, match="scripted failure") as failed:
        sdk.ask(call)
    assert status_of(failed.value) == int(fate)
    headers = headers_of(failed.value)
    assert headers["retry-after"] == "1" and headers["x-request-id"] == "req_scripted"
    request = only(rig)
    assert request.status == int(fate)
    assert request.state is FREE.get((sdk.name, fate), UNKNOWN)
    assert request.usd == ("0" if request.state is ZERO_BILL else None)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("sdk", SDKS, ids=str)
@pytest.mark.parametrize(
    ("fate", "word"),
    [("reset", "broke off"), ("cut", "broke off"), ("silence", "broke off"), ("error", "")],
)
def test_an_answer_that_is_none_is_unknown(
    request: pytest.FixtureRequest, sdk: Sdk, stream: bool, fate: Fate | Literal["error"], word: str
) -> None:
    rig: ClientRig = request.getfixturevalue("hasty" if fate == "silence" else "rig")
    if fate == "error":
        fate = "error event" if stream else "error body"
    call = rig.open(sdk, stream=stream)
    rig.provider.play(fate)
    with suppress(Exception):  # some clients take an error body after a 200 for an empty answer
        assert sdk.ask(call).text != TEXT
    metered = only(rig)
    assert (metered.state, metered.usd) == (UNKNOWN, None)
    assert word in metered.note and metered.note


RETRIED = [(sdk, fate) for sdk in SDKS for fate in ("429", "500", "529", "reset") if (sdk, fate) != (GEMINI, "529")]


@pytest.mark.parametrize(("sdk", "fate"), RETRIED, ids=str)  # Google's SDK does not know 529 and gives up
def test_a_retry_is_a_second_request_with_a_label_of_its_own(rig: ClientRig, sdk: Sdk, fate: Fate) -> None:
    call = rig.open(sdk, retries=1)
    rig.provider.play(fate)
    assert sdk.ask(call).text == TEXT
    first, second = rig.account().requests
    assert len(rig.wire.requests("POST")) == len(rig.provider.received) == 2
    assert [first.state, second.state] == [FREE.get((sdk.name, fate), UNKNOWN), SETTLED]
    assert [first.sequence, second.sequence] == [1, 2] and first.body_digest == second.body_digest
    assert "retry" not in first.note
    assert ("the harness calls it retry 1" in second.note) is sdk.labels_retries


@pytest.mark.parametrize("sdk", SDKS, ids=str)
def test_a_retry_spends_the_request_count(rig: ClientRig, sdk: Sdk) -> None:
    call = rig.open(sdk, retries=3, limits=SpendLimits(requests_per_attempt=2))
    rig.provider.play("429", "429")
    with pytest.raises(Exception, match="requests_per_attempt") as refused:
        sdk.ask(call)
    assert status_of(refused.value) == 403
    # Two were forwarded, the third was refused, and a refusal is not tried again.
    assert len(rig.provider.received) == len(rig.account().requests) == 2
    assert len(rig.wire.requests("POST")) == 3
    assert [refusal.limit for refusal in rig.account().refusals] == [True]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("sdk", SDKS, ids=str)
def test_a_message_id_that_comes_twice_is_settled_once(rig: ClientRig, sdk: Sdk, stream: bool) -> None:
    call = rig.open(sdk, stream=stream)
    rig.provider.play("same id", "same id")
    assert sdk.ask(call).text == sdk.ask(call).text == TEXT
    first, second = rig.account().requests
    assert (first.state, second.state, second.usd) == (SETTLED, UNKNOWN, None)
    assert "incident" in second.note


@pytest.mark.parametrize("sdk", SDKS, ids=str)
def test_a_short_silence_is_no_fault(rig: ClientRig, sdk: Sdk) -> None:
    call = rig.open(sdk, stream=True)
    rig.provider.play("pause", seconds=0.3)
    assert sdk.ask(call).text == TEXT
    assert only(rig).state is SETTLED


@pytest.mark.slow
@pytest.mark.parametrize("fate", ["pause", "silence"])
@pytest.mark.parametrize("sdk", [ANTHROPIC, CHAT, RESPONSES, GEMINI], ids=str)
def test_thirty_seconds_of_silence_are_waited_out(sdk: Sdk, fate: Fate) -> None:
    with client_rig() as rig:  # with the time that a round gives
        call = rig.open(sdk, stream=True)
        rig.provider.play(fate, seconds=30.0)
        assert sdk.ask(call).text == TEXT
        assert only(rig).state is SETTLED


def test_what_is_in_flight_at_the_end_of_an_attempt_settles_and_nothing_new_begins(rig: ClientRig) -> None:
    call = rig.open(ANTHROPIC)
    rig.provider.play("held")
    texts: list[str] = []
    asking = threading.Thread(target=lambda: texts.append(ANTHROPIC.ask(call).text))
    asking.start()
    assert rig.provider.reached.wait(30)
    rig.meter.ledger.close_attempt(rig.meter.attempt_id())
    late = plain_call(rig.meter.socket, "POST", "/v1/messages", body=b"{}", headers={"x-api-key": call.token})
    assert late.status == 401
    rig.provider.release.set()
    asking.join()
    assert texts == [TEXT]
    assert only(rig).state is SETTLED
