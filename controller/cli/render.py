"""What a person or a machine sees: results on stdout, everything else on stderr."""

from __future__ import annotations

import json
import sys
import unicodedata
from typing import Any

from controller.errors import FairtrialError

LINES_MAX = 24  # an error is one screen, however much is wrong
LINE_MAX = 400


def printable(text: str) -> str:
    """The text with everything escaped that would move a terminal's cursor, colour it, reorder it or can't be encoded.

    Names and reasons come from strangers' files; line breaks and tabs are kept.
    """
    return "".join(c if c in "\n\t" or not _acts(c) else c.encode("unicode_escape").decode() for c in text)


def _acts(char: str) -> bool:
    """Controls, format characters such as those that turn the direction of text, and lone surrogates."""
    return (char > "~" and unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp")) or char < " " or char == "\x7f"


def result(value: Any, *, as_json: bool, text: str) -> None:
    """Print a verb's result: one JSON document for machines, or text for people."""
    sys.stdout.write((json.dumps(value, indent=2, sort_keys=True) if as_json else printable(text)) + "\n")


def note(text: str) -> None:
    """One line of progress."""
    sys.stderr.write(printable(text) + "\n")
    sys.stderr.flush()


def error(fault: FairtrialError) -> int:
    """One screen: what is wrong, who is to blame, what to do next. Returns the exit code."""
    kind = type(fault).__name__
    spaced = "".join(f" {c.lower()}" if c.isupper() else c for c in kind).strip()
    note(f"fairtrial: {spaced}\n")
    lines = printable(str(fault)).split("\n") if str(fault).strip() else ["(no detail)"]
    for line in lines[:LINES_MAX]:
        note(f"  {line if len(line) <= LINE_MAX else line[:LINE_MAX] + ' ...'}")
    if len(lines) > LINES_MAX:
        note(f"  and {len(lines) - LINES_MAX} more lines like these")
    note(f"\n  Whose part:  {fault.blame.value}")
    note(f"  What to do:  {fault.remedy}")
    note(f"  Exit code:   {fault.exit_code}")
    return fault.exit_code
