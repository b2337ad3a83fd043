"""What all dialects have in common: a request as the scripted model sees it, and the reply it gives."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Protocol

Json = dict[str, Any]

# OpenAI's replies carry a time. A constant keeps a resent request's reply the same in every byte but its id.
CREATED_AT: Final = 1_767_225_600
EVENT_STREAM: Final = "text/event-stream; charset=utf-8"
CHUNK_CHARACTERS: Final = 24  # about six tokens: providers send text in pieces of this order


class RequestRefused(Exception):
    """The provider refuses the request with this status; `str(error)` is the message in its error body."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """One tool of the request. `kind` is `function`, `custom` (free text) or a provider's own tool such as `shell`."""

    kind: str
    name: str
    schema: Json
    description: str = ""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of one offered tool: an object for a function, text for a custom tool, an action for a provider's own."""

    kind: str
    name: str
    arguments: Json | str

    @property
    def text(self) -> str:
        """The arguments as they travel: JSON text, or the free text itself."""
        return self.arguments if isinstance(self.arguments, str) else json.dumps(self.arguments, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Conversation:
    """One request, normalised."""

    model: str
    stream: bool
    include_usage: bool  # OpenAI Chat only: whether the stream ends with a usage chunk
    tools: tuple[OfferedTool, ...]
    calls_made: int  # tool calls in the conversation so far
    turns_made: int  # assistant turns so far, for harnesses that read commands from text
    texts: tuple[str, ...]  # instructions and user messages, searched for the harness's own conventions
    prompt_bytes: int
    prefix_bytes: int  # the part that the request before this one already held; 0 for the first


@dataclass(frozen=True, slots=True)
class TokenCount:
    """Disjoint counts; each dialect puts them together in its own fields and meanings."""

    uncached: int
    cache_read: int
    cache_write: int
    output: int

    @property
    def prompt(self) -> int:
        """Every token of the prompt, cached or not."""
        return self.uncached + self.cache_read + self.cache_write


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer of the model: text, at most one tool call, and what it cost."""

    reply_id: str  # 24 hex digits, distinct per request
    call_id: str  # 24 hex digits, the same when a request is sent again
    model: str
    text: str
    call: ToolCall | None
    tokens: TokenCount


class Dialect(Protocol):
    """How one provider's API reads a request and writes replies, streams and errors."""

    @property
    def stream_type(self) -> str:
        """The media type of a streamed reply."""
        ...

    def read(self, body: Json) -> Conversation:
        """The request, normalised. Raises RequestRefused for a body that the provider would not take."""
        ...

    def whole(self, reply: Reply) -> Json:
        """The body of a reply that is not streamed."""
        ...

    def stream(self, reply: Reply, *, include_usage: bool) -> Iterator[bytes]:
        """A streamed reply, one event per item."""
        ...

    def failure(self, status: int, message: str, *, request_id: str) -> Json:
        """The provider's error body."""
        ...


def pieces(text: str) -> Iterator[str]:
    """The text in chunks, as a stream sends it; nothing for empty text."""
    for start in range(0, len(text), CHUNK_CHARACTERS):
        yield text[start : start + CHUNK_CHARACTERS]


def event(data: Json, *, name: str | None = None) -> bytes:
    """One server-sent event with a JSON payload."""
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {_compact(data)}\n\n".encode(errors="replace")


def json_bytes(*parts: object) -> int:
    """How many bytes the parts take as compact JSON: the measure of a prompt."""
    return sum(len(_compact(part).encode(errors="replace")) for part in parts if part)


def _compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
