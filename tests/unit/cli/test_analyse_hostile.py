"""`fairtrial analyse` with files and options that nobody should give it: one screen, its own exit code, no defect."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from controller.cli.__main__ import main
from tests.world.policy_matrix import matrix
from tests.world.policy_matrix import plan as optimizer_plan
from tests.world.rounds import SEED, jsonl, run

GOOD = jsonl([run(task, arm, 1) for task in ("t1", "t2") for arm in ("a", "b")])
Screen = Callable[..., tuple[int, str, str]]


@pytest.fixture
def screen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Screen:
    """Run the verb in an empty directory that holds one good dataset."""
    monkeypatch.setenv("FAIRTRIAL_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    Path("good.jsonl").write_bytes(GOOD)

    def shown(*arguments: str) -> tuple[int, str, str]:
        code = main(["analyse", *arguments])
        return code, *capsys.readouterr()

    return shown


def is_one_screen(code: int, out: str, err: str) -> None:
    assert (code in (71, 72), out) == (True, ""), err
    assert "Traceback" not in err and "defect" not in err
    assert "Whose part:" in err and "What to do:" in err
    assert len(err.splitlines()) <= 32 and max(map(len, err.splitlines())) <= 410


ROLES = {
    "harness-round": ("odd", "--json"),
    "cost-index": ("odd", "--protocol", "cost-index", "--json"),
    "optimizer-matrix": ("odd", "--protocol", "optimizer-matrix", "--json"),
    "frozen cost-index": ("good.jsonl", "--protocol", "cost-index", "--frozen", "odd", "--json"),
    "frozen matrix": ("good.jsonl", "--protocol", "optimizer-matrix", "--frozen", "odd", "--json"),
    "cases": ("odd", "--cases"),
    "plan": ("odd", "--plan", "--json"),
    "pilot": ("--plan", "--tasks", "100", "--pilot", "odd", "--json"),
}
ODD: dict[str, Callable[[Path], object]] = {
    "empty": lambda path: path.write_bytes(b""),
    "one line end": lambda path: path.write_bytes(b"\n"),
    "zeros": lambda path: path.write_bytes(b"\0" * 5_000),
    "no text": lambda path: path.write_bytes(bytes(range(128, 256))),
    "UTF-16": lambda path: path.write_bytes(GOOD.decode().encode("utf-16")),
    "byte order mark": lambda path: path.write_bytes(b"\xef\xbb\xbf" + GOOD),
    "deep lists": lambda path: path.write_bytes(b"[" * 100_000),
    "deep objects": lambda path: path.write_bytes(b'{"a":' * 100_000),
    "null": lambda path: path.write_bytes(b"null\n"),
    "number": lambda path: path.write_bytes(b"1e400\n"),
    "long number": lambda path: path.write_bytes(b"1" * 5_000 + b"\n"),
    "NaN": lambda path: path.write_bytes(b"NaN\n"),
    "list": lambda path: path.write_bytes(b"[{}]\n"),
    "key twice": lambda path: path.write_bytes(b'{"vectors": [], "vectors": []}\n'),
    "FIFO": os.mkfifo,
    "directory": lambda path: path.mkdir(),
    "device": lambda path: path.symlink_to("/dev/zero"),
}


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("role", ROLES)
def test_a_file_that_is_none_of_the_kind(role: str, odd: str, screen: Screen) -> None:
    ODD[odd](Path("odd"))
    is_one_screen(*screen(*ROLES[role]))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("good.jsonl", "--cases", "--plan"), "cases: not with --plan"),
        (("--plan", "--tasks", "50", "--seed", SEED), "seed: not with --plan"),
        (("--plan", "--tasks", "50", "--frozen", "good.jsonl", "--figures", "f"), "figures, frozen: not with --plan"),
        (("good.jsonl", "--cases", "--seed", SEED), "seed: not with --cases"),
        (("good.jsonl", "--cases", "--parquet", "p"), "parquet: not with --cases"),
        (("good.jsonl", "--cases", "--protocol", "cost-index"), "protocol: not with --cases"),
        (("good.jsonl", "--pilot", "good.jsonl", "--tasks", "3"), "pilot, tasks: only with --plan"),
        ((".", "--seed", SEED), "seed: a round is analysed by the plan and the seed in its manifest"),
    ],
)
def test_an_option_without_effect_is_refused(arguments: tuple[str, ...], message: str, screen: Screen) -> None:
    code, out, err = screen(*arguments)
    is_one_screen(code, out, err)
    assert message in err


def test_the_protocol_is_an_option_of_a_plan_too(screen: Screen) -> None:
    code, out, _ = screen("--plan", "--protocol", "optimizer-matrix", "--json")
    assert (code, json.loads(out)["assumptions"]["cells"]) == (0, 30)
    Path("plan.yaml").write_text("protocol: cost-index\ninstances: 10\n")
    code, out, err = screen("--plan", "plan.yaml", "--protocol", "harness-round")
    is_one_screen(code, out, err)
    assert "protocol: is given in the file and as an option" in err


@pytest.mark.parametrize("option", ["--parquet", "--figures"])
@pytest.mark.parametrize("out", ["good.jsonl", "good.jsonl/below", "/proc/none/here", "x" * 300])
def test_a_place_where_nothing_can_be_written(option: str, out: str, screen: Screen) -> None:
    code, text, err = screen("good.jsonl", option, out)
    is_one_screen(code, text, err)
    assert out[:200] in err or str(Path(out).parent) in err


@pytest.mark.parametrize("seed", ["", "0" * 63, "0" * 65, "A" * 64, "0x" + "0" * 62, "\u0660" * 64, "0" * 63 + "\n"])
@pytest.mark.parametrize("protocol", ["harness-round", "cost-index", "optimizer-matrix"])
def test_a_malformed_seed(seed: str, protocol: str, screen: Screen) -> None:
    code, out, err = screen("good.jsonl", "--protocol", protocol, "--seed", seed)
    is_one_screen(code, out, err)
    assert "64 hex digits" in err


def test_the_frozen_plan_of_another_protocol(screen: Screen) -> None:
    Path("matrix.jsonl").write_bytes(jsonl(matrix()))
    Path("plan.json").write_text(optimizer_plan().model_dump_json())
    code, out, err = screen("matrix.jsonl", "--protocol", "cost-index", "--frozen", "plan.json")
    is_one_screen(code, out, err)
    assert "plan.json: stacks: Field required" in err


def test_missing_cells_of_a_matrix_are_counted_not_only_named(screen: Screen) -> None:
    Path("matrix.jsonl").write_bytes(jsonl(matrix()[:60]))  # the first two of four policies
    Path("plan.json").write_text(optimizer_plan().model_dump_json())
    code, out, err = screen("matrix.jsonl", "--protocol", "optimizer-matrix", "--frozen", "plan.json")
    is_one_screen(code, out, err)
    assert "60 of 120 predeclared runs have no row; the first of them follow" in err


def test_memory_that_does_not_suffice_is_no_defect(screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    def exhausted(*_: object) -> bytes:
        raise MemoryError

    monkeypatch.setattr("controller.wiring.analysing.read_input", exhausted)
    code, out, err = screen("good.jsonl")
    assert (code, out) == (83, "")
    assert "memory" in err and "defect" not in err
