"""The official SDKs against the real meter: their own types, their own errors, and every amount exact."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import anthropic
import openai
import pytest
from google.genai import errors as genai_errors

from controller.domain.limits import SpendLimits
from controller.domain.usage import RequestState, ZeroBillProof
from tests.world.client_rig import PROVIDER_KEY, ClientRig, client_rig
from tests.world.processes import MODEL
from tests.world.processes import call as plain_call
from tests.world.scripted_provider import TEXT
from tests.world.sdks import ANTHROPIC, EVERY_WAY, GEMINI, SDKS, Call, Sdk, count_anthropic, count_gemini, status_of

# 3,000 plain, 2,000 read, 1,000 written and 400 out, at the card's 4, 0.4, 5 (5.5 for a 30-minute write) and 20 dollars
# per million: 0.012 + 0.0008 + 0.005 (0.0055) + 0.008. Gemini has no price for implicit writes: they are plain input.
TOKENS = {
    "anthropic": {"in": 3000, "read": 2000, "w5m": 1000, "out": 400},
    "openai": {"in": 3000, "read": 2000, "w30m": 1000, "out": 400},
    "gemini": {"in": 4000, "read": 2000, "out": 400},
}
USD = {"anthropic": "0.0258", "openai": "0.0263", "gemini": "0.0248"}
# What each SDK's own types say of the same answer: the three meanings of "input".
OWN_WORDS = {
    "anthropic": {"input_tokens": 3000, "cache_read_input_tokens": 2000, "output_tokens": 400},
    "openai_chat": {"prompt_tokens": 6000, "completion_tokens": 400},
    "openai_responses": {"input_tokens": 6000, "output_tokens": 400},
    "gemini": {"prompt_token_count": 6000, "candidates_token_count": 300, "thoughts_token_count": 100},
}
REFUSALS: dict[str, dict[int, type[Exception]]] = {
    "anthropic": {
        400: anthropic.BadRequestError,
        401: anthropic.AuthenticationError,
        403: anthropic.PermissionDeniedError,
    },
    "openai": {400: openai.BadRequestError, 401: openai.AuthenticationError, 403: openai.PermissionDeniedError},
    "gemini": dict.fromkeys((400, 401, 403), genai_errors.ClientError),
}


@pytest.fixture(scope="module")
def rig() -> Iterator[ClientRig]:
    with client_rig() as running:
        yield running


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("sdk", EVERY_WAY, ids=str)
def test_an_sdk_gets_its_answer_and_the_ledger_the_exact_amount(rig: ClientRig, sdk: Sdk, stream: bool) -> None:
    call = rig.open(sdk, stream=stream)
    heard = sdk.ask(call)
    assert heard.text == TEXT
    assert heard.usage.items() >= OWN_WORDS[sdk.dialect].items()
    (request,) = rig.account().requests
    assert (request.state, request.usd, request.status) == (RequestState.SETTLED, USD[sdk.provider], 200)
    assert request.usage is not None and request.usage.tokens == TOKENS[sdk.provider]
    assert (request.provider_message_id, request.observed_model) == (heard.message_id, MODEL)
    (sent,), (received,) = rig.wire.requests(), rig.provider.received
    assert call.token in str(sent.headers) and call.token not in str(received)
    assert PROVIDER_KEY in str(received.headers) and PROVIDER_KEY not in str(sent)


@pytest.mark.parametrize(
    ("sdk", "count"), [(ANTHROPIC, count_anthropic), (GEMINI, count_gemini)], ids=["anthropic", "gemini"]
)
def test_an_sdk_counts_tokens_for_nothing(rig: ClientRig, sdk: Sdk, count: Callable[[Call], int]) -> None:
    assert count(rig.open(sdk)) == 17
    (request,) = rig.account().requests
    assert (request.state, request.usd, request.counts) == (RequestState.ZERO_BILL, "0", False)
    assert request.zero_bill_proof is ZeroBillProof.DOCUMENTED_RULE


@pytest.mark.parametrize("case", ["another model", "an unknown token", "an ended attempt", "a spent limit"])
@pytest.mark.parametrize("sdk", SDKS, ids=str)
def test_a_refusal_is_the_sdks_own_error_and_is_not_retried(rig: ClientRig, sdk: Sdk, case: str) -> None:
    spent = case == "a spent limit"
    call = rig.open(sdk, limits=SpendLimits(requests_per_attempt=1), retries=2)
    if spent:
        sdk.ask(call)
    elif case == "an ended attempt":
        rig.meter.ledger.close_attempt(rig.meter.attempt_id())
    asked = Call(
        call.base_url,
        "another-token" if case == "an unknown token" else call.token,
        "another-model" if case == "another model" else call.model,
        retries=2,
    )
    status = {"another model": 400, "a spent limit": 403}.get(case, 401)
    with pytest.raises(REFUSALS[sdk.provider][status]) as refused:
        sdk.ask(asked)
    assert status_of(refused.value) == status and "fairtrial meter: " in str(refused.value)
    assert len(rig.wire.requests()) == 1 + spent
    assert len(rig.provider.received) == len(rig.account().requests) == spent
    if status != 401:  # a request without a known token belongs to no attempt
        assert [(refusal.status, refusal.limit) for refusal in rig.account().refusals] == [(status, spent)]


def test_a_token_in_a_gemini_query_reaches_neither_provider_nor_log(rig: ClientRig) -> None:
    call = rig.open(GEMINI)
    target = f"/v1beta/models/{MODEL}:streamGenerateContent?key={call.token}&alt=sse"
    body = b'{"contents": [{"parts": [{"text": "hi"}]}]}'
    assert plain_call(rig.meter.socket, "POST", target, body=body).status == 200
    other = {"x-goog-api-key": "another"}
    assert plain_call(rig.meter.socket, "POST", target, body=body, headers=other).status == 401
    (received,) = rig.provider.received
    assert received.path == target.replace(f"key={call.token}&", "")
    assert received.headers["x-goog-api-key"] == PROVIDER_KEY
    (request,) = rig.account().requests
    assert (request.state, request.usd) == (RequestState.SETTLED, USD["gemini"])
    assert call.token not in rig.meter.service.log_path.read_text()
