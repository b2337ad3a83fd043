"""`python -m tests.fuzz SECONDS DIRECTORY`: fuzz for so long; corpus and findings are kept in the directory."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

INSTRUMENTED = ["controller.meter", "controller.proxy.copy", "controller.domain"]
INPUT_BYTES_MAX = 4_096
INPUT_SECONDS_MAX = 20


def main(seconds: int, directory: Path) -> None:
    """Runs libFuzzer, which ends the process: 0 when it found nothing, otherwise the finding is in `findings`."""
    atheris = importlib.import_module("atheris")
    with atheris.instrument_imports(include=INSTRUMENTED):
        targets = importlib.import_module("tests.fuzz.targets")
        dictionary = importlib.import_module("tests.fuzz.seeds").write(directory / "seeds")
    corpus, findings = directory / "corpus", directory / "findings"
    for path in (corpus, findings):
        path.mkdir(exist_ok=True)
    arguments = [
        sys.argv[0],
        str(corpus),
        str(directory / "seeds"),
        f"-dict={dictionary}",
        f"-max_total_time={seconds}",
        f"-max_len={INPUT_BYTES_MAX}",
        f"-timeout={INPUT_SECONDS_MAX}",
        f"-artifact_prefix={findings}/",
        "-print_final_stats=1",
    ]
    atheris.Setup(arguments, targets.run)
    atheris.Fuzz()


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
