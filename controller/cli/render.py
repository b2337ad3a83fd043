"""What a person or a machine sees: results on stdout, everything else on stderr."""

from __future__ import annotations

import json
import sys
from typing import Any

from controller.errors import FairtrialError


def result(value: Any, *, as_json: bool, text: str) -> None:
    """Print a verb's result: one JSON document for machines, or text for people."""
    sys.stdout.write((json.dumps(value, indent=2, sort_keys=True) if as_json else text) + "\n")


def note(text: str) -> None:
    """One line of progress."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def error(fault: FairtrialError) -> int:
    """One screen: what is wrong, who is to blame, what to do next. Returns the exit code."""
    kind = type(fault).__name__
    spaced = "".join(f" {c.lower()}" if c.isupper() else c for c in kind).strip()
    note(f"fairtrial: {spaced}\n")
    for line in str(fault).splitlines()[:40] or ["(no detail)"]:
        note(f"  {line}")
    note(f"\n  Whose part:  {fault.blame.value}")
    note(f"  What to do:  {fault.remedy}")
    note(f"  Exit code:   {fault.exit_code}")
    return fault.exit_code
