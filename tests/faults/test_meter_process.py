"""The meter as a real process: whatever happens to the client, the provider or itself, each request ends once."""

from __future__ import annotations

import contextlib
import gzip
import json
import resource
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from http.client import HTTPException
from pathlib import Path

import pytest

from controller.domain.limits import SpendLimits
from controller.domain.money import usd_from_text
from controller.domain.usage import Dialect, RequestState, ZeroBillProof
from tests.world.processes import (
    CALL_USD,
    MODEL,
    MeterRig,
    ServiceProcess,
    UnixConnection,
    call,
    raw_call,
    short_directory,
)
from tests.world.upstream import ScriptedUpstream

PATHS: dict[Dialect, str] = {
    "anthropic": "/v1/messages",
    "openai_chat": "/v1/chat/completions",
    "openai_responses": "/v1/responses",
}


@pytest.fixture(scope="module")
def shared() -> Iterator[tuple[MeterRig, ScriptedUpstream]]:
    with ScriptedUpstream() as upstream, short_directory() as directory, MeterRig(directory, upstream.url) as rig:
        yield rig, upstream


@pytest.fixture
def rig(shared: tuple[MeterRig, ScriptedUpstream]) -> MeterRig:
    """The shared meter, with new attempts and a forgetful upstream."""
    running, upstream = shared
    running.fresh()
    upstream.forget()
    return running


@pytest.fixture
def upstream(shared: tuple[MeterRig, ScriptedUpstream]) -> ScriptedUpstream:
    """The provider behind the shared meter."""
    return shared[1]


@pytest.fixture
def alone() -> Iterator[tuple[MeterRig, ScriptedUpstream]]:
    """A meter of one's own, to be broken."""
    with ScriptedUpstream() as upstream, short_directory() as directory, MeterRig(directory, upstream.url) as rig:
        yield rig, upstream


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("dialect", sorted(PATHS))
def test_every_dialect_settles_exactly(rig: MeterRig, dialect: Dialect, stream: bool) -> None:
    rig.open(dialect=dialect)
    answer = rig.chat(target=PATHS[dialect], stream=stream)
    assert answer.status == 200
    (request,) = rig.settled_account().requests
    assert (request.state, request.usd, request.status) == (RequestState.SETTLED, CALL_USD, 200)
    assert request.usage is not None and request.usage.tokens == {"in": 3000, "out": 400}
    assert (request.provider_message_id or "").startswith("msg_") and request.observed_model == MODEL


def test_bytes_and_headers_pass_untouched(rig: MeterRig, upstream: ScriptedUpstream) -> None:
    rig.open(dialect="anthropic", key="secret-key")
    body = b'{ "model": "rehearsal-1",\n "max_tokens" :5, "stream": true, "metadata": {"user_id": "\\u2028 \xc3\xa9"} }'
    headers = {"x-api-key": rig.token(), "anthropic-version": "2023-06-01", "Cookie": "c", "User-Agent": "h/1"}
    answer = call(rig.socket, "POST", "/v1/messages?beta=true", body=body, headers=headers)
    (seen,) = upstream.received
    assert seen.body == body and seen.path == "/v1/messages?beta=true"
    lowered = {name.lower(): value for name, value in seen.headers.items()}
    assert lowered["x-api-key"] == "secret-key" and lowered["accept-encoding"] == "identity"
    assert lowered["anthropic-version"] == "2023-06-01" and lowered["user-agent"] == "h/1"
    assert "cookie" not in lowered and "authorization" not in lowered
    assert answer.body.startswith(b"event: message_start\ndata: ") and answer.headers["request-id"]
    assert "set-cookie" not in answer.headers


def test_a_chat_stream_asks_for_usage_and_says_so(rig: MeterRig, upstream: ScriptedUpstream) -> None:
    rig.open()
    rig.chat(stream=True)
    assert json.loads(upstream.received[0].body)["stream_options"] == {"include_usage": True}
    assert rig.settled_account().requests[0].note == "set stream_options.include_usage"


