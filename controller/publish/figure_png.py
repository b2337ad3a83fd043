"""A figure as pixels: twice its size, drawn offline with fonts that are named by file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from controller.errors import MissingProgram
from controller.publish.figure_sheet import DARK, LIGHT, Sheet

FONTS: Final = tuple(
    Path("/usr/share/fonts/truetype/dejavu") / name for name in ("DejaVuSans.ttf", "DejaVuSans-Bold.ttf")
)
_FACE: Final = "DejaVu Sans"
_TIMES: Final = 2
_HEIGHT_MAX: Final = 30_000  # 60,000 pixels: 1,400 tasks, or all pairs of 30 arms; more takes minutes and gigabytes


def figure_files(sheets: Sequence[Sheet]) -> dict[str, bytes]:
    """Every figure by file name: `<name>.svg`, which follows the reader's light or dark, `<name>.png` in light and
    `<name>-dark.png`. One that is too tall for pixels is SVG only.

    Raises MissingProgram when the fonts are not installed.
    """
    files = {}
    for sheet in sheets:
        files[f"{sheet.name}.svg"] = sheet.svg().encode()
        if sheet.height <= _HEIGHT_MAX:
            files[f"{sheet.name}.png"] = png(sheet.svg(LIGHT))
            files[f"{sheet.name}-dark.png"] = png(sheet.svg(DARK))
    return files


def png(svg: str) -> bytes:
    """The drawing as PNG. No font of the system but the two named is looked at."""
    from resvg_py import svg_to_bytes

    if missing := [str(font) for font in FONTS if not font.is_file()]:
        raise MissingProgram(f"the font of the figures is not installed: {', '.join(missing)}")
    return bytes(
        svg_to_bytes(
            svg_string=svg,
            zoom=_TIMES,
            skip_system_fonts=True,
            font_files=[str(font) for font in FONTS],
            font_family=_FACE,
            sans_serif_family=_FACE,
        )
    )
