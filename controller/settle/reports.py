"""Usage reports as files from anywhere: read strictly, put together, and looked up by provider key.

All files of one provider must be the pages of one query. Two queries may have been filtered in different ways, and what
a filter hid would look like usage that never was; so a minute that is there twice is refused.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from controller.domain.ids import Digest, sha256_digest
from controller.domain.instant import InstantMs, instant_text
from controller.domain.json_files import read_json
from controller.domain.plan import REHEARSAL_PROVIDER
from controller.domain.provider_report import MINUTE_MS, ProviderEvidence, ReportedSpan, ReportedUsage
from controller.errors import InvalidInput
from controller.settle import report_anthropic, report_openai
from controller.settle.report_page import READ_AGAIN, PageReader, Provider, ReportPage

READERS: Final[Mapping[Provider, PageReader]] = {
    "anthropic": report_anthropic.read_page,
    "openai": report_openai.read_page,
}


@dataclass(frozen=True)
class _Report:
    """All pages of one provider."""

    digests: tuple[Digest, ...]
    covered: tuple[ReportedSpan, ...]
    by_key: Mapping[str | None, tuple[ReportedUsage, ...]]


@dataclass(frozen=True)
class ProviderReports:
    """What the files say, by provider."""

    reports: Mapping[Provider, _Report]

    @property
    def digests(self) -> tuple[Digest, ...]:
        """Of every file, in byte order."""
        return tuple(sorted(digest for report in self.reports.values() for digest in report.digests))

    def evidence(self, provider: str, keys: Collection[str], *, dedicated: bool) -> ProviderEvidence:
        """What they say of one logical run with these keys. A rehearsal's report may have either form."""
        found = {str(name): report for name, report in self.reports.items()}
        if provider == REHEARSAL_PROVIDER and len(found) == 1:
            provider = next(iter(found))
        report = found.get(provider, _Report((), (), {}))
        lines = [line for key in sorted(keys) for line in report.by_key.get(key, ())]
        return ProviderEvidence(
            reports=report.digests,
            covered=report.covered,
            dedicated=dedicated,
            usage=tuple(sorted(lines, key=lambda line: line.model_dump_json())),
        )

    def left_aside(self, keys: Collection[str]) -> tuple[int, int]:
        """Rows, and keys, that are none of these: other work of the same organization."""
        others = [(key, lines) for report in self.reports.values() for key, lines in report.by_key.items()]
        strange = [(key, lines) for key, lines in others if key not in keys]
        return sum(len(lines) for _, lines in strange), len(strange)


def read_reports(files: Sequence[tuple[str, bytes]]) -> ProviderReports:
    """Read every file, each by its name. Raises InvalidInput naming file and field; nothing is dropped silently."""
    by_digest: dict[str, str] = {}
    pages: dict[Provider, list[tuple[str, ReportPage]]] = defaultdict(list)
    for name, data in files:
        digest = sha256_digest(data)
        if digest in by_digest:
            raise InvalidInput(f"{name}: the same page as {by_digest[digest]}", remedy="Give each page once.")
        by_digest[digest] = name
        page = READERS[_provider(data, name)](data, name)
        pages[page.provider].append((digest, page))
    return ProviderReports({provider: _joined(found) for provider, found in pages.items()})


def _provider(data: bytes, name: str) -> Provider:
    """Who wrote the page: one provider names the kind of each object, the other does not."""
    value = read_json(data, name)
    if not isinstance(value, dict) or not isinstance(value.get("data"), list):
        raise InvalidInput(f"{name}: data: a usage report is an object with an array of buckets")
    return "openai" if "object" in value else "anthropic"


def _joined(pages: Sequence[tuple[str, ReportPage]]) -> _Report:
    _check_minutes([page for _, page in pages])
    _check_complete([page for _, page in pages])
    _check_grouped([page for _, page in pages])
    by_key: dict[str | None, list[ReportedUsage]] = defaultdict(list)
    for _, page in pages:
        _check_rows(page)
        for row in page.rows:
            by_key[row.key_id].append(row.usage)
    return _Report(
        digests=tuple(sorted(digest for digest, _ in pages)),
        covered=_spans({minute for _, page in pages for minute in page.minutes}),
        by_key={key: tuple(lines) for key, lines in by_key.items()},
    )


def _check_minutes(pages: Sequence[ReportPage]) -> None:
    """No minute twice: buckets are whole minutes, so that is all the overlap there can be."""
    seen: dict[InstantMs, str] = {}
    for page in pages:
        for number, minute in enumerate(page.minutes):
            place = f"{page.name}: data[{number}]"
            if minute in seen:
                raise InvalidInput(
                    f"{place}: the minute {instant_text(minute)} is also in {seen[minute]}",
                    remedy="Give the pages of one query only, each once.",
                )
            seen[minute] = place


def _check_complete(pages: Sequence[ReportPage]) -> None:
    """A page that says there are more is followed by the next one."""
    starts = {minute for page in pages for minute in page.minutes}
    for page in pages:
        after = max(page.minutes, default=-MINUTE_MS) + MINUTE_MS
        if page.has_more and after not in starts:
            wanted = f" that begins at {instant_text(InstantMs(after))}" if page.minutes else ""
            raise InvalidInput(
                f"{page.name}: has_more: the next page{wanted} is not among the files",
                remedy="Save every page of the report, and give them all.",
            )


def _check_grouped(pages: Sequence[ReportPage]) -> None:
    """Work without a key is null there too, but in a report by key some row names one."""
    rows = [row for page in pages for row in page.rows]
    if rows and all(row.key_id is None for row in rows):
        raise InvalidInput(f"{rows[0].place}.api_key_id: no row of the report names its key", remedy=READ_AGAIN)


def _check_rows(page: ReportPage) -> None:
    """A row that names its key names its model, and no two of one minute are the same row."""
    seen: dict[tuple[object, ...], str] = {}
    for row in page.rows:
        if row.key_id is not None and not row.usage.model:
            raise InvalidInput(f"{row.place}.model: the row does not name its model", remedy=READ_AGAIN)
        identity = (row.usage.minute, *sorted((name, str(value)) for name, value in row.conditions.items()))
        if identity in seen:
            raise InvalidInput(f"{row.place}: the same key and conditions as {seen[identity]}")
        seen[identity] = row.place


def _spans(minutes: Collection[InstantMs]) -> tuple[ReportedSpan, ...]:
    """The minutes as few spans as they make."""
    spans: list[ReportedSpan] = []
    for minute in sorted(minutes):
        until_at = InstantMs(minute + MINUTE_MS)
        if spans and spans[-1].until_at == minute:
            spans[-1] = ReportedSpan(from_at=spans[-1].from_at, until_at=until_at)
        else:
            spans.append(ReportedSpan(from_at=minute, until_at=until_at))
    return tuple(spans)
