"""A store of sealed tasks under every kind of damage: what opens is what was sealed, or nothing opens."""

from __future__ import annotations

from random import Random

import pytest

from controller.domain.sealed import PARTS, Part, SealedTask
from controller.errors import FairtrialError
from controller.evidence.canonical import canonical, parse
from controller.evidence.sealing import open_curator, open_runner, open_verifier
from tests.world.sealed import CURATOR, RUNNER, VERIFIER, sealed_task

NAMES = ("task.json", *PARTS)


def opens(frozen: SealedTask, files: dict[str, bytes]) -> bool:
    """True when everybody can open his part and the entry is the one that a manifest has frozen."""
    try:
        task = parse(files["task.json"], SealedTask)
        if task.entry != frozen.entry:
            return False
        for runner, verifier in ((RUNNER, VERIFIER), (CURATOR, CURATOR)):
            brief = open_runner(task, files["runner"], runner)
            open_verifier(task, brief, files["verifier"], verifier)
        open_curator(task, files["curator"], CURATOR)
        return True
    except FairtrialError:
        return False


def store() -> tuple[SealedTask, dict[str, bytes]]:
    task, parts = sealed_task()
    return task, {"task.json": canonical(task), **{part: parts[part] for part in PARTS}}


def test_the_undamaged_store_opens() -> None:
    assert opens(*store())


@pytest.mark.parametrize("name", NAMES)
def test_no_flipped_bit_is_accepted(name: str) -> None:
    """2,500 spread over each file, with its first and last bytes among them."""
    task, files = store()
    bits, chance = 8 * len(files[name]), Random(name)
    chosen = {*range(256), *range(bits - 256, bits)} | {chance.randrange(bits) for _ in range(2_000)}
    accepted = []
    for bit in chosen:
        data = bytearray(files[name])
        data[bit // 8] ^= 1 << bit % 8
        if opens(task, {**files, name: bytes(data)}):
            accepted.append(bit)
    assert accepted == []


@pytest.mark.parametrize("name", NAMES)
def test_no_cut_or_lengthened_file_is_accepted(name: str) -> None:
    task, files = store()
    data = files[name]
    ends = {0, 1, 11, 12, 15, 16, 17, len(data) // 2, len(data) - 16, len(data) - 1}
    damaged = [data[:end] for end in ends] + [data + b"\0", data + b"\n", b"\0" + data, data + data]
    assert [changed for changed in damaged if opens(task, {**files, name: changed})] == []


@pytest.mark.parametrize("part", PARTS)
def test_another_tasks_file_is_not_accepted(part: Part) -> None:
    task, files = store()
    _, other = sealed_task("other")
    assert not opens(task, {**files, part: other[part]})
    for taken in PARTS:
        if taken != part:
            assert not opens(task, {**files, part: files[taken]})
