"""The command line answers fast, explains itself, and turns every fault into one screen with its own exit code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from controller.adapters.journal_sql import SqlJournal
from controller.adapters.round_lock import round_lock
from controller.cli.__main__ import main
from controller.domain.bodies import RoundFrozen
from controller.domain.statement import StatementKind
from controller.errors import InvalidInput
from controller.settings import read_settings
from controller.wiring.services import runtime_directory
from tests.world.simulation import Simulation


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRTRIAL_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("FAIRTRIAL_ROUNDS_DIR", str(tmp_path / "rounds"))
    monkeypatch.setenv("FAIRTRIAL_RUNTIME_DIR", str(tmp_path / "run"))


def screen(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of one command."""
    code = main(list(arguments))
    out, err = capsys.readouterr()
    return code, out, err


def verbs() -> list[str]:
    import typer

    from controller.cli.verbs import app

    command = typer.main.get_command(app)
    return sorted(getattr(command, "commands", {}))


def test_help_names_every_verb_and_each_has_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    assert len(verbs()) >= 18
    groups = ("card", "holdout", "images", "pool", "serve", "task", "timestamp", "witness")
    for verb in verbs():
        code, out, _ = screen(capsys, verb, "--help")
        assert code == 0
        assert verb in groups or f"Example: fairtrial {verb}" in out, f"{verb} has no example"


MACHINES = {"dbos", "docker", "paramiko", "aiohttp", "genai_prices"}  # what only conducting and card building need


@pytest.mark.parametrize(
    ("loads", "heavy"),
    [
        ("from controller.cli.__main__ import main; main(['--help'])", MACHINES | {"numpy", "sqlalchemy", "pydantic"}),
        ("import controller.wiring.cases, controller.wiring.cards", MACHINES | {"numpy", "sqlalchemy"}),
        ("import controller.wiring.rounds", MACHINES | {"numpy"}),
    ],
    ids=["help", "price and card", "status"],
)
def test_a_verb_starts_without_the_libraries_of_others(loads: str, heavy: set[str]) -> None:
    program = f"import sys; {loads}; found = {heavy!r} & set(sys.modules); sys.exit(str(sorted(found)) if found else 0)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("verb", ["status", "start", "resume", "settle", "authorize", "stop"])
