"""OpenAI's completions usage, as `GET /v1/organization/usage/completions` answers; it covers the Responses API too.

Cached and written tokens lie inside `input_tokens`, as they do in a response. Source: the types of the provider's SDK
(3.57), which are made from its API description.
"""

from __future__ import annotations

from typing import Final, Literal

from controller.domain.json_files import parse_record
from controller.domain.provider_report import ReportedUsage
from controller.domain.usage import Usage
from controller.errors import InvalidInput
from controller.settle.report_page import Count, ForeignRecord, ReportPage, ReportRow, check_minute, conditions_of

TIERS: Final = {"default": "standard"}
CONDITIONS: Final = ("api_key_id", "project_id", "user_id", "model", "batch", "service_tier", "api_source")


class _Result(ForeignRecord):
    object: Literal["organization.usage.completions.result"]
    input_tokens: Count
    output_tokens: Count
    num_model_requests: Count
    input_cached_tokens: Count | None = None
    input_cache_write_tokens: Count | None = None
    input_cache_write_30m_tokens: Count | None = None
    input_cache_write_12h_tokens: Count | None = None
    input_uncached_tokens: Count | None = None
    input_text_tokens: Count | None = None
    input_audio_tokens: Count | None = None
    input_image_tokens: Count | None = None
    input_cached_text_tokens: Count | None = None
    input_cached_audio_tokens: Count | None = None
    input_cached_image_tokens: Count | None = None
    output_text_tokens: Count | None = None
    output_audio_tokens: Count | None = None
    output_image_tokens: Count | None = None
    api_key_id: str | None = None
    project_id: str | None = None
    user_id: str | None = None
    model: str | None = None
    batch: bool | None = None
    service_tier: str | None = None
    api_source: str | None = None


class _Bucket(ForeignRecord):
    object: Literal["bucket"]
    start_time: Count
    end_time: Count
    results: tuple[_Result, ...]


class _Page(ForeignRecord):
    object: Literal["page"]
    data: tuple[_Bucket, ...]
    has_more: bool
    next_page: str | None = None


def read_page(data: bytes, name: str) -> ReportPage:
    """One page from its bytes. Raises InvalidInput naming file and field."""
    page = parse_record(data, _Page, name)
    minutes, rows = [], []
    for number, bucket in enumerate(page.data):
        place = f"{name}: data[{number}]"
        minute = check_minute(bucket.start_time * 1000, bucket.end_time * 1000, place)
        minutes.append(minute)
        for position, result in enumerate(bucket.results):
            here = f"{place}.results[{position}]"
            usage = ReportedUsage(
                minute=minute,
                model=result.model or "",
                tier=_tier(result),
                speed=None,
                geo=None,
                usage=_usage(result, here),
                requests=result.num_model_requests,
            )
            rows.append(ReportRow(here, result.api_key_id, conditions_of(result, CONDITIONS), usage))
    return ReportPage("openai", name, tuple(minutes), tuple(rows), page.has_more)


def _tier(result: _Result) -> str | None:
    if result.batch:
        return "batch"
    return TIERS.get(result.service_tier, result.service_tier) if result.service_tier else None


def _usage(result: _Result, place: str) -> Usage:
    """Disjoint classes. Raises InvalidInput when the parts contradict their total."""
    half_hour = result.input_cache_write_30m_tokens or 0
    half_day = result.input_cache_write_12h_tokens or 0
    if result.input_cache_write_tokens is not None:
        if result.input_cache_write_30m_tokens is None and result.input_cache_write_12h_tokens is None:
            half_hour = result.input_cache_write_tokens
        elif half_hour + half_day != result.input_cache_write_tokens:
            raise InvalidInput(
                f"{place}.input_cache_write_tokens: {result.input_cache_write_tokens} is not {half_hour} + {half_day}"
            )
    audio, image = result.input_audio_tokens or 0, result.input_image_tokens or 0
    uncached = result.input_tokens - (result.input_cached_tokens or 0) - half_hour - half_day
    plain = uncached - audio - image
    spoken, drawn = result.output_audio_tokens or 0, result.output_image_tokens or 0
    text_out = result.output_tokens - spoken - drawn
    if plain < 0 or text_out < 0:
        raise InvalidInput(f"{place}.{'input' if plain < 0 else 'output'}_tokens: the parts exceed the total")
    if result.input_uncached_tokens is not None and result.input_uncached_tokens != uncached:
        raise InvalidInput(f"{place}.input_uncached_tokens: {result.input_uncached_tokens} is not {uncached}")
    return Usage(
        tokens={
            "in": plain,
            "read": result.input_cached_tokens or 0,
            "w30m": half_hour,
            "w12h": half_day,
            "in_audio": audio,
            "in_image": image,
            "out": text_out,
            "out_audio": spoken,
            "out_image": drawn,
        }
    )
