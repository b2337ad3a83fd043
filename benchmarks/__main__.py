"""`make bench`: the project's figures on this machine, as ratios where a ratio can be made in one run."""

from __future__ import annotations

import argparse
import functools
import json
import sys
from collections.abc import Callable

from benchmarks.analysis import analysis
from benchmarks.bootstrap import bootstrap
from benchmarks.check import check
from benchmarks.leases import leases
from benchmarks.meter import meter


def main() -> int:
    """Run every benchmark, or those named; one JSON object."""
    known: dict[str, Callable[[], dict[str, object]]] = {
        "leases": leases,
        "analysis": analysis,
        "bootstrap": bootstrap,
        "check": check,
        "meter": meter,
    }
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("subjects", nargs="*", metavar="subject", help=f"some of: {', '.join(known)}")
    parser.add_argument("--long", action="store_true", help="the meter streams for ten minutes instead of 30 seconds")
    asked = parser.parse_args()
    if wrong := [name for name in asked.subjects if name not in known]:
        parser.error(f"unknown: {', '.join(wrong)}")
    known["meter"] = functools.partial(meter, long=asked.long)
    names = asked.subjects or list(known)
    sys.stdout.write(json.dumps({name: known[name]() for name in names}, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
