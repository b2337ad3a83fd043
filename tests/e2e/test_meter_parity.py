"""Prompt-cache parity: a conversation through the meter is the one that the provider would have had without it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from controller.domain.usage import RequestState
from tests.world.client_rig import PROVIDER_KEY, ClientRig, client_rig
from tests.world.clis import CLIS, SCRIPT, Cli
from tests.world.processes import MODEL, short_directory
from tests.world.rehearsal_model import key, rehearsal_model
from tests.world.scripted_provider import TEXT, Received
from tests.world.sdks import EVERY_WAY, SDKS, Call, Heard, Sdk
from tests.world.wire import Sent, Tap

# What differs between the two ways: the hop's own headers, the credential, and the encoding that the meter asks for.
NOT_COMPARED = {
    "host",
    "connection",
    "content-length",
    "accept-encoding",
    "authorization",
    "x-api-key",
    "x-goog-api-key",
}
ADDED_TO_CHAT_STREAMS = b'"stream_options":{"include_usage":true},'  # right after the opening brace
USER_TURNS = (
    "What is wrong with calc.py? " * 20,
    "Correct it, please. " * 20,
    "Now add a test for it. " * 20,
)


@pytest.fixture(scope="module")
def rig() -> Iterator[ClientRig]:
    with client_rig() as running:
        running.provider.caching = True
        yield running


def conversation(sdk: Sdk, call: Call) -> list[Heard]:
    """Three turns, each with all of what was said before it."""
    said: list[str] = []
    heard = []
    for text in USER_TURNS:
        said.append(text)
        heard.append(sdk.ask(call.saying(said)))
        said.append(heard[-1].text)
    return heard


def headers_of(request: Received | Sent) -> dict[str, str]:
    """The headers that might decide where and whether a prompt is found in a cache."""
    return {name: value for name, value in request.headers.items() if name not in NOT_COMPARED}


OTHER_WAYS = [pytest.param(sdk, marks=pytest.mark.slow) for sdk in EVERY_WAY if sdk not in SDKS]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("sdk", [*SDKS, *OTHER_WAYS], ids=str)
def test_an_sdks_conversation_is_the_same_on_both_ways(rig: ClientRig, sdk: Sdk, stream: bool) -> None:
    rig.provider.cache.forget()
    metered = conversation(sdk, rig.open(sdk, stream=stream))
    through, account = list(rig.provider.received), rig.account()

    rig.provider.cache.forget()
    rig.provider.play()
    direct = conversation(sdk, Call(rig.provider.url, PROVIDER_KEY, MODEL, stream=stream))
    straight = list(rig.provider.received)

    assert len(through) == len(straight) == len(USER_TURNS)
    adds = stream and sdk.dialect == "openai_chat"
    for metered_request, direct_request in zip(through, straight, strict=True):
        body = direct_request.body
        assert metered_request.body == (body[:1] + ADDED_TO_CHAT_STREAMS + body[1:] if adds else body)
        assert metered_request.path == direct_request.path
        assert headers_of(metered_request) == headers_of(direct_request)
    assert [request.note for request in account.requests] == ["set stream_options.include_usage" if adds else ""] * 3
    assert [heard.text for heard in metered] == [heard.text for heard in direct] == [TEXT] * 3
    if not adds:  # without the meter, a Chat stream tells no usage unless it is asked
        assert [heard.usage for heard in metered] == [heard.usage for heard in direct]
    # The cache was at work, or the comparison would say nothing: each turn finds what the one before it wrote.
    reads = [request.usage.tokens.get("read", 0) for request in account.requests if request.usage]
    assert len(reads) == 3 and 0 == reads[0] < reads[1] < reads[2]
    assert all(request.state is RequestState.SETTLED for request in account.requests)


def test_the_simulated_cache_notices_one_byte_and_one_header(rig: ClientRig) -> None:
    request = {"model": MODEL, "messages": [{"role": "user", "content": "x" * 4000}]}
    headers = {"anthropic-beta": "one"}
    cache = rig.provider.cache

    def read(changed: Mapping[str, object], **with_headers: str) -> int:
        cache.forget()
        cache.count("/v1/chat/completions", headers, request, output=1)
        return cache.count("/v1/chat/completions", headers | with_headers, changed, output=1).cache_read

    whole = read(request)
    assert whole >= 900
    assert read(request | {"messages": [{"role": "user", "content": "y" + "x" * 3999}]}) < 20
    assert read(request | {"prompt_cache_key": "other"}) == 0
    assert read(request, **{"anthropic-beta": "two"}) == 0


@pytest.mark.parametrize("cli", CLIS, ids=str)
def test_a_harness_sees_the_same_cache_on_both_ways(cli: Cli, tmp_path: Path) -> None:
    with (
        short_directory() as directory,
        rehearsal_model(directory / "model", SCRIPT) as model,
        Tap(model) as far,
        client_rig(upstreams={"rehearsal": far.url}) as rig,
    ):
        token = rig.open_lane("rehearsal", cli.dialect, key=key(1))
        metered = cli.run(rig.wire.url, token, tmp_path / "a" / "run")
        sent, received = rig.wire.requests("POST"), far.requests("POST")
        far.forget()
        direct = cli.run(far.url, key(2), tmp_path / "b" / "run")
        straight = far.requests("POST")
    # A harness's own identifiers differ from run to run, so the bytes are compared before and after the meter, and the
    # two ways by what they cost.
    assert [request.body for request in sent] == [request.body for request in received]
    assert [headers_of(request) for request in sent] == [headers_of(request) for request in received]
    assert [request.target for request in sent] == [request.target for request in received]
    assert len(sent) == len(straight) == 2
    assert [set(headers_of(request)) for request in straight] == [set(headers_of(request)) for request in sent]
    assert cli.own_account(metered) == cli.own_account(direct)
    assert cli.own_account(metered)["read"] > 0
