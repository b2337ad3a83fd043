"""Reads the parts that the requests of all dialects have: lists of turns and tools, texts, and what they weigh."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from controller.adapters.rehearsal.conversation import Conversation, Json, OfferedTool, RequestRefused, json_bytes


def conversation(
    model: str,
    *,
    stream: bool,
    items: Sequence[Json],
    is_own: Callable[[Json], bool],
    calls_made: int,
    content: Callable[[Json], object],
    tools: Sequence[OfferedTool],
    head: Sequence[object],
    instructions: object = None,
    include_usage: bool = True,
) -> Conversation:
    """A request as the scripted model sees it.

    `items` are the conversation so far; `is_own` tells which of them the model wrote, of which neighbours are one turn.
    `head` is what stands before them in the prompt; `content` finds an item's text.
    """
    own = {index for index, item in enumerate(items) if is_own(item)}
    starts = [index for index in sorted(own) if index - 1 not in own]
    others = (content(item) for index, item in enumerate(items) if index not in own)
    return Conversation(
        model=model,
        stream=stream,
        include_usage=include_usage,
        tools=tuple(tools),
        calls_made=calls_made,
        turns_made=len(starts),
        texts=tuple(text for found in (instructions, *others) for text in texts_of(found)),
        prompt_bytes=json_bytes(*head, *items),
        prefix_bytes=json_bytes(*head, *items[: starts[-1]]) if starts else 0,
    )


def objects(value: object, *, field: str) -> list[Json]:
    """The list of objects at `field`; an absent one is empty. Raises RequestRefused (400) for anything else."""
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise RequestRefused(400, f"{field}: a list of objects is required")
    return value


def some_objects(value: object, *, field: str) -> list[Json]:
    """As `objects`, of which there must be one at least."""
    found = objects(value, field=field)
    if not found:
        raise RequestRefused(400, f"{field}: at least one is required")
    return found


def text_field(body: Mapping[str, object], name: str) -> str:
    """The required text at `name`. Raises RequestRefused (400)."""
    value = body.get(name)
    if not isinstance(value, str) or not value:
        raise RequestRefused(400, f"{name}: a text is required")
    return value


def schema_of(value: object) -> Json:
    """A tool's parameter schema, empty when the request has none."""
    return value if isinstance(value, dict) else {}


def texts_of(content: object) -> Iterable[str]:
    """All text in a message's content: a plain string, or a list of parts with a `text`."""
    if isinstance(content, str):
        yield content
    elif isinstance(content, list):
        for part in content:
            if isinstance(part, dict) and isinstance(part.get("text"), str):
                yield part["text"]
