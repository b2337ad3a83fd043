"""Anthropic's messages usage report, as `GET /v1/organizations/usage_report/messages` answers.

Uncached input, cache writes by lifetime and cache reads are disjoint, as they are in a response. Source: the provider's
API reference for the endpoint, read in November 2026.
"""

from __future__ import annotations

from typing import Final

from pydantic import AwareDatetime

from controller.domain.json_files import parse_record
from controller.domain.provider_report import ReportedUsage
from controller.domain.usage import Usage
from controller.settle.report_page import Count, ForeignRecord, ReportPage, ReportRow, check_minute, conditions_of

GEOS: Final = {"not_available": "global"}  # models for which no place can be chosen
CONDITIONS: Final = (
    "api_key_id", "workspace_id", "model", "service_tier", "context_window", "inference_geo", "speed", "account_id",
    "service_account_id",
)  # fmt: skip


class _CacheCreation(ForeignRecord):
    ephemeral_5m_input_tokens: Count
    ephemeral_1h_input_tokens: Count


class _ServerToolUse(ForeignRecord):
    web_search_requests: Count


class _Result(ForeignRecord):
    uncached_input_tokens: Count
    cache_creation: _CacheCreation
    cache_read_input_tokens: Count
    output_tokens: Count
    server_tool_use: _ServerToolUse
    api_key_id: str | None = None
    workspace_id: str | None = None
    model: str | None = None
    service_tier: str | None = None
    context_window: str | None = None
    inference_geo: str | None = None
    speed: str | None = None
    account_id: str | None = None
    service_account_id: str | None = None


class _Bucket(ForeignRecord):
    starting_at: AwareDatetime
    ending_at: AwareDatetime
    results: tuple[_Result, ...]


class _Page(ForeignRecord):
    data: tuple[_Bucket, ...]
    has_more: bool
    next_page: str | None = None


def read_page(data: bytes, name: str) -> ReportPage:
    """One page from its bytes. Raises InvalidInput naming file and field."""
    page = parse_record(data, _Page, name)
    minutes, rows = [], []
    for number, bucket in enumerate(page.data):
        place = f"{name}: data[{number}]"
        start, end = (round(at.timestamp() * 1000) for at in (bucket.starting_at, bucket.ending_at))
        minute = check_minute(start, end, place)
        minutes.append(minute)
        for position, result in enumerate(bucket.results):
            usage = ReportedUsage(
                minute=minute,
                model=result.model or "",
                tier=result.service_tier,
                speed=result.speed,
                geo=GEOS.get(result.inference_geo, result.inference_geo) if result.inference_geo else None,
                usage=_usage(result),
                requests=None,
            )
            conditions = conditions_of(result, CONDITIONS)
            rows.append(ReportRow(f"{place}.results[{position}]", result.api_key_id, conditions, usage))
    return ReportPage("anthropic", name, tuple(minutes), tuple(rows), page.has_more)


def _usage(result: _Result) -> Usage:
    searches = result.server_tool_use.web_search_requests
    return Usage(
        tokens={
            "in": result.uncached_input_tokens,
            "read": result.cache_read_input_tokens,
            "w5m": result.cache_creation.ephemeral_5m_input_tokens,
            "w1h": result.cache_creation.ephemeral_1h_input_tokens,
            "out": result.output_tokens,
        },
        units={"web_search": searches} if searches else {},
    )
