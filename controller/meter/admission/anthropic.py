"""Anthropic Messages: which fields, tools and betas a harness may use."""

from __future__ import annotations

import re
from typing import Final

from controller.meter.admission.fields import Body, allow_only, check_fields, objects
from controller.meter.admission.refusals import Refused

KNOWN: Final = frozenset(
    {
        "cache_control",
        "compaction",  # its sampling is reported in `usage.iterations` and priced
        "context_management",
        "diagnostics",
        "inference_geo",
        "max_tokens",
        "messages",
        "metadata",
        "model",
        "output_config",
        "output_format",
        "service_tier",
        "speed",
        "stop_sequences",
        "stream",
        "system",
        "temperature",
        "thinking",
        "tool_choice",
        "tools",
        "top_k",
        "top_p",
    }
)
OFF: Final = frozenset(
    {
        "betas",
        "billing_policy",
        "container",
        "fallback_credit_token",
        "fallbacks",
        "mcp_servers",
        "thread",
        "user_profile_id",
        "workspace_id",
    }
)
CLIENT_TOOLS: Final = re.compile(r"(bash|text_editor|memory|computer)_[0-9]{8}")
# By feature, whatever its date. None of them adds a charge that the usage does not show, moves the request to another
# model, tier or place, or runs anything at the provider.
BETAS: Final = frozenset(
    {
        "adaptive-thinking",
        "advanced-tool-use",
        "cache-diagnosis",
        "claude-code",
        "compact",
        "computer-use",
        "context-1m",
        "context-management",
        "effort",
        "extended-cache-ttl",
        "fine-grained-tool-streaming",
        "inline-tools",
        "interleaved-thinking",
        "max-tokens-3-5-sonnet",
        "mid-conversation-output-config",
        "mid-conversation-system",
        "mid-conversation-system-clear-at",
        "mid-conversation-tool-changes",
        "model-context-window-exceeded",
        "output-128k",
        "output-300k",
        "pdfs",
        "prompt-caching",
        "prompt-caching-scope",
        "redact-thinking",
        "structured-outputs",
        "task-budgets",
        "thinking-binding-controls",
        "thinking-display-updates",
        "thinking-resumption",
        "thinking-token-count",
        "token-counting",
        "token-efficient-tools",
        "tool-examples",
    }
)
_DATE: Final = re.compile(r"-\d{4}-?\d{2}-?\d{2}$")


def check(body: Body, betas: str) -> None:
    """Raises Refused(400) naming the field or the beta."""
    check_fields(body, known=KNOWN, off=OFF)
    allow_only(body, "speed", ("standard",))
    allow_only(body, "service_tier", ("standard_only", "auto"))
    allow_only(body, "inference_geo", ("global",))
    check_betas(betas)
    for position, tool in enumerate(objects(body, "tools")):
        kind = tool.get("type")
        if kind not in (None, "custom") and not CLIENT_TOOLS.fullmatch(str(kind)):
            raise Refused(400, f"tools[{position}].type: {str(kind)[:60]!r} runs at the provider and is switched off")


def check_betas(betas: str) -> None:
    """Refuse a beta that is not on the list. Dropping it would leave the body field that it explains."""
    for beta in filter(None, (part.strip() for part in betas.split(","))):
        if _DATE.sub("", beta.lower()) not in BETAS:
            raise Refused(400, f"anthropic-beta: {beta[:60]!r} is not one of the betas that every harness may use")


def asks_lifetime(body: Body) -> bool:
    """Whether any `cache_control` asks for another lifetime than the default of five minutes."""
    waiting: list[object] = [body]  # a body may be nested deeper than calls may be
    while waiting:
        value = waiting.pop()
        if isinstance(value, list):
            waiting.extend(value)
        elif isinstance(value, dict):
            control = value.get("cache_control")
            if isinstance(control, dict) and control.get("ttl") not in (None, "5m"):
                return True
            waiting.extend(value.values())
    return False
