"""mini-swe-agent, run unattended over litellm's OpenAI client."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Final

import yaml

from controller.domain.launch import LaunchContext, LaunchContract, Shim
from controller.domain.outcome import SelfReport
from controller.domain.usage import Dialect
from controller.harnesses.adapter import BIN, CHANNEL, HOME, base_environment, check_settings, reported_count

_CONFIG: Final = ".config/fairtrial/mini.yaml"
_TRAJECTORY: Final = ".local/share/fairtrial/trajectory.json"
_SETTINGS: Final = {
    "client": ("litellm", "requests"),
    "command_timeout_seconds": ("30", "60", "120", "300"),
}
_OWN_CLIENT: Final = Shim(
    name="fairtrial_client",
    does="is the harness's own client over requests, with the meter's address in place of a constant one",
    status="unqualified",
    basis="its requests were not compared with those of the client as shipped, whose address can't be set",
)


class MiniSweAgent:
    """mini-swe-agent over the OpenAI Chat dialect."""

    name: Final = "mini-swe-agent"
    title: Final = "mini-swe-agent"
    version: Final = "2.4.6"
    image: Final = "harness-mini-swe-agent"
    dialect: Final[Dialect] = "openai_chat"

    def check_settings(self, settings: Mapping[str, str]) -> None:
        check_settings(self.name, settings, _SETTINGS)

    def shims(self, settings: Mapping[str, str]) -> tuple[Shim, ...]:
        return (*CHANNEL, _OWN_CLIENT) if settings.get("client") == "requests" else CHANNEL

    def launch(self, context: LaunchContext) -> LaunchContract:
        self.check_settings(context.settings)
        return LaunchContract(
            argv=(
                f"{BIN}/mini",
                # The harness's own prompt file. A bare `mini.yaml` would be looked for in the repository first.
                "--config",
                "../config/mini.yaml",
                "--config",
                f"{HOME}/{_CONFIG}",
                "--output",
                f"{HOME}/{_TRAJECTORY}",
                "--yolo",
                "--exit-immediately",
            ),
            env={
                **base_environment(),
                "OPENAI_API_KEY": context.token,
                "OPENAI_BASE_URL": f"{context.base_url}/v1",
                "MSWEA_CONFIGURED": "true",
                "MSWEA_SILENT_STARTUP": "1",
                "MSWEA_GLOBAL_CONFIG_DIR": f"{HOME}/.config/mini-swe-agent",
                "MSWEA_MODEL_RETRY_STOP_AFTER_ATTEMPT": "1",
                "MSWEA_COST_TRACKING": "ignore_errors",
                "LITELLM_LOCAL_MODEL_COST_MAP": "True",
                "LITELLM_TELEMETRY": "False",
                "HF_HUB_OFFLINE": "1",
                "TYPER_STANDARD_TRACEBACK": "1",  # the pretty one would print local variables
            },
            files={_CONFIG: _config(context)},
            report_paths=(_TRAJECTORY,),
        )

    def self_report(self, files: Mapping[str, bytes], log: bytes) -> SelfReport:
        """Turns and cost from the trajectory's own statistics; tokens and tool calls summed over its messages."""
        try:
            trajectory = json.loads(files.get(_TRAJECTORY, b""), parse_float=Decimal)
        except (ValueError, RecursionError):
            return SelfReport()
        stats = _at(trajectory, "info", "model_stats")
        answers = [message for message in _list(_at(trajectory, "messages")) if _at(message, "role") == "assistant"]
        usages = [_at(answer, "extra", "response", "usage") for answer in answers]
        return SelfReport(
            usd=_usd(_at(stats, "instance_cost")),
            tokens_in=_sum(_at(usage, "prompt_tokens") for usage in usages),
            tokens_out=_sum(_at(usage, "completion_tokens") for usage in usages),
            turns=reported_count(_at(stats, "api_calls")),
            tool_calls=sum(len(_list(_at(answer, "tool_calls"))) for answer in answers),
        )


def _config(context: LaunchContext) -> str:
    """Settings on top of the harness's own prompts.

    Its own limits are off, since the meter holds the same limits for all harnesses. The task is here and not in the
    arguments, whose size the kernel bounds.
    """
    timeout = context.settings.get("command_timeout_seconds")
    config = {
        "run": {"task": context.prompt},
        "agent": {"mode": "yolo", "confirm_exit": False, "cost_limit": 0, "step_limit": 0},
        "environment": {"cwd": context.workspace, **({"timeout": int(timeout)} if timeout else {})},
        "model": _client(context),
    }
    return yaml.safe_dump(config, sort_keys=False)


def _client(context: LaunchContext) -> dict[str, object]:
    """litellm unless the arm asks for the harness's client over requests; retries are off in both."""
    if context.settings.get("client") == "requests":
        return {
            "model_class": "fairtrial_client.MeteredModel",
            "model_name": context.model,
            "cost_tracking": "ignore_errors",
            "model_kwargs": {},
        }
    return {
        "model_class": "litellm",
        "model_name": f"openai/{context.model}",
        "cost_tracking": "ignore_errors",
        "model_kwargs": {
            "api_base": f"{context.base_url}/v1",
            "drop_params": True,
            "max_retries": 0,
            "num_retries": 0,
        },
    }


def _at(value: object, *path: str) -> object:
    """The value at a path of keys; None where a key or an object is missing."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _sum(values: Iterable[object]) -> int | None:
    """The sum of counts; None when one is unknown or there is none."""
    counts = [reported_count(value) for value in values]
    if not counts or None in counts:
        return None
    return reported_count(sum(count for count in counts if count is not None))


def _usd(value: object) -> str | None:
    """The harness's own cost as it wrote it; None when it is absent, nonsense, or 0 because it could not price."""
    amount = Decimal(value) if isinstance(value, int) and not isinstance(value, bool) else value
    if not isinstance(amount, Decimal) or not Decimal(0) < amount < 10**9:
        return None
    return f"{amount:.12f}".rstrip("0").rstrip(".")
