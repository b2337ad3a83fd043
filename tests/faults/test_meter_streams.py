"""Streams through the real meter: whatever bytes the provider sends, and wherever either side breaks off."""

from __future__ import annotations

import gzip
import itertools
import json
import threading
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException
from pathlib import Path
from typing import Any

import pytest

from controller.domain.usage import Dialect, MeteredRequest, RequestState, ZeroBillProof
from tests.world.answers import ANSWERS, anthropic, framed
from tests.world.processes import CALL_USD, MODEL, Answer, MeterRig, UnixConnection, short_directory
from tests.world.wire_upstream import Act, Play, WireUpstream, chunk, chunked, head, sized

PATHS: dict[Dialect, str] = {
    "anthropic": "/v1/messages",
    "openai_chat": "/v1/chat/completions",
    "openai_responses": "/v1/responses",
}
MESSAGES = itertools.count(1)


@pytest.fixture(scope="module")
def upstream() -> Iterator[WireUpstream]:
    with WireUpstream() as running:
        yield running


@pytest.fixture(scope="module")
def shared(upstream: WireUpstream) -> Iterator[MeterRig]:
    with short_directory() as directory, MeterRig(directory, upstream.url) as rig:
        yield rig


@pytest.fixture
def rig(shared: MeterRig, upstream: WireUpstream) -> MeterRig:
    """The shared meter with new attempts; nothing is held."""
    shared.fresh()
    upstream.plays.clear()
    upstream.hold.clear()
    upstream.arrived = threading.Semaphore(0)
    upstream.requests = 0
    return shared


def stream_of(dialect: str = "anthropic", newline: bytes = b"\n") -> bytes:
    """A stream of a message that no other test has; it costs CALL_USD."""
    return ANSWERS[dialect](message_id=f"msg_{next(MESSAGES)}").framed(newline)


def body_of(dialect: str, stream: bool) -> dict[str, Any]:
    body: dict[str, Any] = {"model": MODEL, "stream": stream}
    if dialect == "openai_responses":
        return body | {"input": "hi", "max_output_tokens": 100}
    return body | {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 100}


def connect(rig: MeterRig, number: int = 1, dialect: Dialect = "anthropic", *, stream: bool = True) -> UnixConnection:
    """A connection whose request is on its way."""
    connection = UnixConnection(rig.socket)
    headers = {"Authorization": f"Bearer {rig.token(number)}", "Content-Type": "application/json"}
    connection.request("POST", PATHS[dialect], json.dumps(body_of(dialect, stream)), headers)
    return connection


def ask(rig: MeterRig, number: int = 1, dialect: Dialect = "anthropic", *, stream: bool = True) -> Answer | None:
    """The whole answer; None when it broke off."""
    connection = connect(rig, number, dialect, stream=stream)
    try:
        response = connection.getresponse()
        return Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
    except (OSError, HTTPException):
        return None
    finally:
        connection.close()


def played(rig: MeterRig, upstream: WireUpstream, play: Play, dialect: Dialect = "anthropic") -> Answer | None:
    """What the harness gets when the provider plays this for attempt 1."""
    upstream.plays["key"] = play
    rig.open(dialect=dialect, key="key")
    return ask(rig, dialect=dialect)


def the_request(rig: MeterRig, number: int = 1) -> MeteredRequest:
    (request,) = rig.settled_account(number).requests
    return request


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


def flushed(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=16 + zlib.MAX_WBITS)
    parts = [packer.compress(part + b"\n\n") + packer.flush(zlib.Z_SYNC_FLUSH) for part in data.split(b"\n\n")[:-1]]
    return b"".join([*parts, packer.flush()])


@pytest.mark.parametrize("size", [1, 7, 2**16])
@pytest.mark.parametrize("newline", [b"\n", b"\r\n", b"\r"], ids=["LF", "CRLF", "CR"])
@pytest.mark.parametrize("dialect", sorted(PATHS))
def test_any_framing_and_any_cut_passes_untouched_and_settles(
    rig: MeterRig, upstream: WireUpstream, dialect: Dialect, newline: bytes, size: int
) -> None:
    wire = b"\xef\xbb\xbf: ping" + newline * 2 + stream_of(dialect, newline)
    answer = played(rig, upstream, chunked(wire, size=size), dialect)
    assert answer is not None and (answer.status, answer.body) == (200, wire)
    request = the_request(rig)
    assert (request.state, request.usd) == (RequestState.SETTLED, CALL_USD), request.note


