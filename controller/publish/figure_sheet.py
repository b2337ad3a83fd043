"""One figure as a file of its own: a titled sheet that stacks text and viewports, in light and dark, without scripts.

A sheet is 420 units wide unless its content needs more, and its smallest text is 12: on a phone of 375 px nearly 11 px.
Widths of text are estimated for DejaVu Sans, one of the widest common faces, so that nothing is clipped in another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from html import escape
from typing import Final

from controller.publish.figures import tick_label
from controller.publish.report_text import plain

WIDTH: Final = 420
MARGIN: Final = 20
Palette = Mapping[str, str]
LIGHT: Final[Palette] = {
    "paper": "#fcfbf8", "ink": "#1a1d22", "soft": "#585e68", "hair": "#e0dbcf",
    "mark": "#15506b", "tint": "#d3e2e8", "over": "#fcfbf8",
}  # fmt: skip
DARK: Final[Palette] = {
    "paper": "#14161a", "ink": "#e9e6df", "soft": "#a6abb3", "hair": "#34383f",
    "mark": "#84c3dd", "tint": "#23404d", "over": "#10222a",
}  # fmt: skip
_RULES: Final = """
.paper{fill:%(paper)s} text{font-family:system-ui,"DejaVu Sans",sans-serif;font-size:12px;fill:%(ink)s}
.head{font-size:17px;font-weight:bold} .who{font-size:13px;font-weight:bold} .soft,.tick{fill:%(soft)s}
.grid{stroke:%(hair)s} .base{stroke:%(soft)s} .span{stroke:%(soft)s;stroke-width:1.5}
.strong{stroke:%(mark)s;stroke-width:2.5} .dot{fill:%(paper)s;stroke:%(soft)s;stroke-width:2}
.dot.strong{fill:%(mark)s;stroke:%(mark)s} .disc{fill:%(mark)s;stroke:%(paper)s;stroke-width:2}
.key{fill:%(over)s;font-weight:bold} .bar{fill:%(mark)s;stroke:%(mark)s} .open{fill:%(paper)s}
.cell{fill:%(paper)s;stroke:%(soft)s} .part{fill:%(tint)s} .all{fill:%(mark)s} .over{fill:%(over)s;font-weight:bold}
"""
_NARROW: Final = frozenset(" .,:;'!|()[]{}ijlftrI-/\\")
_WIDE: Final = frozenset("mMW%@—→≥±−+")


@dataclass(frozen=True, slots=True)
class Sheet:
    """A finished figure. `body` is markup in classes; `described` says in words what it shows."""

    name: str
    title: str
    described: str
    width: int
    height: int
    body: str

    def svg(self, palette: Palette | None = None) -> str:
        """The file. Without a palette it follows the reader's choice of light or dark."""
        style = _RULES % (palette or LIGHT)
        if palette is None:
            style += f"@media (prefers-color-scheme:dark){{{_RULES % DARK}}}"
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{self.width}" height="{self.height}" '
            f'viewBox="0 0 {self.width} {self.height}" role="img" aria-labelledby="title about">'
            f'<title id="title">{escape(self.title)}</title><desc id="about">{escape(self.described)}</desc>'
            f'<style>{style}</style><rect class="paper" width="{self.width}" height="{self.height}"/>'
            f"{self.body}</svg>\n"
        )


@dataclass
class Drawing:
    """Stacks parts from the top; `top` is where the next one begins."""

    width: int = WIDTH
    top: int = MARGIN
    parts: list[str] = field(default_factory=list)

    @property
    def inner(self) -> int:
        return self.width - 2 * MARGIN

    def text(self, words: str, style: str, *, size: int = 12, left: int = MARGIN) -> None:
        """A paragraph, wrapped to the width."""
        for one in wrapped(words, self.width - MARGIN - left, size):
            self.top += size + 5
            self.label(left, self.top - 4, one, style)

    def label(self, x: int, y: int, words: str, style: str, *, anchor: str = "start") -> None:
        """One line of text on the base line `y`."""
        self.parts.append(f'<text class="{style}" x="{x}" y="{y}" text-anchor="{anchor}">{escape(words)}</text>')

    def view(self, marks: str, *, height: int, left: int = MARGIN, right: int = MARGIN, gap: int = 0) -> None:
        """A viewport of its own, in which percentages are of its width."""
        self.parts.append(
            f'<svg x="{left}" y="{self.top}" width="{self.width - left - right}" height="{height}" '
            f'overflow="visible">{marks}</svg>'
        )
        self.top += height + gap

    def head(self, title: str, about: str) -> None:
        self.text(title, "head", size=17)
        self.top += 2
        self.text(about, "soft")
        self.top += 10

    def legend(self, arms: Mapping[str, str], beneath: Mapping[str, str] | None = None) -> None:
        """Which letter is which arm, one to a line, for names may be long; `beneath` adds a line to each."""
        for key, name in arms.items():
            self.top += 22
            self.parts.append(f'<svg x="{MARGIN + 11}" y="{self.top - 4}" overflow="visible">')
            self.parts.append(f'<circle class="disc" r="10"/>{tick_label("0", "0", "middle", key, "key")}</svg>')
            self.label(MARGIN + 28, self.top, fitted(name, self.inner - 28), "")
            if beneath is not None:
                self.top += 2
                self.text(beneath[key], "soft", left=MARGIN + 28)
        self.top += 14

    def sheet(self, name: str, title: str, described: str) -> Sheet:
        return Sheet(name, title, described, self.width, self.top + MARGIN, "".join(self.parts))


def text_width(text: str, size: int = 12) -> Fraction:
    """About how wide a line is, rather too wide than too narrow."""
    return Fraction(sum(map(_percents, text)) * size, 100)


def _percents(char: str) -> int:
    """The width of a character in hundredths of the type's size."""
    if char in _NARROW:
        return 40
    if char in _WIDE or ord(char) > 0x2E7F:
        return 100
    return 65 if char.islower() or char.isdigit() else 75


def fitted(text: str, width: int, size: int = 12) -> str:
    """The text, cut in its middle when it is wider: names often differ at their ends only."""
    shown = plain(text)
    kept = len(shown)
    while text_width(shown, size) > width and kept > 1:
        kept -= 1
        shown = f"{plain(text)[: -(-kept // 2)]}…{plain(text)[len(plain(text)) - kept // 2 :]}"
    return shown


def wrapped(text: str, width: int, size: int = 12) -> Sequence[str]:
    """The text in lines no wider than that, broken between words; a longer word is cut."""
    lines: list[str] = []
    for word in text.split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and text_width(longer, size) <= width:
            lines[-1] = longer
        else:
            lines.append(fitted(word, width, size))
    return lines
