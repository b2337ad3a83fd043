"""`stop --event`, `dispute`, `witness` and `timestamp` on a round on the disk, up to a published bundle."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from controller.adapters.journal_sql import SqlJournal
from controller.adapters.ledger_sqlite import SqliteLedger
from controller.adapters.signer_file import FileSigner
from controller.cli.__main__ import main
from controller.conductor.checkpoints import checkpoint_paths
from controller.domain.ids import sha256_digest
from controller.domain.statement import Statement, StatementKind
from controller.ports.ledger import MeterLife
from tests.world.simulation import Simulation, started
from tests.world.time_authority import TimeAuthority


@pytest.fixture
def simulation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Simulation:
    """A round that was conducted and waits to be settled."""
    monkeypatch.setenv("FAIRTRIAL_STATE_DIR", str(tmp_path / "state"))
    signer = FileSigner.open(tmp_path / "state" / "keys" / "publisher.pem")
    found = Simulation(tmp_path, signer=signer, journal=SqlJournal.in_directory)
    started(found, 1)
    return found


def say(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    capsys.readouterr()
    code = main([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    return code, out, err


def statements(simulation: Simulation, kind: StatementKind) -> list[Statement]:
    return [s for s in simulation.journal.statements() if s.kind is kind]


def test_a_declared_event_needs_a_note_and_is_signed_at_once(
    simulation: Simulation, capsys: pytest.CaptureFixture[str]
) -> None:
    event = ("stop", simulation.directory, "--event", "sealed-task-exposure")
    code, _, err = say(capsys, *event)
    assert code == 72
    assert "no note" in err
    assert say(capsys, "stop", simulation.directory, "--event", "we-are-losing", "--note", "n")[0] == 2
    assert not statements(simulation, StatementKind.OPERATOR_ACT)
    assert say(capsys, *event, "--note", "seen on a forum")[0] == 0
    (act,) = statements(simulation, StatementKind.OPERATOR_ACT)
    assert act.body == {
        "act": "stop", "note": "seen on a forum", "attempt_id": None, "event": "sealed-task-exposure"
    }  # fmt: skip
    assert max(checkpoint_paths(simulation.directory)) == act.sequence + 1
    assert "sealed-task-exposure: seen on a forum" in say(capsys, "status", simulation.directory)[1]


def dispute(simulation: Simulation, text: Path, *options: str) -> tuple[str, ...]:
    return ("dispute", str(simulation.directory), "--by", "J. Doe", "--text-file", str(text), *options)


def test_a_dispute_is_kept_word_for_word_and_signed_at_once(
    simulation: Simulation, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    simulation.conduct(simulation.world())
    simulation.settle()
    text = tmp_path / "text"
    text.write_bytes(b"Our flags were wrong.\r\n-----BEGIN SIGNATURE-----\nxyz\n")
    run = simulation.frozen.manifest.schedule[0].id
    attempt = statements(simulation, StatementKind.ATTEMPT_INTENDED)[0].subject
    for about, subject in (((), "small"), (("--about", run), run), (("--about", attempt), attempt)):
        assert say(capsys, *dispute(simulation, text, *about))[0] == 0
        assert say(capsys, *dispute(simulation, text, *about))[0] == 0, "twice is once"
        filed = statements(simulation, StatementKind.DISPUTE_FILED)
        assert filed[-1].subject == subject
        assert filed[-1].body == {"by": "J. Doe", "text_digest": sha256_digest(text.read_bytes())}
    assert len(filed) == 3
    (kept,) = (simulation.directory / "disputes").iterdir()
    assert kept.read_bytes() == text.read_bytes()
    assert max(checkpoint_paths(simulation.directory)) == len(simulation.journal.statements())


@pytest.mark.parametrize(
    ("text", "options", "finding"),
    [
        (b"", (), "0 bytes"),
        (b"x" * 70_000, (), "larger than"),
        (b"no such run", ("--about", "first.alpha.r9"), "no logical run or attempt 'first.alpha.r9'"),
        (b"no such attempt", ("--about", "att-00000000000000000000-1"), "no logical run or attempt"),
        (b"two lines", ("--by", "a\nb"), "by: one line"),
        (b"nobody", ("--by", ""), "by: one line"),
        (b"our key is sk-" + b"proj-0123456789abcdefghij", (), "holds"),
    ],
    ids=["empty", "huge", "run", "attempt", "lines", "nobody", "secret"],
)
def test_a_dispute_that_could_not_be_published_is_not_filed(
    text: bytes,
    options: tuple[str, ...],
    finding: str,
    simulation: Simulation,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "text").write_bytes(text)
    code, _, err = say(capsys, *dispute(simulation, tmp_path / "text", *options))
    assert code == 72
    assert finding in err
    assert not (simulation.directory / "disputes").exists()
    assert not statements(simulation, StatementKind.DISPUTE_FILED)


def test_a_stamp_of_the_whole_log_is_kept_and_any_other_is_not(
    simulation: Simulation, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "tsa").mkdir()
    (tmp_path / "rival").mkdir()
    authority, rival = TimeAuthority(tmp_path / "tsa"), TimeAuthority(tmp_path / "rival")
    round_dir, sent = simulation.directory, tmp_path / "sent.tsr"
    sent.write_bytes(b"")
    attach = ("timestamp", "attach", round_dir, sent, "--tsa", authority.certificate)
    code, _, err = say(capsys, *attach)
    assert code == 91
    assert "no request was written" in err
    code, out, _ = say(capsys, "timestamp", "request", round_dir, "--json")
    request = Path(json.loads(out)["request"])
    assert (code, request.name) == (0, f"{len(simulation.journal.statements())}.tsq")
    for response in (rival.respond(request.read_bytes()), b"garbage"):
        sent.write_bytes(response)
        assert say(capsys, *attach)[0] == 91
    assert not list((round_dir / "timestamps").glob("*.tsr"))
    sent.write_bytes(authority.respond(request.read_bytes()))
    assert say(capsys, *attach)[0] == 0
    assert request.with_suffix(".tsr").read_bytes() == sent.read_bytes()


def test_a_witness_key_is_printed_as_a_line_for_readers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    key = tmp_path / "w.pem"
    code, out, _ = say(capsys, "witness", "key", "--key", key, "--name", "example.org/w")
    assert code == 0
    assert out.startswith("example.org/w+")
    assert key.stat().st_mode & 0o777 == 0o600
    code, _, err = say(capsys, "witness", "key", "--key", key, "--name", "two words")
    assert code == 72
    assert "two words" in err


def test_a_published_round_is_vouched_for_and_disputed_in_later_versions(
    simulation: Simulation, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    life = MeterLife(place="here", life="1")
    ledger = SqliteLedger(simulation.directory / "ledger.sqlite", simulation.clock, meter=life)
    simulation.ledger = ledger  # type: ignore[assignment]
    simulation.conduct(simulation.world())
    ledger.close()
    round_dir, release, key = simulation.directory, tmp_path / "release", tmp_path / "w.pem"
    for verb in (("settle",), ("analyse",), ("publish",)):
        options = ("--out", release) if verb == ("publish",) else ()
        assert say(capsys, *verb, round_dir, *options)[0] == 0
    vkey, keys = tmp_path / "w.vkey", release / "v1" / "keys.json"
    vkey.write_text(say(capsys, "witness", "key", "--key", key, "--name", "example.org/w")[1])
    check = ("check", release / "v1", "--key", keys)
    code, out, _ = say(capsys, *check)
    assert code == 0
    assert "no witness: only the publisher's word" in out
    code, _, err = say(capsys, *check, "--witness", vkey)
    assert code == 92
    assert "the witness example.org/w has not signed the log" in err
    # The witness sees what was published, and the publisher keeps his line.
    newest, cosigned = release / "v1" / "checkpoint.txt", tmp_path / "cosigned"
    log = release / "v1" / "statements.jsonl"
    sign = ("witness", "sign", newest, "--key", key, "--name", "example.org/w", "--publisher", keys, "--out", cosigned)
    assert say(capsys, *sign, "--log", log)[0] == 0
    assert say(capsys, "witness", "attach", round_dir, cosigned, "--witness", vkey)[0] == 0
    (tmp_path / "tsa").mkdir()
    authority = TimeAuthority(tmp_path / "tsa")
    request = Path(json.loads(say(capsys, "timestamp", "request", round_dir, "--json")[1])["request"])
    (tmp_path / "sent").write_bytes(authority.respond(request.read_bytes()))
    attach = ("timestamp", "attach", round_dir, tmp_path / "sent", "--tsa", authority.certificate)
    assert say(capsys, *attach)[0] == 0
    assert say(capsys, *dispute(simulation, _written(tmp_path / "text", "Our flags were wrong.")))[0] == 0
    assert say(capsys, "analyse", round_dir)[0] == 0
    told = ("--correction", "Two others vouch for the log, and one disputes it.")
    assert say(capsys, "publish", round_dir, "--out", release, *told)[0] == 0
    second = release / "v2"
    code, out, err = say(
        capsys, "check", second, "--key", keys, "--witness", vkey, "--tsa", authority.certificate, "--json"
    )
    assert code == 0, err
    report = json.loads(out)
    assert report["witness_text"] == "vouched for by example.org/w, the time authority"
    assert "1 disputes; example.org/w saw" in report["steps"][3]["detail"]
    assert "disputed by J. Doe" in (second / "report.html").read_text()
    assert (second / "disputes" / f"{sha256_digest(b'Our flags were wrong.')[7:]}.txt").is_file()


def _written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path
