"""`python3 fairtrial-check.pyz BUNDLE [--key keys.json] [--json]`: check a published bundle, with nothing installed.

Exit code 0: accepted; 1: refused, with the number of the step; 2: this command can't be carried out as it was typed.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import List, Optional

from .check import Report, examine, plain, refusal_of
from .files import KEYS, read_bundle, read_file
from .refusal import Refused
from .signatures import KeyRing, read_keys

ACCEPTED, REFUSED, USAGE, INTERRUPTED = 0, 1, 2, 130
KEY_BYTES_MAX = 2**20
MARKS = {True: "ok ", False: "NO ", None: " - "}


def main(arguments: Optional[List[str]] = None) -> int:
    """Check the bundle that the arguments name, print the report, and return the exit code."""
    parser = argparse.ArgumentParser(prog="fairtrial-check", description="Check a published fairtrial bundle offline.")
    parser.add_argument("bundle", metavar="BUNDLE", help="the bundle's directory")
    parser.add_argument("--key", metavar="FILE", help="the publisher's keys.json, got by another way, to pin it")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    options = parser.parse_args(arguments)
    if not os.path.isdir(options.bundle):  # noqa: PTH112  (Path.is_dir raises for some names)
        return _unusable(f"{options.bundle} is not a directory")
    try:
        pinned = read_keys(read_file(options.key, "--key", KEY_BYTES_MAX), "--key") if options.key else None
    except Refused as refusal:
        return _unusable(str(refusal))
    report = _report(Path(options.bundle), pinned)
    _print(json.dumps(asdict(report), indent=2) if options.json else _text(report))
    return ACCEPTED if report.passed else REFUSED


def _report(directory: Path, pinned: Optional[KeyRing]) -> Report:
    is_pinned = pinned is not None
    try:
        files = read_bundle(directory)
        ring = pinned or read_keys(files.get(KEYS, b""), KEYS)
    except Refused as refusal:
        return refusal_of(str(refusal), is_pinned=is_pinned)
    except MemoryError:
        return refusal_of("more than this machine's memory", is_pinned=is_pinned)
    return examine(files, ring, is_pinned=is_pinned)


def _text(report: Report) -> str:
    lines = [f"{MARKS[step.passed]} {step.number:2} {step.name}: {step.detail}" for step in report.steps]
    if report.passed:
        lines += [f"not recomputed here: {what}" for what in report.not_recomputed]
    return "\n".join([*lines, f"{'accepted' if report.passed else 'REFUSED'}; {report.trust_text}"])


def _print(text: str) -> None:
    try:
        print(text, flush=True)
    except BrokenPipeError:  # the reader has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _unusable(what: str) -> int:
    print(f"fairtrial-check: {plain(what)}", file=sys.stderr)
    return USAGE


def entry() -> int:
    """As `main`; an interrupt ends it without a traceback."""
    try:
        return main()
    except KeyboardInterrupt:
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(entry())
