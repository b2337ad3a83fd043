"""The behaviour vectors, each against the real meter and a provider whose bytes are written down."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

import pytest

from controller.domain.limits import SpendLimits
from controller.domain.money import usd_from_text
from controller.domain.retail import RetailPolicy, Rounding, retail_usd
from controller.domain.usage import MeteredRequest, RequestState, ZeroBillProof
from tests.faults.test_meter_streams import ask, flushed
from tests.world.answers import anthropic, chat, framed, responses
from tests.world.processes import CALL_USD, MODEL, MeterRig, call, short_directory
from tests.world.wire_upstream import Play, WireUpstream, chunk, chunked, head, sized

ASSETS: Final = Path(__file__).parents[1] / "assets"
VECTORS: Final = {case["id"]: case for case in json.loads((ASSETS / "metering.json").read_text())["behaviour"]}


class Stage:
    """A meter and the provider behind it; every ask is an attempt of its own unless told otherwise."""

    def __init__(self, rig: MeterRig, upstream: WireUpstream) -> None:
        self.rig, self.upstream = rig, upstream

    def opened(self, dialect: str, number: int = 1, **terms: Any) -> None:
        self.rig.open(number, dialect=dialect, key=f"key-{number}", **terms)

    def play(self, play: Play, number: int = 1) -> None:
        self.upstream.plays[f"key-{number}"] = play

    def requests(self, number: int = 1) -> tuple[MeteredRequest, ...]:
        return tuple(self.rig.settled_account(number).requests)

    def settled_tokens(self, dialect: str, play: Play) -> dict[str, int]:
        """What one answer is settled as."""
        self.rig.fresh()
        self.opened(dialect)
        self.play(play)
        ask(self.rig, dialect=dialect, stream=b"event-stream" in play[0])  # type: ignore[arg-type, operator]
        (request,) = self.requests()
        assert request.state is RequestState.SETTLED and request.usage is not None, request.note
        return {str(name): count for name, count in request.usage.tokens.items()}


@pytest.fixture(scope="module")
def running() -> Iterator[Stage]:
    with WireUpstream() as upstream, short_directory() as directory, MeterRig(directory, upstream.url) as rig:
        yield Stage(rig, upstream)


@pytest.fixture
def stage(running: Stage) -> Stage:
    running.rig.fresh()
    return running


def v07(stage: Stage) -> None:
    def stream(message_id: str, start: int, delta: int) -> list[bytes]:
        begun = {"id": message_id, "model": MODEL, "usage": {"input_tokens": start, "output_tokens": 1}}
        return chunked(
            framed(
                [
                    ("message_start", {"message": begun}),
                    ("message_delta", {"usage": {"input_tokens": delta, "output_tokens": 2}}),
                    ("message_stop", {}),
                ]
            )
        )

    assert stage.settled_tokens("anthropic", stream("msg_v07a", 0, 9)) == {"in": 9, "out": 2}
    assert stage.settled_tokens("anthropic", stream("msg_v07b", 9, 0)) == {"in": 0, "out": 2}


def v10(stage: Stage) -> None:
    payload = {"id": "msg_v10", "model": MODEL, "usage": {"prompt_tokens": 0, "completion_tokens": 0}}
    assert stage.settled_tokens("openai_chat", sized(json.dumps(payload).encode())) == {"in": 0, "out": 0}
    assert [request.usd for request in stage.requests()] == ["0"]


def v11(stage: Stage) -> None:
    head_of = {"id": "msg_v11", "model": MODEL}
    texts: list[tuple[str, Any]] = [("", head_of | {"choices": [{"delta": {}}], "usage": None})] * 3
    final = head_of | {"choices": [], "usage": {"prompt_tokens": 30, "completion_tokens": 12}}
    wire = chunked(framed([*texts, ("", final), ("", "[DONE]")]))
    assert stage.settled_tokens("openai_chat", wire) == {"in": 30, "out": 12}


def a_model_off_the_lane(stage: Stage) -> None:
    wire = anthropic(message_id="msg_switch").framed().replace(MODEL.encode(), b"m-a-20260301")
    stage.opened("anthropic")
    stage.play(chunked(wire))
    ask(stage.rig)
    (request,) = stage.requests()
    assert (request.state, request.usd, request.observed_model) == (RequestState.UNKNOWN, None, "m-a-20260301")
    assert "m-a-20260301" in request.note and "outside the lane" in request.note


def v24(stage: Stage) -> None:
    plays: list[Play] = [
        [head("500 Internal Server Error", Content_Length="2"), b"{}"],
        [head("429 Too Many Requests", Content_Length="2"), b"{}"],
        chunked(anthropic(message_id="msg_v24").framed()),
    ]
    stage.opened("anthropic")
    for play in plays:
        stage.play(play)
        ask(stage.rig)
    failed, limited, answered = stage.requests()
    assert [request.counts for request in (failed, limited, answered)] == [True] * 3
    assert (answered.state, answered.usd) == (RequestState.SETTLED, "0.02")
    # The scripted provider documents that it bills no error; without such a rule both would be unknown.
    assert {failed.zero_bill_proof, limited.zero_bill_proof} == {ZeroBillProof.DOCUMENTED_RULE}


def v25(stage: Stage) -> None:
    stage.opened("anthropic")
    for message in ("msg_v25a", "msg_v25b"):
        stage.play(chunked(anthropic(message_id=message).framed()))
        ask(stage.rig)
    first, second = stage.requests()
    assert first.body_digest == second.body_digest and first.usd == second.usd == CALL_USD


def v26(stage: Stage) -> None:
    stage.opened("openai_responses")
    stage.play(chunked(responses(message_id="resp_t").framed()))
    ask(stage.rig, dialect="openai_responses")
    headers = {"Authorization": f"Bearer {stage.rig.token()}"}
    assert call(stage.rig.socket, "GET", "/v1/responses/resp_t", headers=headers).status == 404
    assert [request.usd for request in stage.requests()] == [CALL_USD]


def v27(stage: Stage) -> None:
    for newline in (b"\r\n", b"\r"):
        wire = chat(message_id=f"msg_v27_{len(newline)}").framed(newline)
        cut = wire.index(newline * 2) + 1  # between CR and LF, or between the two CRs
        parts = [chunk(part) for part in (wire[:cut], wire[cut : cut + 1], wire[cut + 1 :], b"")]
        play = [head(Transfer_Encoding="chunked"), *parts]
        assert stage.settled_tokens("openai_chat", play) == {"in": 3_000, "out": 400}


def v29(stage: Stage) -> None:
    wire = chunked(flushed(anthropic(message_id="msg_v29").framed()), Content_Encoding="gzip")
    assert stage.settled_tokens("anthropic", wire) == {"in": 3_000, "out": 400}


def v30(stage: Stage) -> None:
    # 40 requests of 0.025 fill a ceiling of 1.00 exactly, and the 41st is refused.
    limits = SpendLimits(usd_per_attempt="1.00")
    stage.opened("anthropic", limits=limits)
    statuses = []
    for number in range(41):
        message = {"id": f"msg_v30_{number}", "model": MODEL, "usage": {"input_tokens": 6_250, "output_tokens": 0}}
        stage.play(sized(json.dumps(message).encode()))
        answer = ask(stage.rig, stream=False)
        statuses.append(answer.status if answer else None)
    assert statuses == [200] * 40 + [403]
    usds = [request.usd for request in stage.requests()]
    assert usds == ["0.025"] * 40 and sum((usd_from_text(usd or "0") for usd in usds), Fraction(0)) == 1


def v31(_: Stage) -> None:
    costs = [usd_from_text(text) for text in ("0.0012345", "0.0012355", "0.0000004")]

    def retail(rounding: Rounding, per: Any) -> Fraction:
        policy = RetailPolicy(name="x", source="x", quantum_usd="0.000001", rounding=rounding, rounded_per=per)
        return retail_usd(costs, policy)

    rounded = [retail("half_up", "request"), retail("half_up", "run"), retail("half_even", "request")]
    rounded += [retail("ceiling", "request"), retail("ceiling", "run")]
    assert rounded == [Fraction(text) for text in ("0.002471", "0.002470", "0.002470", "0.002472", "0.002471")]


CHECKS: Final[dict[str, Callable[[Stage], None]]] = {
    "V07": v07,
    "V10": v10,
    "V11": v11,
    "V22": a_model_off_the_lane,
    "V24": v24,
    "V25": v25,
    "V26": v26,
    "V27": v27,
    "V29": v29,
    "V30": v30,
    "V31": v31,
    "V37": a_model_off_the_lane,
}


@pytest.mark.parametrize("vector", VECTORS)
def test_behaviour(stage: Stage, vector: str) -> None:
    CHECKS[vector](stage)
