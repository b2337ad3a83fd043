"""Inputs to begin with: real answers, requests and a card, and the words that they are made of."""

from __future__ import annotations

import gzip
import hashlib
import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from controller.meter.admission import ROUTES
from tests.fuzz.targets import DIALECTS, admission, answer, card, events, inputs, routes
from tests.world.answers import ANSWERS
from tests.world.processes import CARD, MODEL

ASSETS: Final = Path(__file__).parents[1] / "assets"
GZIP: Final = 64
WORD: Final = re.compile(rb'"[A-Za-z_.\-0-9]{2,60}"')
MORE_WORDS: Final = (b"data: ", b"event: ", b"[DONE]", b"\n\n", b"\r\n\r\n", b"\xef\xbb\xbf", b"null", b"-1", b"1e9")


def seeds() -> Iterator[bytes]:
    """Every seed, in the form that `targets.run` takes."""
    for position, dialect in enumerate(DIALECTS):
        made = ANSWERS[dialect](texts=("Hi", "\u2028"), counts=(1, 40, 400))
        for newline in (b"\n", b"\r\n"):
            wire = made.framed(newline)
            yield from inputs(answer, bytes([position, 7]) + wire, bytes([position + GZIP, 3]) + wire)
            yield from inputs(answer, bytes([position, 255]) + gzip.compress(wire))
            yield from inputs(events, b"\0\7" + wire)
        yield from inputs(
            answer, *(bytes([position + 4, 255]) + json.dumps(body).encode() for body in _bodies(dialect))
        )
    for position, route in itertools.product(range(len(DIALECTS)), range(len(ROUTES))):
        if ROUTES[route].dialect == DIALECTS[position]:
            yield from inputs(admission, *(bytes([16 * position + route, 0]) + body for body in _requests()))
    yield from inputs(
        routes, b"POST /v1/messages?beta=true", b"GET /v1/models?limit=5", b"HEAD /", b"POST /v1beta/models/"
    )
    yield from inputs(card, CARD.model_dump_json().encode())


def _bodies(dialect: str) -> Iterator[Any]:
    """Whole answers: the priced vectors of the dialect, as the provider would send them."""
    if dialect == "gemini":
        yield [payload for _, payload in ANSWERS[dialect]().events]
    head = {"id": "msg_1", "model": MODEL, "responseId": "msg_1", "modelVersion": MODEL, "status": "completed"}
    for case in json.loads((ASSETS / "metering.json").read_text())["priced"]:
        if case["dialect"] == dialect and isinstance(case["input"], dict):
            yield head | case["input"]


def _requests() -> Iterator[bytes]:
    tool = {"name": "run", "description": "x", "input_schema": {"type": "object"}}
    function = {"type": "function", "function": {"name": "run", "parameters": {"type": "object"}}}
    messages = [{"role": "user", "content": [{"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}]}]
    for body in (
        {"model": MODEL, "max_tokens": 9, "messages": messages, "stream": True, "tools": [tool], "system": "x"},
        {"model": MODEL, "max_tokens": 9, "messages": messages, "stream": True, "tools": [function], "n": 1},
        {"model": MODEL, "messages": messages, "stream": True, "stream_options": {"include_usage": False}},
        {"model": MODEL, "input": "hi", "max_output_tokens": 9, "tools": [{"type": "custom", "name": "x"}]},
        {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]},
        {"contents": [{"role": "user", "parts": [{"text": "hi"}]}], "generationConfig": {"maxOutputTokens": 9}},
    ):
        yield json.dumps(body).encode()


def write(directory: Path) -> Path:
    """Write the seeds into `directory`, one file each, and a dictionary beside it, whose path is returned."""
    directory.mkdir(parents=True, exist_ok=True)
    words = set(MORE_WORDS)
    for seed in seeds():
        (directory / hashlib.sha256(seed).hexdigest()[:16]).write_bytes(seed)
        words.update(WORD.findall(seed))
    dictionary = directory.with_suffix(".dict")
    lines = ("".join(f"\\x{byte:02x}" for byte in word) for word in sorted(words))
    dictionary.write_text("".join(f'"{line}"\n' for line in lines))
    return dictionary
