"""The load generator counts what came, however the network cut it, and the figures are what they are called."""

from __future__ import annotations

import asyncio

import pytest

from benchmarks.meter import quantile, slope_per_minute
from benchmarks.meter_load import Client, Load

HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
ANSWER = HEAD + b"9\r\ndata: 1\n\n\r\n9\r\ndata: 2\n\n\r\nf\r\ndata: [DONE]\n\n\n\r\n0\r\n\r\n"
LOAD = Load("unix:/none", "/v1/chat/completions", [["token-1"]], 3, 0, 400, 0, 1.0)


class Wire(asyncio.Transport):
    """Keeps what was written."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written.append(bytes(data))

    def close(self) -> None:
        """Nothing to close."""


async def client_that_received(parts: list[bytes]) -> tuple[Client, Wire]:
    wire = Wire()
    client = Client(LOAD, ["token-1"], asyncio.get_running_loop().create_future())
    client.connection_made(wire)
    for part in parts:
        client.data_received(part)
    return client, wire


@pytest.mark.parametrize("size", range(1, 20))
async def test_every_event_is_counted_once_however_it_is_cut(size: int) -> None:
    client, _ = await client_that_received([ANSWER[at : at + size] for at in range(0, len(ANSWER), size)])
    assert (client.events, client.answers, client.fault) == (3, 1, "")
    assert len(client.first_byte_ms) == 1


async def test_the_request_names_the_script_and_the_token() -> None:
    _, wire = await client_that_received([])
    (request,) = wire.written
    assert b"chunks=3 interval_us=0 " in request
    assert b"Authorization: Bearer token-1\r\n" in request
    assert request.partition(b"\r\n\r\n")[2].endswith(b"}")


async def test_another_status_than_200_is_a_fault() -> None:
    client, _ = await client_that_received([b"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno"])
    assert "403" in client.fault
    assert client.answers == 0


def test_a_quantile_is_the_nearest_rank() -> None:
    values = [float(number) for number in range(100, 0, -1)]
    assert (quantile(values, 50), quantile(values, 99), quantile([7.0], 99)) == (50.0, 99.0, 7.0)


def test_the_slope_is_by_minute() -> None:
    assert slope_per_minute([(0.0, 50.0), (30.0, 51.0), (60.0, 52.0)]) == pytest.approx(2.0)