def test_a_client_that_leaves_mid_stream_still_settles(rig: MeterRig, upstream: ScriptedUpstream) -> None:
    rig.open(key="long+stall")
    connection = UnixConnection(rig.socket)
    body = json.dumps({"model": MODEL, "messages": [], "stream": True})
    connection.request("POST", "/v1/chat/completions", body, {"Authorization": f"Bearer {rig.token()}"})
    assert connection.getresponse().read(10)
    connection.close()
    upstream.hold.set()
    (request,) = rig.settled_account().requests
    assert (request.state, request.usd) == (RequestState.SETTLED, CALL_USD)


def test_a_client_that_reads_nothing_is_dropped_and_its_request_settles(upstream: ScriptedUpstream) -> None:
    upstream.forget()
    with short_directory() as directory, MeterRig(directory, upstream.url, client_stall_seconds=0.2) as rig:
        rig.open(key="flood")
        connection = UnixConnection(rig.socket)
        body = json.dumps({"model": MODEL, "messages": [], "stream": True})
        connection.request("POST", "/v1/chat/completions", body, {"Authorization": f"Bearer {rig.token()}"})
        assert upstream.finished.wait(60)  # though nobody took the answer
        (request,) = rig.settled_account().requests
        assert (request.state, request.usd) == (RequestState.SETTLED, CALL_USD)
        connection.close()


def test_a_kill_between_sending_and_answering_is_unknown(rig: MeterRig, upstream: ScriptedUpstream) -> None:
    rig.open(key="held")
    connection = UnixConnection(rig.socket)
    connection.request("POST", "/v1/chat/completions", json.dumps({"model": MODEL}), {"x-api-key": rig.token()})
    assert upstream.reached.wait(30)
    rig.service.kill()
    connection.close()
    assert rig.account().requests[0].state is RequestState.SENT
    rig.start()
    (request,) = rig.settled_account().requests
    assert (request.state, request.usd) == (RequestState.UNKNOWN, None)
    assert len(upstream.received) == 1  # never sent again


@pytest.mark.parametrize("received", [1, 7, 20])
def test_a_kill_under_load_leaves_nothing_sent_that_was_not_accepted(
    alone: tuple[MeterRig, ScriptedUpstream], received: int
) -> None:
    rig, upstream = alone
    rig.open(limits=SpendLimits(usd_per_attempt="100", usd_per_logical_run="100"))

    def send(number: int) -> None:
        with contextlib.suppress(OSError, HTTPException):
            rig.chat(user=str(number), stream=number % 2 == 0)
        if len(upstream.received) >= received:
            rig.service.process.kill()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(send, range(40)))
    rig.service.process.wait()
    rig.start()
    requests = rig.account().requests
    finals = (RequestState.SETTLED, RequestState.UNKNOWN, RequestState.ZERO_BILL)
    assert all(request.state in finals and request.ended_at is not None for request in requests)
    # Every request that reached the provider is settled or unknown; what is proven unsent never reached it.
    possible = sum(request.state is not RequestState.ZERO_BILL for request in requests)
    assert received <= len(upstream.received) <= possible
    assert [request.sequence for request in requests] == list(range(1, len(requests) + 1))


def test_a_stop_drains_the_answer_in_flight(upstream: ScriptedUpstream) -> None:
    upstream.forget()
    with short_directory() as directory, MeterRig(directory, upstream.url) as rig:
        rig.open(key="held")
        with ThreadPoolExecutor(1) as pool:
            answer = pool.submit(rig.chat)
            assert upstream.reached.wait(30)
            rig.service.process.terminate()
            upstream.hold.set()
            assert answer.result().status == 200
        assert rig.service.stop() == 0
        assert rig.settled_account().requests[0].state is RequestState.SETTLED


