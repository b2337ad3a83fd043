"""The metering proxy under load, beside what else could stand in its place: ratios in one run on one machine.

Load generator, provider and proxies are processes of their own, so that a proxy's CPU time is its own.
"""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks import meter_subjects as subjects
from benchmarks.meter_load import Load, Measured
from benchmarks.meter_subjects import PATHS, Subject
from benchmarks.processes import cpu_seconds, resident_bytes
from controller.domain.usage import Dialect
from controller.settings import Settings

BODY_BYTES = 60_000  # what a coding harness sends after some turns
SETTLE_SECONDS = 0.5  # what a proxy does after its last answer belongs to the measured span
CHUNKS_PER_SECOND = 100


@dataclass(frozen=True)
class Scale:
    """How much load: the defaults take about two minutes, LiteLLM's part included."""

    rounds: int = 5  # in which the subjects take turns
    first_byte_requests: int = 100  # by subject and round
    cpu_clients: int = 20
    cpu_requests: int = 2  # by client and round
    cpu_chunks: int = 200  # by answer
    stream_clients: int = 100
    stream_seconds: int = 30


LONG = Scale(stream_seconds=600)


def quantile(values: Sequence[float], per_cent: int) -> float:
    """Nearest rank."""
    return sorted(values)[max(0, -(-len(values) * per_cent // 100) - 1)]


def slope_per_minute(samples: Sequence[tuple[float, float]]) -> float:
    """Least squares of (seconds, value)."""
    return statistics.linear_regression([at for at, _ in samples], [value for _, value in samples]).slope * 60


def offer(load: Load, watch: Callable[[], None] = lambda: None) -> Measured:
    """Run the load generator on a load; `watch` is called about every second meanwhile."""
    generator = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.meter_load"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[1],
    )
    with generator:
        assert generator.stdin is not None and generator.stdout is not None
        generator.stdin.write(json.dumps(asdict(load)).encode())
        generator.stdin.close()
        while generator.poll() is None:
            watch()
            with contextlib.suppress(subprocess.TimeoutExpired):
                generator.wait(1.0)
        measured = Measured(**json.loads(generator.stdout.read()))
    if measured.faults:
        raise RuntimeError(f"{len(measured.faults)} clients failed against {load.address}: {measured.faults[0]}")
    return measured


def load_for(
    subject: Subject, *, clients: int, requests: int, chunks: int, interval_us: int, dialect: Dialect = "openai_chat"
) -> Load:
    """A load of equal requests, whose clients start evenly spread over one interval between two events."""
    return Load(
        address=subject.address,
        path=PATHS[dialect],
        tokens=subject.tokens(clients, requests, dialect),
        chunks=chunks,
        interval_us=interval_us,
        body_bytes=BODY_BYTES,
        start_interval_us=10_000 + interval_us // clients,
        seconds_max=60 + requests * (1 + 5 * chunks * interval_us / 1e6),
    )


def first_byte(competing: Sequence[Subject], scale: Scale) -> dict[str, object]:
    """Wait for the first event beyond the wait without a proxy; one request at a time, best of the rounds."""
    waits: dict[str, list[list[float]]] = {subject.name: [] for subject in competing}
    for _ in range(scale.rounds):
        for subject in competing:
            load = load_for(subject, clients=1, requests=scale.first_byte_requests, chunks=4, interval_us=0)
            # The first request makes the connections.
            waits[subject.name].append(offer(load).first_byte_ms[1:])
    straight = min(quantile(run, 50) for run in waits["straight"])
    return {"straight_p50_ms": round(straight, 2)} | {
        f"{name}_added_ms": {
            f"p{per_cent}": round(min(quantile(run, per_cent) for run in runs) - straight, 2) for per_cent in (50, 99)
        }
        | {"p99_by_round": [round(quantile(run, 99) - straight, 2) for run in runs]}
        for name, runs in waits.items()
        if name != "straight"
    }


def cpu_us_per_chunk(subject: Subject, scale: Scale, dialect: Dialect = "openai_chat") -> float:
    """The proxy's CPU time over a run, accepting and settling included, by chunk that the provider sent."""
    assert subject.pid is not None
    load = load_for(
        subject,
        clients=scale.cpu_clients,
        requests=scale.cpu_requests,
        chunks=scale.cpu_chunks,
        interval_us=1_000_000 // CHUNKS_PER_SECOND,
        dialect=dialect,
    )
    before = cpu_seconds(subject.pid)
    measured = offer(load)
    time.sleep(SETTLE_SECONDS)
    spent = cpu_seconds(subject.pid) - before
    asked = scale.cpu_clients * scale.cpu_requests
    if measured.answers != asked or (subject.rig is not None and measured.events != asked * scale.cpu_chunks):
        raise RuntimeError(f"{subject.name}: {measured.answers} answers and {measured.events} events of {asked} asked")
    return spent * 1e6 / (asked * scale.cpu_chunks)


def chunks(competing: Sequence[Subject], scale: Scale) -> dict[str, object]:
    """CPU per chunk of every proxy, in turns; and of the meter in its other dialects."""
    proxies = [subject for subject in competing if subject.pid is not None]
    spent: dict[str, list[float]] = {subject.name: [] for subject in proxies}
    for _ in range(min(3, scale.rounds)):
        for subject in proxies:
            spent[subject.name].append(cpu_us_per_chunk(subject, scale))
    best = {name: min(runs) for name, runs in spent.items()}
    row: dict[str, object] = {f"{name}_us": round(us, 1) for name, us in best.items()}
    if "litellm" in best:
        row["litellm_by_meter"] = round(best["litellm"] / best["meter"], 1)
    own = next(subject for subject in proxies if subject.name == "meter")
    others: tuple[Dialect, ...] = ("anthropic", "openai_responses")
    return row | {f"meter_{dialect}_us": round(cpu_us_per_chunk(own, scale, dialect), 1) for dialect in others}


def streams(own: Subject, scale: Scale) -> dict[str, object]:
    """Many long answers at once: the share of a core, the wait for the first event, and the course of memory."""
    assert own.pid is not None
    asked = scale.stream_seconds * CHUNKS_PER_SECOND
    load = load_for(
        own, clients=scale.stream_clients, requests=1, chunks=asked, interval_us=1_000_000 // CHUNKS_PER_SECOND
    )
    began = time.monotonic()
    memory: list[tuple[float, float]] = []
    cpu = cpu_seconds(own.pid)

    def watch() -> None:
        assert own.pid is not None
        memory.append((time.monotonic() - began, resident_bytes(own.pid) / 2**20))

    measured = offer(load, watch)
    share = (cpu_seconds(own.pid) - cpu) / measured.seconds
    if measured.events != scale.stream_clients * asked:
        raise RuntimeError(f"{measured.events} events of {scale.stream_clients * asked} arrived")
    late = memory[len(memory) // 5 : -1]  # all clients are connected, and none has ended
    return {
        "clients": scale.stream_clients,
        "seconds": measured.seconds,
        "chunks_per_second": round(measured.events / measured.seconds),
        "core_share": round(share, 2),
        "streams_per_core": round(scale.stream_clients / share),
        "first_byte_ms": {f"p{n}": round(quantile(measured.first_byte_ms, n), 2) for n in (50, 99)},
        "rss_mib": {"after_start": round(late[0][1], 1), "at_end": round(late[-1][1], 1)},
        "rss_mib_per_minute": round(slope_per_minute(late), 3),
    }


@contextlib.contextmanager
def competing_subjects(directory: Path, program: Path | None) -> Iterator[list[Subject]]:
    """The provider, the proxies in front of it, and LiteLLM's proxy when its program is given."""
    with contextlib.ExitStack() as stack:
        provider = stack.enter_context(subjects.provider(directory))
        found = [
            provider,
            stack.enter_context(subjects.envoy(directory, provider)),
            stack.enter_context(subjects.meter(directory, provider)),
        ]
        if program is not None:
            found.append(stack.enter_context(subjects.litellm(directory, provider, program)))
        yield found


def measure(scale: Scale, program: Path | None) -> dict[str, object]:
    """All rows at this scale."""
    home = Settings().state_dir / "bench"  # on a disk, which a directory for temporary files need not be
    home.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory(dir=home, prefix="m-") as directory,
        competing_subjects(Path(directory), program) as competing,
    ):
        own = next(subject for subject in competing if subject.name == "meter")
        result: dict[str, object] = {"load_average": os.getloadavg()[0]}
        result["first_byte"] = first_byte(competing, scale) | {"goal": "meter p50 <= 5, p99 <= 15"}
        result["cpu_per_chunk"] = chunks(competing, scale) | {"goal": "meter <= 60, litellm_by_meter >= 5"}
        result["streams"] = streams(own, scale) | {"goal": "streams_per_core >= 100, memory flat"}
        result["load_average_at_end"] = os.getloadavg()[0]
        result["unsettled_requests"] = own.unsettled()
        return result


def meter(*, long: bool = False) -> dict[str, object]:
    """The rows of the meter; `long` streams for ten minutes."""
    program = subjects.litellm_program()
    result = measure(LONG if long else Scale(), program if isinstance(program, Path) else None)
    return result if isinstance(program, Path) else result | {"litellm": {"skipped": program}}
