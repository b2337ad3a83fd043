"""`fairtrial approve` and `publish` on a round whose log and ledger lie on the disk, full of things that must stay."""

from __future__ import annotations

import getpass
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
)

from controller.adapters.journal_sql import SqlJournal
from controller.adapters.ledger_sqlite import SqliteLedger
from controller.cli.__main__ import main
from controller.conductor.world import TOKEN_KINDS, derived_token
from controller.domain import bodies
from controller.domain.ids import AttemptId
from controller.domain.statement import StatementKind
from controller.evidence import bundle
from controller.ports.ledger import MeterLife
from tests.world.secrets import fakes
from tests.world.signer import FixedSigner
from tests.world.simulation import Simulation, started

PHRASE = b"correct horse battery"
HOST = "publisher-host-17"
KEYS = {"openai": fakes()["openai"], "anthropic": fakes()["anthropic"]}
Run = Callable[..., tuple[int, str, str]]


def pem(signer: FixedSigner, encryption: KeySerializationEncryption) -> bytes:
    return signer._private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Simulation:
    """A settled and analysed rehearsal, on a machine with a name, a user, provider keys and a round's secret."""
    state = tmp_path / "private-state"
    (state / "keys").mkdir(parents=True)
    (state / "keys" / "publisher.pem").write_bytes(pem(FixedSigner(), NoEncryption()))
    (state / "keys" / "publisher.pem").chmod(0o600)
    (state / "keys" / "providers.json").write_text(json.dumps(KEYS))
    (state / "keys" / "providers.json").chmod(0o600)
    monkeypatch.setenv("FAIRTRIAL_STATE_DIR", str(state))
    monkeypatch.setenv("HOME", str(tmp_path / "home-of-the-publisher"))
    monkeypatch.setattr(getpass, "getuser", lambda: "publishers-user")
    monkeypatch.setattr(os, "uname", lambda: type("Name", (), {"nodename": HOST})())
    found = Simulation(tmp_path, says="0.05", journal=SqlJournal.in_directory)
    (found.directory / "round.secret").write_bytes(b"s" * 32)
    ledger = SqliteLedger(found.directory / "ledger.sqlite", found.clock, meter=MeterLife(place="here", life="1"))
    found.ledger = ledger  # type: ignore[assignment]
    started(found, 1)
    found.conduct(found.world())
    found.settle()
    ledger.close()
    assert isinstance(found.journal, SqlJournal)
    found.journal.close()
    (tmp_path / "person.pem").write_bytes(pem(FixedSigner("a person"), BestAvailableEncryption(PHRASE)))
    return found