@pytest.mark.parametrize(
    ("pack", "announced"),
    [
        (gzip.compress, "gzip"),
        (gzip.compress, None),
        (flushed, "gzip"),
        (flushed, None),
        (zlib.compress, "deflate"),
        (zlib.compress, None),
        (raw_deflate, "deflate"),
    ],
)
def test_a_compressed_stream_passes_untouched_and_settles(
    rig: MeterRig, upstream: WireUpstream, pack: Callable[[bytes], bytes], announced: str | None
) -> None:
    wire = pack(stream_of())
    headers = {"Content_Encoding": announced} if announced else {}
    answer = played(rig, upstream, chunked(wire, size=5, **headers))
    assert answer is not None and answer.body == wire and answer.headers.get("content-encoding") == announced
    assert (the_request(rig).state, the_request(rig).usd) == (RequestState.SETTLED, CALL_USD)


def test_an_encoding_that_is_not_read_passes_and_is_unknown(rig: MeterRig, upstream: WireUpstream) -> None:
    answer = played(rig, upstream, chunked(b"\x8b\x02\x80hello\x03", Content_Encoding="br"))
    assert answer is not None and answer.body == b"\x8b\x02\x80hello\x03"
    assert the_request(rig).state is RequestState.UNKNOWN and "'br'" in the_request(rig).note


def test_an_answer_that_ends_with_its_connection_settles(rig: MeterRig, upstream: WireUpstream) -> None:
    wire = stream_of()
    answer = played(rig, upstream, [head(Connection="close"), wire, Act.CLOSE])
    assert answer is not None and answer.body == wire
    assert (the_request(rig).state, the_request(rig).usd) == (RequestState.SETTLED, CALL_USD)


def test_each_event_is_passed_on_before_the_next_one_comes(rig: MeterRig, upstream: WireUpstream) -> None:
    wire = stream_of()
    first, rest = wire[: wire.index(b"\n\n") + 2], wire[wire.index(b"\n\n") + 2 :]
    upstream.plays["key"] = [head(Transfer_Encoding="chunked"), chunk(first), Act.HOLD, chunk(rest), chunk(b"")]
    rig.open(dialect="anthropic", key="key")
    connection = connect(rig)
    response = connection.getresponse()
    assert response.read(len(first)) == first  # while the provider waits
    upstream.hold.set()
    assert response.read() == rest
    connection.close()
    assert the_request(rig).usd == CALL_USD


END = b'event: message_stop\ndata: {"type": "message_stop"}\n\n'


@pytest.mark.parametrize(
    ("cut", "settles"),
    [
        ("before the head", False),
        ("in the head", False),
        ("in an event", False),
        ("before the end mark", False),
        ("after the end mark", True),
    ],
)
def test_a_reset_is_unknown_unless_the_stream_had_named_its_end(
    rig: MeterRig, upstream: WireUpstream, cut: str, settles: bool
) -> None:
    wire = stream_of()
    assert wire.endswith(END)
    opened = head(Transfer_Encoding="chunked")
    plays: dict[str, Play] = {
        "before the head": [Act.RESET],
        "in the head": [opened[:30], Act.RESET],
        "in an event": [opened, chunk(wire[:200]), Act.HOLD, Act.RESET],
        "before the end mark": [opened, chunk(wire[: -len(END)]), Act.HOLD, Act.RESET],
        "after the end mark": [opened, chunk(wire), Act.HOLD, Act.RESET],
    }
    upstream.plays["key"] = plays[cut]
    rig.open(dialect="anthropic", key="key")
    connection = connect(rig)
    if Act.HOLD in plays[cut]:
        response = connection.getresponse()
        assert response.read(1)  # what was sent is not lost in the reset
        upstream.hold.set()
        with pytest.raises((OSError, HTTPException)):
            response.read()
    else:
        assert connection.getresponse().status == 502
    connection.close()
    request = the_request(rig)
    assert request.state is (RequestState.SETTLED if settles else RequestState.UNKNOWN)
    assert request.usd == (CALL_USD if settles else None) and "broke off" in request.note
    assert upstream.requests == 1  # never sent again