def test_a_round_that_does_not_exist_is_one_screen(
    verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = screen(capsys, verb, str(tmp_path / "nowhere"))
    assert code == 71
    assert out == ""
    assert "nowhere" in err
    for part in ("Whose part:", "What to do:", "Exit code:   71"):
        assert part in err
    assert len(err.splitlines()) <= 24


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("round_id: [", "plan.yaml"),
        ("round_id: Bad Name\n", "round_id"),
        ("{}", "replicates"),
        ("round_id: a\nround_id: b\n", "round_id"),
        ("\x00", "plan.yaml"),
    ],
)
def test_a_malformed_plan_names_file_and_field(
    text: str, expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = tmp_path / "plan.yaml"
    plan.write_text(text)
    code, _, err = screen(capsys, "freeze", str(plan), "--out", str(tmp_path / "round"))
    assert code == 64
    assert "plan.yaml" in err
    assert expected in err
    assert not (tmp_path / "round").exists()


def test_an_unknown_harness_is_named_with_those_that_are_known(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    demo = Path(__file__).parents[3] / "policies" / "rounds" / "demo.yaml"
    plan = tmp_path / "plan.yaml"
    plan.write_text(demo.read_text().replace("harness: codex", "harness: nobody"))
    code, _, err = screen(capsys, "freeze", str(plan), "--out", str(tmp_path / "round"))
    assert code == 66
    assert "nobody" in err
    assert "mini-swe-agent" in err


def test_missing_images_are_named_with_what_to_do(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    demo = Path(__file__).parents[3] / "policies" / "rounds" / "demo.yaml"
    code, _, err = screen(capsys, "freeze", str(demo), "--out", str(tmp_path / "round"))
    assert code == 67
    assert "vm-runner" in err
    assert "fairtrial images build" in err


def test_a_round_that_another_controller_holds_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    simulation = Simulation(tmp_path)
    with round_lock(simulation.directory):
        done = subprocess.run([sys.executable, "-c", _LOCK, str(simulation.directory)], capture_output=True, text=True)
    assert done.returncode == 82, done.stderr
    assert str(os.getpid()) in done.stderr


_LOCK = """
import sys
from collections.abc import Callable
from pathlib import Path
from controller.adapters.journal_sql import SqlJournal
from controller.adapters.round_lock import round_lock
from controller.cli.render import error
from controller.errors import FairtrialError
try:
    with round_lock(Path(sys.argv[1])):
        pass
except FairtrialError as fault:
    sys.exit(error(fault))
"""


def test_wrong_usage_exits_2_and_a_bad_setting_is_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert screen(capsys, "freeze")[0] == 2
    assert screen(capsys, "no-such-verb")[0] == 2
    monkeypatch.setenv("FAIRTRIAL_FLEET_SIZE", "many")
    code, _, err = screen(capsys, "pool", "list")
    assert code == 72
    assert "FAIRTRIAL_FLEET_SIZE" in err


def test_price_refuses_what_it_does_not_know(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    card = Path(__file__).parents[3] / "policies" / "rounds" / "rate-card-rehearsal.json"
    usage = tmp_path / "usage.json"
    usage.write_text(json.dumps({"usage": {"input_tokens": 10, "output_tokens": 1, "new_counter_tokens": 5}}))
    code, _, err = screen(capsys, "price", str(usage), "--card", str(card), "--dialect", "anthropic")
    assert code == 98
    assert "new_counter_tokens" in err


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"usage": {"input_tokens": 1' + "0" * 4200 + ', "output_tokens": 1}}', "input_tokens"),
        ('{"usage": {"input_tokens": 1, "input_tokens": 9, "output_tokens": 1}}', "twice"),
        ('{"usage": {}}', "not zero"),
        ('{"usage": {"input_tokens": 1, "other": 1' + "0" * 4200 + "}}", "other"),
    ],
)
def test_usage_that_no_answer_holds_is_refused_by_name(
    text: str, expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    card = Path(__file__).parents[3] / "policies" / "rounds" / "rate-card-rehearsal.json"
    usage = tmp_path / "usage.json"
    usage.write_text(text)
    for dialect in ("anthropic", "openai_responses"):
        code, out, err = screen(capsys, "price", str(usage), "--card", str(card), "--dialect", dialect)
        assert code in (72, 98)
        assert expected in err
        assert out == ""


def test_json_goes_to_stdout_and_nothing_else(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    simulation = Simulation(tmp_path)
    journal = SqlJournal.in_directory(simulation.directory)
    frozen = simulation.frozen
    body = RoundFrozen(manifest_digest=frozen.digest, corpus_root=frozen.manifest.corpus_root)
    journal.append(StatementKind.ROUND_FROZEN, frozen.manifest.round_id, body, at=simulation.clock.now())
    journal.close()
    code, out, _ = screen(capsys, "status", str(simulation.directory), "--json")
    assert code == 0
    assert json.loads(out)["state"] == "frozen"


HOSTILE = "x\x1b[2J\x1b]0;owned\x07\u202egnp\u2066\x9b31m\udcff"


def test_nothing_a_stranger_names_reaches_the_terminal_as_a_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from controller.cli import render

    render.result({}, as_json=False, text=f"round {HOSTILE}\n\tkept")
    render.note(HOSTILE)
    render.error(InvalidInput(HOSTILE, remedy=HOSTILE))
    out, err = capsys.readouterr()
    assert all(char.isprintable() or char in "\n\t" for char in out + err)
    assert out.endswith("\n\tkept\n")
    assert "\\x1b[2J" in err


def test_an_error_is_one_screen_however_much_is_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    from controller.cli import render

    render.error(InvalidInput("\n".join("fault " + "y" * 5000 for _ in range(3000))))
    _, err = capsys.readouterr()
    assert "and 2976 more lines" in err
    assert "Exit code:   72" in err
    assert len(err) < 12_000


@pytest.mark.parametrize(
    "make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero"), lambda path: path.symlink_to(path)]
)
@pytest.mark.parametrize(
    "arguments",
    [
        ["check", "{round}/release", "--key", "{file}"],
        ["analyse", "{file}", "--cases"],
        ["analyse", "{file}"],
        ["price", "{file}", "--card", "{file}", "--dialect", "openai_chat"],
        ["price", "--cases", "{file}"],
        ["card", "lint", "{file}"],
        ["card", "pin", "{file}", "--out", "{round}/new"],
        ["card", "build", "--models", "openai/gpt-5.5", "--second-map", "{file}", "--out", "{round}/new"],
        ["freeze", "{file}", "--out", "{round}/new"],
        ["settle", "{round}", "--usage-report", "{file}"],
        ["settle", "{round}", "--retail-policy", "{file}"],
        ["verify", "--task", "corpus/humanize", "--patch", "{file}"],
        ["check", "{round}/release", "--witness", "{file}"],
        ["check", "{round}/release", "--tsa", "{file}"],
        ["dispute", "{round}", "--by", "me", "--text-file", "{file}"],
        ["timestamp", "attach", "{round}", "{file}", "--tsa", "{file}"],
        ["witness", "attach", "{round}", "{file}", "--witness", "{file}"],
        [
            "witness",
            "sign",
            "{file}",
            "--key",
            "{round}/w.pem",
            "--name",
            "w",
            "--publisher",
            "{file}",
            "--out",
            "{round}/new",
        ],
        ["serve", "meter", "--config", "{file}"],
    ],
    ids=lambda arguments: " ".join(arguments[:2]),
)
def test_no_verb_waits_for_a_file_or_reads_it_without_end(
    arguments: list[str], make: Callable[[Path], None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    named = tmp_path / "named"
    make(named)
    (tmp_path / "release").mkdir()
    code, out, err = screen(capsys, *(part.format(round=tmp_path, file=named) for part in arguments))
    assert code not in (0, 1, 100), err
    assert out == ""
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("name", ["manifest.json", "manifest.dsse.json", "keys.json", "journal.sqlite"])
@pytest.mark.parametrize("verb", ["status", "settle", "analyse", "stop"])
def test_a_damaged_round_is_named(verb: str, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    simulation = Simulation(tmp_path)
    for damage in (b"", b"\xff\x00" * 400, None):
        if name == "journal.sqlite" and not damage:
            continue
        path = simulation.directory / name
        path.unlink(missing_ok=True)
        assert screen(capsys, verb, str(simulation.directory))[0] == 71, "missing"
        assert not path.exists(), "it must not be made anew"
        if damage is None:
            path.mkdir()
        else:
            path.write_bytes(damage)
        code, out, err = screen(capsys, verb, str(simulation.directory))
        assert code not in (0, 1, 2, 100), err
        assert name in err or "envelope" in err
        assert out == ""
        if damage is None:
            path.rmdir()


@pytest.mark.parametrize("name", ["x" * 120, "with space", "\u00fc"])
def test_a_runtime_directory_that_no_socket_fits_is_named(name: str, tmp_path: Path) -> None:
    chosen = read_settings({"FAIRTRIAL_RUNTIME_DIR": str(tmp_path / name)})
    with pytest.raises(InvalidInput, match="a socket's path"):
        runtime_directory(chosen, tmp_path, Simulation(tmp_path / "site").frozen.manifest)


def test_a_grant_begins_no_new_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    simulation = Simulation(tmp_path)
    before = sorted(path.name for path in simulation.directory.iterdir())
    assert screen(capsys, "authorize", str(simulation.directory))[0] == 71
    assert sorted(path.name for path in simulation.directory.iterdir()) == before


@pytest.mark.parametrize("verb", ["status", "start", "stop", "settle", "authorize"])
def test_a_log_that_was_emptied_is_no_new_round(verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    simulation = Simulation(tmp_path)
    SqlJournal.in_directory(simulation.directory).close()
    code, _, err = screen(capsys, verb, str(simulation.directory))
    assert code == 71
    assert "journal.sqlite" in err