@pytest.fixture
def run(world: Simulation, capsys: pytest.CaptureFixture[str]) -> Run:
    def typed(*arguments: str, phrase: bytes | None = None) -> tuple[int, str, str]:
        if phrase is not None:
            source, sink = os.pipe()
            os.write(sink, phrase + b"\n")
            os.close(sink)
            arguments = (*arguments, "--passphrase-fd", str(source))
        code = main([*arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    assert typed("analyse", str(world.directory))[0] == 0
    return typed


def private_values(world: Simulation) -> dict[str, bytes]:
    """Everything of the publisher's machine and of the attempts that a release must not hold."""
    journal = SqlJournal.in_directory(world.directory)
    intents = [each for each in journal.statements() if each.kind is StatementKind.ATTEMPT_INTENDED]
    journal.close()
    assert len(intents) == 4
    values = {f"{name} key": key.encode() for name, key in KEYS.items()}
    for intent in intents:
        for kind in TOKEN_KINDS:
            token = derived_token(b"s" * 32, world.frozen.digest, kind, AttemptId(intent.subject), 1)
            values[f"{kind} of {intent.subject}"] = token.encode()
    return values | {
        "secret": b"s" * 32,
        "key file": pem(FixedSigner(), NoEncryption()).splitlines()[1],
        "user": b"publishers-user",
        "host": HOST.encode(),
        "home": b"home-of-the-publisher",
        "state": b"private-state",
        "round's directory": str(world.directory).encode(),
        "prompt": b"mend it",
    }


def test_a_release_holds_nothing_of_the_machine_or_of_the_attempts_secrets(world: Simulation, run: Run) -> None:
    out = world.directory.parent / "out"
    code, told, _ = run("publish", str(world.directory), "--out", str(out), "--creator", "Doe, Anna", "--json")
    assert code == 0
    assert json.loads(told) == {"release": str(out / "v1")}
    files = {path.relative_to(out).as_posix(): path.read_bytes() for path in out.rglob("*") if path.is_file()}
    assert {"deposit-v1/zenodo.json", "deposit-v1/ro-crate-metadata.json", "v1/excerpts.jsonl"} <= files.keys()
    found = [(what, name) for what, value in private_values(world).items() for name in files if value in files[name]]
    assert not found
    assert run("check", str(out / "v1"))[0] == 0


def test_a_release_built_twice_is_the_same_bytes(world: Simulation, run: Run) -> None:
    releases = []
    for name in ("one", "two"):
        out = world.directory.parent / name
        assert run("publish", str(world.directory), "--out", str(out), "--creator", "Doe, Anna")[0] == 0
        releases.append({p.relative_to(out): p.read_bytes() for p in out.rglob("*") if p.is_file()})
    assert releases[0] == releases[1]


@pytest.mark.parametrize("what", ["rt", "up", "canary", "openai"])
@pytest.mark.parametrize("spelled", [bytes, lambda value: value.hex().encode(), lambda value: value[::-1]])
def test_a_patch_that_spells_a_secret_of_any_attempt_stops_the_release(
    world: Simulation, run: Run, what: str, spelled: Callable[[bytes], bytes]
) -> None:
    values = private_values(world)
    value = next(value for name, value in values.items() if name.startswith(what))
    patch = sorted((world.directory / "patches").iterdir())[-1]
    patch.write_bytes(b"+ x = '" + spelled(value) + b"'\n")
    code, _, told = run("publish", str(world.directory), "--out", str(world.directory.parent / "out"))
    assert code == 89
    assert f"patches/{patch.name} holds a " in told
    assert ("canary of an attempt" in told) == (what == "canary")
    assert value.decode() not in told
    assert not (world.directory.parent / "out").exists()


def test_a_person_approves_and_the_release_says_so(world: Simulation, run: Run) -> None:
    key, out = world.directory.parent / "person.pem", world.directory.parent / "out"
    code, told, _ = run("approve", str(world.directory), "--key", str(key), "--json", phrase=PHRASE)
    assert code == 0
    digest = json.loads(told)["approved"]["report_digest"]
    assert run("approve", str(world.directory), "--key", str(key), phrase=PHRASE)[:2] == (
        0,
        f"approved: {world.directory}/report.html, {digest}\n",
    )
    assert len(list((world.directory / "approvals").iterdir())) == 1, "the first approval stays as it is"
    assert run("publish", str(world.directory), "--out", str(out))[0] == 0
    assert (out / "v1" / bundle.APPROVAL).is_file()
    assert "approved by a person the manifest names" in run("check", str(out / "v1"))[1]


def test_a_later_version_explains_itself_in_its_report(world: Simulation, run: Run) -> None:
    out = world.directory.parent / "out"
    arguments = ("publish", str(world.directory), "--out", str(out))
    assert run(*arguments)[0] == 0
    assert run(*arguments)[1] == f"published: {out / 'v1'}\n"
    assert "Versions" not in (out / "v1" / "report.html").read_text()
    assert run(*arguments, "--correction", "Nothing new.")[1] == f"published: {out / 'v1'}\n"
    journal = SqlJournal.in_directory(world.directory)
    note = bodies.OperatorAct(act="resume", note="looked again")
    journal.append(StatementKind.OPERATOR_ACT, "small", note, at=world.clock.now(), key="again")
    journal.close()
    code, _, told = run(*arguments)
    assert (code, "v1 is published, and this version differs" in told, "--correction" in told) == (74, True, True)
    assert run(*arguments, "--correction", " The <title> was misleading. ")[1] == f"published: {out / 'v2'}\n"
    report = (out / "v2" / "report.html").read_text()
    assert "This is version 2." in report
    assert "<li>First release.</li>\n<li>The &lt;title&gt; was misleading.</li>" in report
    assert run(*arguments)[1] == f"published: {out / 'v2'}\n", "nothing changed since"
    assert run("check", str(out / "v1"))[0] == run("check", str(out / "v2"))[0] == 0


@pytest.mark.parametrize("correction", ["", "   ", "x" * 601])
def test_a_correction_that_says_nothing_or_too_much_is_refused(world: Simulation, run: Run, correction: str) -> None:
    out = world.directory.parent / "out"
    arguments = ("publish", str(world.directory), "--out", str(out))
    assert run(*arguments)[0] == 0
    code, _, told = run(*arguments, "--correction", correction)
    assert (code, "--correction" in told) == (72, True)
    assert not (out / "v2").exists()


def test_a_name_stands_under_no_numbers_that_the_log_does_not_give(world: Simulation, run: Run) -> None:
    key = str(world.directory.parent / "person.pem")
    assert (world.directory / bundle.DATASET).read_bytes().count(b'"success"') > 1
    for name in (bundle.DATASET, bundle.ANALYSIS):
        path = world.directory / name
        before = path.read_bytes()
        path.write_bytes(before.replace(b'"success"', b'"failure"', 1) if name == bundle.DATASET else before + b" ")
        code, _, told = run("approve", str(world.directory), "--key", key, phrase=PHRASE)
        assert (code, f"{name} does not follow from the log" in told) == (74, True)
        path.write_bytes(before)
    (world.directory / "report.html").unlink()
    assert run("approve", str(world.directory), "--key", key, phrase=PHRASE)[0] == 74
    assert not (world.directory / "approvals").exists()


def test_a_key_that_the_manifest_does_not_name_approves_nothing(world: Simulation, run: Run) -> None:
    path = world.directory.parent / "stranger.pem"
    code, told, _ = run("approve", "--new-key", str(path), phrase=PHRASE)
    assert code == 0
    ring = json.loads(told)
    assert (ring["schema_version"], len(ring["keys"])) == ("fairtrial.keys/1", 1)
    code, _, told = run("approve", str(world.directory), "--key", str(path), phrase=PHRASE)
    assert code == 72
    assert f"{ring['keys'][0]['id']} is not among the approvers" in told


@pytest.mark.parametrize(
    "arguments", [(), ("ROUND",), ("--key", "k.pem"), ("ROUND", "--key", "k.pem", "--new-key", "n.pem")]
)
def test_an_approval_without_its_parts_is_refused(world: Simulation, run: Run, arguments: tuple[str, ...]) -> None:
    assert run("approve", *(str(world.directory) if each == "ROUND" else each for each in arguments))[0] == 72
