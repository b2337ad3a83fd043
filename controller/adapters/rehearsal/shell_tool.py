"""Finds the harness's shell among the tools it offers, and writes a call of it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Final

from controller.adapters.rehearsal.conversation import Json, OfferedTool, ToolCall

# Names of shell tools, the most capable first: Codex, Claude Code, mini-swe-agent, Gemini CLI, others.
_SHELL_NAMES: Final = ("exec_command", "shell_command", "shell", "bash", "run_shell_command", "execute_bash", "exec")
_COMMAND_FIELDS: Final = ("cmd", "command", "script")
_YIELD_MS: Final = 30_000  # Codex hands a command back after 10 s unless asked; emulated machines are slow
_FENCE: Final = re.compile(r"```(mswea_bash_command|bash)\s*\n")

FINISH_MARKER: Final = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
FINISH_COMMAND: Final = f"echo {FINISH_MARKER}"


def shell_call(tools: Sequence[OfferedTool], command: str) -> ToolCall | None:
    """A call that runs `command` with the shell tool among `tools`; None when there is no such tool."""
    ranked = sorted(
        (tool for tool in tools if tool.name.lower() in _SHELL_NAMES or tool.kind in ("local_shell", "shell")),
        key=lambda tool: _SHELL_NAMES.index(tool.name.lower()) if tool.name.lower() in _SHELL_NAMES else 99,
    )
    for tool in ranked:
        if (call := _call(tool, command)) is not None:
            return call
    return None


def _call(tool: OfferedTool, command: str) -> ToolCall | None:
    if tool.kind == "local_shell":
        action: Json = {"type": "exec", "command": ["bash", "-lc", command], "env": {}}
        return ToolCall(kind="local_shell", name="local_shell", arguments=action)
    if tool.kind == "shell":
        return ToolCall(kind="shell", name="shell", arguments={"commands": [command]})
    if tool.kind == "custom":
        return ToolCall(kind="custom", name=tool.name, arguments=_free_text(tool, command))
    properties = tool.schema.get("properties")
    if not isinstance(properties, dict):
        return None
    field = next((name for name in _COMMAND_FIELDS if name in properties), None)
    if field is None:
        return None
    as_list = isinstance(properties[field], dict) and properties[field].get("type") == "array"
    arguments: Json = {field: ["bash", "-lc", command] if as_list else command}
    if "yield_time_ms" in properties:
        arguments["yield_time_ms"] = _YIELD_MS
    required = tool.schema.get("required")
    for name in required if isinstance(required, list) else ():
        if isinstance(name, str):
            arguments.setdefault(name, _filler(properties.get(name)))
    return ToolCall(kind="function", name=tool.name, arguments=arguments)


def _free_text(tool: OfferedTool, command: str) -> str:
    """The input of a custom tool: a command, or JavaScript for Codex's code mode, which calls its other tools."""
    if "exec_command" in tool.description:
        arguments = json.dumps({"cmd": command, "yield_time_ms": _YIELD_MS})
        return f"const result = await tools.exec_command({arguments});\ntext(result.output);\n"
    return command


def _filler(schema: object) -> object:
    """A value for a field that a harness requires beside the command, such as Claude Code's description."""
    kind = schema.get("type") if isinstance(schema, dict) else None
    return {"boolean": False, "number": 0, "integer": 0, "array": [], "object": {}}.get(str(kind), "Take the next step")


def fence_of(texts: Iterable[str]) -> str | None:
    """The code-fence word with which a harness without tools asks for commands; None when it asks for none."""
    for text in texts:
        if (found := _FENCE.search(text)) is not None:
            return found.group(1)
    return None


def wants_finish_command(texts: Iterable[str]) -> bool:
    """True when the harness ends by a command instead of a plain message (mini-swe-agent)."""
    return any(FINISH_MARKER in text for text in texts)
