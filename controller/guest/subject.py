"""Run the patched code under its hidden driver: inputs on standard input, one answer a line. Standard library, 3.9+.

Usage: subject.py REPOSITORY DRIVER.py. The driver defines `prepare(repository)`, which imports the package and returns
it, and `answer(package, given)`, which returns a JSON value for one input or raises. Runs as the unprivileged user; all
that it prints is only a claim, because the judge alone knows what the answers should be.
"""

from __future__ import annotations

import json
import os
import runpy
import sys


def main(repository: str, driver_path: str) -> None:
    """Answer every case. An error while preparing ends the process, so that no case has an answer."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # packages may print; their text must not mix with the answers
    driver = runpy.run_path(driver_path)
    package = driver["prepare"](repository)
    for line in sys.stdin:
        given = json.loads(line)
        try:
            answer = {"case": given["case"], "value": driver["answer"](package, given["input"])}
            text = json.dumps(answer, allow_nan=False)
        except Exception as error:
            text = json.dumps({"case": given["case"], "raised": type(error).__name__})
        answers.write(text + "\n")
        answers.flush()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
