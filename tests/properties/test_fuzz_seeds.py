"""The fuzzer's targets hold for its seeds and for what it once found; `make fuzz` looks for more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from controller.domain.usage import Dialect, RequestState
from controller.meter.admission import Admitted, Route, admit
from controller.meter.rules import Ending, Exchange, ending
from tests.fuzz import targets
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


def test_seeds_reach_beyond_the_first_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    admitted: set[Dialect] = set()
    settled: set[str] = set()

    def noting_admit(route: Route, raw: bytes, *, model: str, dialect: Dialect) -> Admitted:
        answer = admit(route, raw, model=model, dialect=dialect)
        admitted.add(dialect)
        return answer

    def noting_ending(exchange: Exchange, reader: Any, *terms: Any, **more: Any) -> Ending:
        decided = ending(exchange, reader, *terms, **more)
        if decided.state is RequestState.SETTLED:
            settled.add(type(reader).__name__)
        return decided

    monkeypatch.setattr(targets, "admit", noting_admit)
    monkeypatch.setattr(targets, "ending", noting_ending)
    for seed in SEEDS:
        run(seed)
    assert admitted == set(targets.DIALECTS) and len(settled) == len(targets.DIALECTS)


def test_seeds_are_written_with_their_words(tmp_path: Path) -> None:
    dictionary = write(tmp_path / "seeds")
    assert len(list((tmp_path / "seeds").iterdir())) == len(SEEDS)
    assert '"\\x64\\x61\\x74\\x61\\x3a\\x20"' in dictionary.read_text().splitlines()  # "data: "