def test_a_provider_that_breaks_off_at_any_byte_never_settles_for_less(rig: MeterRig, upstream: WireUpstream) -> None:
    wire = stream_of()
    cuts = [*range(0, len(wire), len(wire) // 20), *range(len(wire) - 8, len(wire) + 1)]
    for number, cut in enumerate(cuts, start=1):
        part = wire[:cut].replace(b"msg_", f"msg_{number}_".encode())
        upstream.plays[f"key-{number}"] = [head(Connection="close"), part, Act.CLOSE]
        rig.open(number, dialect="anthropic", key=f"key-{number}")
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: ask(rig, number), range(1, len(cuts) + 1)))
    for number, cut in enumerate(cuts, start=1):
        state, usd = the_request(rig, number).state, the_request(rig, number).usd
        whole = cut == len(wire)
        assert (state, usd) == ((RequestState.SETTLED, CALL_USD) if whole else (RequestState.UNKNOWN, None)), cut


def test_a_client_that_leaves_at_any_byte_changes_nothing(rig: MeterRig, upstream: WireUpstream) -> None:
    wire = stream_of()
    places = list(range(0, len(wire), len(wire) // 20))
    for number in range(1, len(places) + 1):
        own = wire.replace(b"msg_", f"msg_{number}_".encode())
        upstream.plays[f"key-{number}"] = [
            head(Transfer_Encoding="chunked"),
            *(chunk(own[start : start + 64]) for start in range(0, len(own) - 64, 64)),
            Act.HOLD,
            chunk(own[(len(own) - 1) // 64 * 64 :] if len(own) % 64 else own[-64:]),
            chunk(b""),
        ]
        rig.open(number, dialect="anthropic", key=f"key-{number}")
    for number, place in enumerate(places, start=1):
        connection = connect(rig, number)
        assert upstream.arrived.acquire(timeout=30)  # a client that leaves earlier may leave nothing to account for
        if place:
            connection.getresponse().read(min(place, len(wire) - 128))
        connection.close()
    upstream.hold.set()
    for number in range(1, len(places) + 1):
        assert (the_request(rig, number).state, the_request(rig, number).usd) == (RequestState.SETTLED, CALL_USD)


def resident_bytes(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))


def test_stalled_clients_hold_up_nobody_and_fill_no_memory(rig: MeterRig, upstream: WireUpstream) -> None:
    stalled, others, each = 8, 12, 2**24
    filler = framed([("content_block_delta", {"delta": {"text": "x" * 40_000}})])
    flood = [chunk(filler)] * (each // len(filler))
    connections = []
    for number in range(1, stalled + 1):
        wire = stream_of()
        first = wire.index(b"\n\n") + 2
        opened = [head(Transfer_Encoding="chunked"), chunk(wire[:first])]
        upstream.plays[f"key-{number}"] = [*opened, *flood, chunk(wire[first:]), chunk(b"")]
        rig.open(number, dialect="anthropic", key=f"key-{number}")
    before = resident_bytes(rig.service.process.pid)
    for number in range(1, stalled + 1):
        connections.append(connect(rig, number))
        assert connections[-1].getresponse().read(1)  # and never reads again
    for number in range(stalled + 1, stalled + others + 1):
        upstream.plays[f"key-{number}"] = chunked(stream_of(), size=100)
        rig.open(number, dialect="anthropic", key=f"key-{number}")
        answer = ask(rig, number)
        assert answer is not None and answer.status == 200
    grown = resident_bytes(rig.service.process.pid) - before
    assert all(rig.account(number).requests[0].ended_at is None for number in range(1, stalled + 1))
    assert grown < stalled * each // 4
    for connection in connections:
        connection.close()
    for number in range(1, stalled + others + 1):
        assert the_request(rig, number).usd == CALL_USD


def test_a_provider_that_falls_silent_is_given_up(upstream: WireUpstream) -> None:
    upstream.hold.clear()
    with short_directory() as directory, MeterRig(directory, upstream.url, idle_seconds=0.5) as rig:
        for number, wire in enumerate((stream_of()[: -len(END)], stream_of()), start=1):
            upstream.plays[f"key-{number}"] = [head(Transfer_Encoding="chunked"), chunk(wire), Act.HOLD]
            rig.open(number, dialect="anthropic", key=f"key-{number}")
            assert ask(rig, number) is None
        assert (the_request(rig, 1).state, the_request(rig, 1).usd) == (RequestState.UNKNOWN, None)
        assert (the_request(rig, 2).state, the_request(rig, 2).usd) == (RequestState.SETTLED, CALL_USD)
        upstream.hold.set()


OVERLOADED = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}


def test_an_overload_inside_a_stream_is_unknown(rig: MeterRig, upstream: WireUpstream) -> None:
    wire = framed([*anthropic(message_id="msg_529").events[:5], ("error", OVERLOADED)])
    answer = played(rig, upstream, chunked(wire))
    assert answer is not None and answer.body == wire
    request = the_request(rig)
    assert (request.state, request.provider_message_id) == (RequestState.UNKNOWN, "msg_529")
    assert "error event" in request.note


@pytest.mark.parametrize("usage", [{}, {"usage": {"input_tokens": 9, "output_tokens": 1}}])
def test_an_error_with_status_200_is_unknown(rig: MeterRig, upstream: WireUpstream, usage: dict[str, Any]) -> None:
    answer = played(rig, upstream, sized(json.dumps(OVERLOADED | usage).encode()))
    assert answer is not None and answer.json()["type"] == "error"
    assert the_request(rig).state is RequestState.UNKNOWN and "error" in the_request(rig).note


def test_an_error_status_is_free_only_by_a_rule(rig: MeterRig, upstream: WireUpstream) -> None:
    raw = json.dumps(OVERLOADED).encode()
    answer = played(rig, upstream, [head("529 Overloaded", Content_Length=str(len(raw)), Retry_After="7"), raw])
    assert answer is not None and (answer.status, answer.body, answer.headers["retry-after"]) == (529, raw, "7")
    assert the_request(rig).zero_bill_proof is ZeroBillProof.DOCUMENTED_RULE


def test_a_page_with_status_200_is_unknown(rig: MeterRig, upstream: WireUpstream) -> None:
    answer = played(rig, upstream, sized(b"<html>sign in</html>", Content_Type="text/html"))
    assert answer is not None and answer.body == b"<html>sign in</html>"
    assert the_request(rig).state is RequestState.UNKNOWN and "text/html" in the_request(rig).note


@pytest.mark.parametrize("value", ["\x1b[2J", "a\x7fb", "a\x01b"])
def test_a_header_that_may_not_be_sent_on_costs_the_client_its_answer_and_not_the_account(
    rig: MeterRig, upstream: WireUpstream, value: str
) -> None:
    assert played(rig, upstream, chunked(stream_of(), X_Odd=value)) is None
    assert (the_request(rig).state, the_request(rig).usd) == (RequestState.SETTLED, CALL_USD)
    assert b"defect" not in rig.service.log_path.read_bytes()


@pytest.mark.parametrize("name", ["msg_\ud800", "msg_\0", "msg_\n" + "x" * 600])
def test_names_that_no_ledger_can_keep_leave_no_request_open(rig: MeterRig, upstream: WireUpstream, name: str) -> None:
    payload = {"id": name, "model": name, "type": "message", "usage": {"input_tokens": 1, name: 5}}
    answer = played(rig, upstream, sized(json.dumps(payload).encode()))
    assert answer is not None and answer.status == 200
    assert the_request(rig).state is RequestState.UNKNOWN
    assert rig.service.process.poll() is None


def bombs() -> Sequence[Any]:
    zeros = gzip.compress(b"data: " + b"0" * 2**25)
    return [
        pytest.param(chunked(zeros), "decompresses", id="gzip"),
        pytest.param(
            chunked(zeros, Content_Type="application/json", Content_Encoding="gzip"), "decompresses", id="json"
        ),
        pytest.param(chunked(b"data: " + b"x" * 18 * 2**20, size=2**20), "an event is longer", id="event"),
        pytest.param(chunked(b"[" * 2**20, Content_Type="application/json"), "can't be read", id="nesting"),
    ]


@pytest.mark.parametrize(("play", "word"), bombs())
def test_bombs_pass_and_are_not_read(rig: MeterRig, upstream: WireUpstream, play: list[bytes], word: str) -> None:
    before = resident_bytes(rig.service.process.pid)
    answer = played(rig, upstream, play)
    sent = b"".join(play[1:])
    assert answer is not None and len(answer.body) > len(sent) * 0.99 - 1_000
    request = the_request(rig)
    assert request.state is RequestState.UNKNOWN and word in request.note
    assert resident_bytes(rig.service.process.pid) - before < 2**27
