"""Decides what the scripted model answers: a pure function of the script, the attempt and the conversation."""

from __future__ import annotations

import hashlib
from typing import Final

from controller.adapters.rehearsal.cell import Cell
from controller.adapters.rehearsal.conversation import Conversation, Reply, TokenCount, ToolCall
from controller.adapters.rehearsal.script import RehearsalScript, Step
from controller.adapters.rehearsal.shell_tool import FINISH_COMMAND, fence_of, shell_call, wants_finish_command

_BYTES_PER_TOKEN: Final = 4
_CACHE_TOKENS_MIN: Final = 1024  # shorter prompts are not cached by any of the providers
_CACHE_BLOCK_TOKENS: Final = 128  # caches hold whole blocks, so the tail of a prompt is always plain input
_REPLY_OVERHEAD_TOKENS: Final = 6  # role and end markers
_ASIDE: Final = "Understood."  # to requests without a shell, such as a title for the session


def current_step(script: RehearsalScript, cell: Cell, conversation: Conversation, *, chance_seed: str) -> Step:
    """The step that this request is at: as many as the harness has carried out are behind it; the last one repeats."""
    variant = script.choose_variant(
        chance_seed=chance_seed, task=cell.task, arm=cell.arm, replicate=cell.replicate, attempt=cell.attempt
    )
    steps = script.variants[variant]
    return steps[min(_steps_taken(conversation), len(steps) - 1)]


def _steps_taken(conversation: Conversation) -> int:
    return conversation.calls_made if conversation.tools else conversation.turns_made


def reply_to(step: Step, cell: Cell, conversation: Conversation, *, sequence: int) -> Reply:
    """The answer that plays `step` in the way the harness understands. `sequence` makes the reply's id distinct."""
    text, call = _act(step, conversation)
    place = f"{cell.key}|{_steps_taken(conversation)}"
    return Reply(
        reply_id=_hex(f"reply|{place}|{sequence}"),
        call_id=_hex(f"call|{place}"),
        model=conversation.model,
        text=text,
        call=call,
        tokens=token_count(conversation, text + (call.text if call else "")),
    )


def _act(step: Step, conversation: Conversation) -> tuple[str, ToolCall | None]:
    command = step.run
    if command is None and not step.is_failure and wants_finish_command(conversation.texts):
        command = FINISH_COMMAND
    if command is None:
        return step.say, None
    if (call := shell_call(conversation.tools, command)) is not None:
        return step.say, call
    if not conversation.tools and (fence := fence_of(conversation.texts)) is not None:
        return f"{step.say}\n\n```{fence}\n{command}\n```".lstrip(), None
    return _ASIDE, None


def token_count(conversation: Conversation, answer: str) -> TokenCount:
    """Usage by length: about 4 bytes per token, the known prefix read from cache, the new part written to it."""
    prompt = -(-conversation.prompt_bytes // _BYTES_PER_TOKEN)
    prefix = min(-(-conversation.prefix_bytes // _BYTES_PER_TOKEN), prompt)
    cacheable, read = _cached(prompt), _cached(prefix)
    return TokenCount(
        uncached=prompt - cacheable,
        cache_read=read,
        cache_write=cacheable - read,
        output=-(-len(answer.encode()) // _BYTES_PER_TOKEN) + _REPLY_OVERHEAD_TOKENS,
    )


def _cached(tokens: int) -> int:
    """How many of a prompt's tokens the provider keeps: whole blocks, and never all of it."""
    if tokens < _CACHE_TOKENS_MIN:
        return 0
    return (tokens - 1) // _CACHE_BLOCK_TOKENS * _CACHE_BLOCK_TOKENS


def _hex(label: str) -> str:
    return hashlib.sha256(label.encode()).hexdigest()[:24]
