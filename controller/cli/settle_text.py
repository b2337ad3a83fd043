"""What `fairtrial settle` shows a person: one screen; the JSON is complete."""

from __future__ import annotations

from typing import Final

from controller.conductor.settlement_report import ArmSettlement, RunSettlement, Settlement
from controller.domain.exact import decimal_text
from controller.domain.money import usd_from_text
from controller.domain.provider_report import REFUTED, Figure

LINES_MAX: Final = 6  # of runs with something to say; the whole list is in the JSON
LINE_CHARS_MAX: Final = 118


def describe(found: Settlement) -> str:
    """One screen."""
    state = "settled and closed" if found.closed else "not closed: nothing was written"
    lines = [
        f"{found.round_id}: {state}; {found.attempts} attempts, {found.requests} requests, {_amount(found)}",
        "",
        _columns("arm", "metered", "figure", "unknown", "self-reported", "difference", "retail"),
    ]
    lines += [_arm_line(arm) for arm in found.arms]
    if found.reports is not None:
        findings = ", ".join(f"{count} {name}" for name, count in found.reports.findings.items())
        lines += [
            "",
            f"provider's report: {findings}; {found.reports.rows_left_aside} rows of "
            f"{found.reports.keys_left_aside} other keys left aside",
        ]
    resolved = [each for run in found.runs for each in run.resolved]
    if resolved:
        assigned = sum(each.assigned is not None for each in resolved)
        lines.append(f"unknown requests: {len(resolved) - assigned} proven free, {assigned} assigned their usage")
    if found.invalid_runs:
        told = [f"  {run.run}: {_reason(run)}" for run in found.runs if run.run in found.invalid_runs]
        lines += ["", f"measurement-invalid: {len(told)} of {len(found.runs)} logical runs", *told[:LINES_MAX]]
        if len(told) > LINES_MAX:
            lines.append(f"  and {len(told) - LINES_MAX} more; --json names all")
    return "\n".join(lines)


def _amount(found: Settlement | ArmSettlement) -> str:
    if found.usd is None:
        return f"at least {_dollars(found.floor_usd)}"
    return f"{'about ' if found.figure is Figure.ESTIMATED else ''}{_dollars(found.usd)}"


def _dollars(usd: str) -> str:
    sign, digits = ("-", usd[1:]) if usd.startswith("-") else ("", usd)
    return f"{sign}${decimal_text(usd_from_text(digits), 4)}"


def _arm_line(arm: ArmSettlement) -> str:
    usd = f"{'≥ ' if arm.usd is None else ''}{_dollars(arm.usd if arm.usd is not None else arm.floor_usd)}"
    gap = arm.self_report
    own, difference = (_dollars(gap.self_reported_usd), _dollars(gap.difference_usd)) if gap else ("-", "-")
    retail = _dollars(arm.retail_usd) if arm.retail_usd is not None else "-"  # no policy, or a cost that is unknown
    return _columns(arm.arm, usd, arm.figure.value, str(arm.unknown_requests), own, difference, retail)


def _columns(arm: str, *cells: str) -> str:
    return f"  {arm:24}" + "".join(f" {cell:>14}" for cell in cells)


def _reason(run: RunSettlement) -> str:
    parts = [run.finding.value] if run.finding in REFUTED else []
    parts += run.problems[:1]
    more = len(run.problems) - 1
    text = "; ".join(parts) + (f" (and {more} more problems)" if more > 0 else "")
    room = LINE_CHARS_MAX - len(run.run) - 4
    return text if len(text) <= room else f"{text[: room - 4]} ..."