def test_a_stop_that_can_wait_no_longer_records_unknown(upstream: ScriptedUpstream) -> None:
    upstream.forget()
    with short_directory() as directory, MeterRig(directory, upstream.url, drain_seconds=0.1) as rig:
        rig.open(key="held")
        with ThreadPoolExecutor(1) as pool:
            answer = pool.submit(rig.chat)
            assert upstream.reached.wait(30)
            assert rig.service.stop() == 0
            upstream.hold.set()
            assert isinstance(answer.exception(), OSError) or answer.result().status == 502
        assert rig.settled_account().requests[0].state is RequestState.UNKNOWN


def test_tokens_are_not_shared(rig: MeterRig) -> None:
    rig.open(1)
    rig.open(2, dialect="anthropic")
    assert rig.chat(1).status == 200
    assert rig.chat(2).status == 400  # its token opens another dialect
    assert rig.chat(3).status == 401
    both = {"Authorization": f"Bearer {rig.token(1)}", "x-api-key": rig.token(2)}
    assert call(rig.socket, "POST", "/v1/chat/completions", body=b"{}", headers=both).status == 401
    assert len(rig.settled_account(1).requests) == 1 and not rig.settled_account(2).requests
    rig.ledger.close_attempt(rig.attempt_id())
    assert rig.chat(1).status == 401


def test_the_61st_request_is_refused_for_good(rig: MeterRig, upstream: ScriptedUpstream) -> None:
    rig.open(limits=SpendLimits(usd_per_attempt="100", usd_per_logical_run="100"))
    with ThreadPoolExecutor(8) as pool:
        statuses = list(pool.map(lambda _: rig.chat().status, range(61)))
    assert sorted(statuses) == [200] * 60 + [403]
    account = rig.settled_account()
    assert len(account.requests) == len(upstream.received) == 60
    assert [request.sequence for request in account.requests] == list(range(1, 61))
    (refusal,) = account.refusals
    assert refusal.limit and "requests_per_attempt" in refusal.reason


@pytest.mark.parametrize("parallel", [1, 6])
def test_the_money_ceiling_is_passed_by_one_request_at_most(rig: MeterRig, parallel: int) -> None:
    rig.open(limits=SpendLimits(usd_per_attempt="0.07"))
    with ThreadPoolExecutor(parallel) as pool:
        # Long enough that what is in flight is bounded from above by its own bytes and its own output limit.
        statuses = list(pool.map(lambda _: rig.chat(user="x" * 9_000, max_tokens=400).status, range(9)))
    assert sorted(statuses) == [200] * 4 + [403] * 5
    account = rig.settled_account()
    spent = sum((usd_from_text(request.usd or "0") for request in account.requests), Fraction(0))
    assert spent == Fraction(8, 100)
    assert all(refusal.limit for refusal in account.refusals) and len(account.refusals) == 5


def test_errors_are_free_only_where_a_rule_says_so(rig: MeterRig) -> None:
    rig.open(key="529")
    assert rig.chat().status == 529
    (request,) = rig.settled_account().requests
    assert (request.state, request.zero_bill_proof) == (RequestState.ZERO_BILL, ZeroBillProof.DOCUMENTED_RULE)
    assert request.status == 529 and request.usd == "0"


@pytest.mark.parametrize(
    ("key", "stream", "word"),
    [("truncate", True, "broke off"), ("other-model", False, "outside the lane"), ("other-model", True, "outside")],
)
def test_what_cannot_be_vouched_for_is_unknown(rig: MeterRig, key: str, stream: bool, word: str) -> None:
    rig.open(key=key)
    try:
        rig.chat(stream=stream)
    except OSError:
        assert key == "truncate"
    except Exception as error:  # http.client names a broken chunk its own way
        assert key == "truncate" and type(error).__name__ == "IncompleteRead"
    (request,) = rig.settled_account().requests
    assert (request.state, request.usd) == (RequestState.UNKNOWN, None)
    assert word in request.note


