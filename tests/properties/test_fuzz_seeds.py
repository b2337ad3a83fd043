"""The fuzzer's targets hold for its seeds and for what it once found; `make fuzz` looks for more."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.seeds import seeds, write
from tests.fuzz.targets import TARGETS, run

SEEDS = sorted(set(seeds()))


@pytest.mark.parametrize("target", range(len(TARGETS)), ids=[target.__name__ for target in TARGETS])
def test_every_target_holds_for_its_seeds(target: int) -> None:
    own = [seed for seed in SEEDS if seed[0] == target]
    assert own
    for seed in own:
        run(seed)
        run(seed[: len(seed) // 2])


def test_seeds_are_written_with_their_words(tmp_path: Path) -> None:
    dictionary = write(tmp_path / "seeds")
    assert len(list((tmp_path / "seeds").iterdir())) == len(SEEDS)
    assert '"\\x64\\x61\\x74\\x61\\x3a\\x20"' in dictionary.read_text().splitlines()  # "data: "
