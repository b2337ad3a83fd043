"""The report: one self-contained HTML page, the conclusion first. Pure; no script, no outside resource.

Strings from tasks and harnesses are untrusted: the template escapes everything, control and direction characters are
replaced, and the page's own policy forbids scripts and loading.
"""

from __future__ import annotations

from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from controller.publish import report_view
from controller.publish.report_context import Fact, Incident, ReportContext, context_of_round
from controller.publish.report_text import percent, plain


def render_report(context: ReportContext) -> str:
    """The page as text, ended by a newline. The same context gives the same bytes on any machine."""
    return environment().get_template("report.html.j2").render(view=report_view.view_of(context)) + "\n"


@cache
def environment() -> Environment:
    """The templates of this package: everything escaped, nothing undefined."""
    environment = Environment(
        loader=PackageLoader("controller.publish"),
        autoescape=select_autoescape(enabled_extensions=("j2",), default=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["plain"] = plain
    environment.filters["percent"] = percent
    return environment


__all__ = ["Fact", "Incident", "ReportContext", "context_of_round", "render_report"]