def test_an_encoded_answer_passes_as_it_is_and_is_priced(rig: MeterRig) -> None:
    rig.open(key="gzip")
    answer = rig.chat()
    assert gzip.decompress(answer.body).startswith(b'{"id"') and answer.headers["content-encoding"] == "gzip"
    (request,) = rig.settled_account().requests
    assert (request.state, request.usd) == (RequestState.SETTLED, CALL_USD)


def test_three_attempts_of_one_harness_are_three_requests(rig: MeterRig) -> None:
    for number, key in enumerate(["500", "429", "ok"], start=1):
        rig.open(number, key=key, logical_run_id="run-of-three")
        rig.chat(number)
    requests = [request for number in (1, 2, 3) for request in rig.settled_account(number).requests]
    assert [request.usd for request in requests] == ["0", "0", CALL_USD]
    assert [request.zero_bill_proof is not None for request in requests] == [True, True, False]


def test_a_header_that_cannot_be_forwarded_is_refused(rig: MeterRig, upstream: ScriptedUpstream) -> None:
    rig.open()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nx-api-key: {rig.token()}\r\nx-odd: ".encode()
    answer = raw_call(rig.socket, head + b"\xff\xfe\r\nContent-Length: 2\r\n\r\n{}")
    assert answer.startswith(b"HTTP/1.1 400")
    assert not upstream.received and not rig.settled_account().requests


@pytest.mark.parametrize("codings", [["gzip"], ["identity", "gzip"], ["identity", "deflate"], ["identity, br"]])
def test_a_body_under_any_encoding_is_refused(rig: MeterRig, upstream: ScriptedUpstream, codings: list[str]) -> None:
    rig.open()
    body = json.dumps({"model": MODEL, "messages": []}).encode()
    lines = [
        "POST /v1/chat/completions HTTP/1.1",
        "Host: x",
        f"x-api-key: {rig.token()}",
        f"Content-Length: {len(body)}",
    ]
    head = "\r\n".join([*lines, *(f"Content-Encoding: {coding}" for coding in codings), "", ""])
    answer = raw_call(rig.socket, head.encode() + body)
    assert answer.startswith(b"HTTP/1.1 400") and b"encoded" in answer
    assert not upstream.received and not rig.settled_account().requests


def test_one_request_of_absurd_size_does_not_end_the_meter(rig: MeterRig, upstream: ScriptedUpstream) -> None:
    rig.open()
    assert rig.chat(max_tokens=10**100).status == 400
    assert not upstream.received and not rig.settled_account().requests
    assert rig.chat().status == 200


def test_one_provider_message_is_settled_once(rig: MeterRig) -> None:
    rig.open(key="same-id")
    assert [rig.chat().status for _ in range(2)] == [200, 200]
    first, second = rig.settled_account().requests
    assert (first.state, second.state) == (RequestState.SETTLED, RequestState.UNKNOWN)
    assert "incident" in second.note


def test_an_equal_body_sent_again_is_a_second_charge(rig: MeterRig) -> None:
    rig.open()
    rig.chat(), rig.chat()
    first, second = rig.settled_account().requests
    assert first.body_digest == second.body_digest and first.usd == second.usd == CALL_USD


def test_a_provider_that_cannot_be_reached_was_never_sent_anything() -> None:
    with short_directory() as directory, MeterRig(directory, f"unix:{directory}/nobody.sock") as rig:
        rig.open()
        assert rig.chat().status == 502
        (request,) = rig.settled_account().requests
        assert (request.state, request.zero_bill_proof) == (RequestState.ZERO_BILL, ZeroBillProof.NEVER_SENT)


def test_counting_tokens_is_free_and_outside_the_sixty(rig: MeterRig) -> None:
    limits = SpendLimits(requests_per_attempt=1, count_tokens_per_attempt=2)
    rig.open(dialect="anthropic", limits=limits)
    target = "/v1/messages/count_tokens"
    assert [rig.chat(target=target).status for _ in range(3)] == [200, 200, 403]
    assert rig.chat(target="/v1/messages").status == 200
    states = [(request.counts, request.state) for request in rig.settled_account().requests]
    assert states == [(False, RequestState.ZERO_BILL)] * 2 + [(True, RequestState.SETTLED)]


