"""How providers cache prompts, simplified: a prefix is found again when every byte that leads to it is the same."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from controller.adapters.rehearsal.conversation import TokenCount

BYTES_PER_TOKEN = 4
BLOCK_TOKENS = 16  # real blocks are longer; short ones show a difference in a short conversation
# Besides the account and the model: what selects another version of the prompt, or another machine with its own cache.
KEYED_HEADERS = ("anthropic-version", "anthropic-beta", "session-id", "thread-id", "x-goog-api-client", "originator")
KEYED_FIELDS = ("model", "prompt_cache_key", "prompt_cache_retention", "thinking", "tool_choice")


class PrefixCache:
    """One provider's cache. `count` both reads and writes it."""

    def __init__(self) -> None:
        self._known: set[bytes] = set()

    def forget(self) -> None:
        """Every entry expires."""
        self._known.clear()

    def count(self, path: str, headers: Mapping[str, str], request: Mapping[str, Any], *, output: int) -> TokenCount:
        """The token counts of one request; `headers` have lower-case names."""
        prompt, cacheable = _prompt(request)
        keys = [headers.get(name) for name in KEYED_HEADERS] + [request.get(name) for name in KEYED_FIELDS]
        rolling = hashlib.sha256(json.dumps([path, keys]).encode())
        read = written = 0
        block_bytes = BLOCK_TOKENS * BYTES_PER_TOKEN
        for start in range(0, len(cacheable) - block_bytes + 1, block_bytes):
            rolling.update(cacheable[start : start + block_bytes])
            prefix = rolling.digest()
            if prefix in self._known and not written:
                read += BLOCK_TOKENS
            else:
                written += BLOCK_TOKENS
                self._known.add(prefix)
        total = -(-len(prompt) // BYTES_PER_TOKEN)
        return TokenCount(uncached=total - read - written, cache_read=read, cache_write=written, output=output)


def _prompt(request: Mapping[str, Any]) -> tuple[bytes, bytes]:
    """The prompt, and the part of it that may be cached: up to the last mark, or all where there are no marks."""
    blocks = [
        block for name in ("tools", "instructions", "system", "systemInstruction") for block in _list(request, name)
    ]
    for message in [item for name in ("messages", "input", "contents") for item in _list(request, name)]:
        content = message.get("content") if isinstance(message, dict) else None
        parts = content if isinstance(content, list) else [message]
        blocks += [{"role": message.get("role"), "part": part} if parts is content else part for part in parts]
    texts = [json.dumps(_unmarked(block), separators=(",", ":")).encode() for block in blocks]
    marked = [index for index, block in enumerate(blocks) if "cache_control" in json.dumps(block)]
    by_mark = "max_tokens" in request and "system" in request
    end = (marked[-1] + 1 if marked else 0) if by_mark else len(texts)
    return b"".join(texts), b"".join(texts[:end])


def _list(request: Mapping[str, Any], name: str) -> list[Any]:
    value = request.get(name)
    return value if isinstance(value, list) else [value] if value else []


def _unmarked(block: Any) -> Any:
    if isinstance(block, dict):
        return {name: _unmarked(value) for name, value in block.items() if name != "cache_control"}
    return block
