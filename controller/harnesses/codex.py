"""Codex CLI, run by `codex exec` against a provider of our own in `config.toml`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from controller.domain.launch import LaunchContext, LaunchContract, Shim
from controller.domain.outcome import SelfReport
from controller.domain.usage import Dialect
from controller.harnesses.adapter import BIN, CHANNEL, HOME, base_environment, check_settings, reported_count

_SETTINGS: Final = {"reasoning_effort": ("minimal", "low", "medium", "high", "xhigh")}
# On by default, and each reaches past the meter, re-sends, or needs what only the maker's own service offers.
_FEATURES_OFF: Final = (
    "api_key_model_discovery",
    "apps",
    "enable_request_compression",  # the meter reads bodies as they come
    "fast_mode",
    "image_generation",
    "in_app_updates",
    "plugins",  # lists a public repository at every start
    "remote_plugin",
    "skill_mcp_dependency_install",
    "ultrafast_mode",
    "unbounded_connection_retries",
)
# A tuple, since a hostile log may hold anything where a word is due, also what a set can't look up.
_TOOL_ITEMS: Final = ("command_execution", "file_change", "mcp_tool_call", "web_search")


class CodexCli:
    """Codex CLI over the OpenAI Responses dialect."""

    name: Final = "codex"
    title: Final = "Codex CLI"
    version: Final = "0.171.0"
    image: Final = "harness-codex"
    dialect: Final[Dialect] = "openai_responses"

    def check_settings(self, settings: Mapping[str, str]) -> None:
        check_settings(self.name, settings, _SETTINGS)

    def shims(self, settings: Mapping[str, str]) -> tuple[Shim, ...]:
        return CHANNEL

    def launch(self, context: LaunchContext) -> LaunchContract:
        self.check_settings(context.settings)
        return LaunchContract(
            argv=(
                f"{BIN}/codex",
                "exec",
                "--json",
                "--strict-config",
                "--ephemeral",
                "--skip-git-repo-check",
                # The container is the sandbox: its own would need user namespaces that the container refuses.
                "--dangerously-bypass-approvals-and-sandbox",
                "--cd",
                context.workspace,
                "-",
            ),
            env={**base_environment(), "CODEX_HOME": f"{HOME}/.codex", "FAIRTRIAL_METER_TOKEN": context.token},
            files={".codex/config.toml": _config(context)},
            stdin=context.prompt,
        )

    def self_report(self, files: Mapping[str, bytes], log: bytes) -> SelfReport:
        """Tokens from the last `turn.completed`, tool calls by counting items. It names no money and no requests."""
        tokens_in = tokens_out = None
        tool_calls = 0
        for event in _events(log):
            item, usage = event.get("item"), event.get("usage")
            if event.get("type") == "item.completed" and isinstance(item, dict):
                tool_calls += item.get("type") in _TOOL_ITEMS
            elif event.get("type") == "turn.completed" and isinstance(usage, dict):
                tokens_in, tokens_out = (
                    reported_count(usage.get("input_tokens")),
                    reported_count(usage.get("output_tokens")),
                )
        return SelfReport(tokens_in=tokens_in, tokens_out=tokens_out, tool_calls=tool_calls)


def _config(context: LaunchContext) -> str:
    """`config.toml`: the meter as the only provider, the lane's model everywhere, nothing that calls elsewhere."""
    effort = context.settings.get("reasoning_effort")
    lines = [
        f"model = {_toml(context.model)}",
        f"review_model = {_toml(context.model)}",
        *([f"model_reasoning_effort = {_toml(effort)}"] if effort else []),
        'model_provider = "meter"',
        'web_search = "disabled"',
        "check_for_update_on_startup = false",
        "",
        "[model_providers.meter]",
        'name = "meter"',
        f"base_url = {_toml(context.base_url + '/v1')}",
        'env_key = "FAIRTRIAL_METER_TOKEN"',
        'wire_api = "responses"',
        "request_max_retries = 0",
        "stream_max_retries = 0",
        "",
        "[analytics]",
        "enabled = false",
        "",
        "[feedback]",
        "enabled = false",
        "",
        "[history]",
        'persistence = "none"',
        "",
        "[features]",
        *(f"{feature} = false" for feature in _FEATURES_OFF),
    ]
    return "\n".join(lines) + "\n"


def _toml(text: str) -> str:
    """A TOML basic string: JSON's escapes are a subset of TOML's."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _events(log: bytes) -> Iterator[dict[str, Any]]:
    """The JSON objects among the log's lines."""
    for line in log.split(b"\n"):
        if not line.startswith(b"{"):
            continue
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(event, dict):
            yield event