def test_local_answers_reach_no_provider(rig: MeterRig, upstream: ScriptedUpstream) -> None:
    rig.open()
    assert call(rig.socket, "HEAD", "/").status == 200
    listed = call(rig.socket, "GET", "/v1/models?limit=1000", headers={"x-goog-api-key": rig.token()})
    assert [model["id"] for model in listed.json()["data"]] == [MODEL]
    assert call(rig.socket, "GET", "/v1/models").status == 401
    assert call(rig.socket, "GET", "/v1/responses/resp_1", headers={"x-api-key": rig.token()}).status == 404
    assert not upstream.received


def test_refusals_are_in_the_providers_words_and_recorded(rig: MeterRig, upstream: ScriptedUpstream) -> None:
    rig.open(1)
    rig.open(2, dialect="anthropic")
    chat = rig.chat(1, model="gpt-other")
    assert chat.status == 400 and chat.json()["error"]["type"] == "invalid_request_error"
    messages = rig.chat(2, target="/v1/messages", speed="fast")
    assert messages.status == 400 and messages.json()["type"] == "error"
    assert [refusal.limit for refusal in (*rig.settled_account(1).refusals, *rig.settled_account(2).refusals)] == [
        False,
        False,
    ]
    assert not upstream.received


def test_a_broken_ledger_stops_admission_and_the_process(alone: tuple[MeterRig, ScriptedUpstream]) -> None:
    rig, upstream = alone
    rig.open()
    # The kernel refuses the meter any byte past this offset, as a full disk would.
    resource.prlimit(rig.service.process.pid, resource.RLIMIT_FSIZE, (8192, 8192))
    refused = rig.chat()
    assert refused.status == 400 and "ledger" in refused.json()["error"]["message"]
    assert not upstream.received
    assert rig.service.process.wait(timeout=60) == 99


def test_a_second_meter_on_the_same_socket_is_refused(rig: MeterRig) -> None:
    second = ServiceProcess("proxy", rig.config)
    assert second.stop_code() == 82


def test_no_secret_reaches_log_or_ledger(alone: tuple[MeterRig, ScriptedUpstream]) -> None:
    rig, _ = alone
    rig.open(key="provider-secret-key")
    rig.chat(), rig.chat(5), rig.chat(1, model="x")
    for spoilt in (b"x-api-key: token-1\x01", b"token-1", b"x-api-key : token-1"):  # the parser's errors quote the line
        raw_call(rig.socket, b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n" + spoilt + b"\r\n\r\n")
    raw_call(rig.socket, b"GET /v1/x?key=token-1 HTTP/1.1\r\nHost: x\r\n\r\ntoken-1\r\n\r\n")
    rig.service.stop()
    log = rig.service.log_path.read_bytes()
    assert b"accepted" in log and b"refused" in log
    for path in rig.directory.glob("*.log"):
        assert b"token-1" not in path.read_bytes() and b"provider-secret-key" not in path.read_bytes()
    for path in rig.directory.glob("ledger.sqlite*"):
        assert b"token-1" not in path.read_bytes()


def test_a_key_file_that_others_can_read_is_refused(tmp_path: Path, alone: tuple[MeterRig, ScriptedUpstream]) -> None:
    keys = tmp_path / "keys.json"
    keys.write_text('{"a": "k-1234"}')
    keys.chmod(0o644)
    rig, _ = alone
    rig.service.stop()
    rig.config.write_text(json.dumps(json.loads(rig.config.read_text()) | {"keys": str(keys)}))
    refused = ServiceProcess("proxy", rig.config)
    assert refused.stop_code() == 72
    assert "0600" in refused.log_path.read_text() and "k-1234" not in refused.log_path.read_text()
