"""`fairtrial holdout`, as a person meets it: commit once, select when it is time, check offline."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from controller.adapters.relay_http import load_relays
from controller.cli.__main__ import main
from controller.domain.beacon import CHAINS
from controller.domain.ids import sha256_digest
from controller.errors import InvalidInput
from controller.evidence.canonical import canonical
from controller.evidence.holdout import LEAD_MS, check_sites
from controller.settings import read_settings
from controller.wiring.tools import publisher
from tests.world.beacons import answer_of, recorded_beacon
from tests.world.holdouts import HOLDOUTS, HoldoutRound, holdout_round
from tests.world.relays import relays, says

BEACON = recorded_beacon("quicknet", 123)
HONEST = says(answer_of(BEACON))


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRTRIAL_STATE_DIR", str(tmp_path / "state"))


@pytest.fixture
def frozen(tmp_path: Path) -> HoldoutRound:
    settings = read_settings({"FAIRTRIAL_STATE_DIR": str(tmp_path / "state")})
    return holdout_round(tmp_path / "matrix", publisher(settings))


def screen(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str, str]:
    code = main(["holdout", *(str(argument) for argument in arguments)])
    return (code, *capsys.readouterr())


def selected(capsys: pytest.CaptureFixture[str], frozen: HoldoutRound, out: Path) -> tuple[int, str, str]:
    """Select by a recorded beacon that was committed to when it lay in the future."""
    request = out.with_name("request.dsse.json")
    request.write_bytes(frozen.signed(frozen.request("quicknet", BEACON.round)))
    with relays(HONEST, HONEST, HONEST) as started:
        named = [part for one in started for part in ("--relay", one.url)]
        return screen(capsys, "select", request, "--out", out, *named, "--json")


@pytest.mark.parametrize("chain", ["default", "quicknet"])
def test_a_commitment_names_a_round_a_day_ahead_and_can_not_be_made_twice(
    chain: str, frozen: HoldoutRound, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = tmp_path / "request.dsse.json", tmp_path / "second.dsse.json"
    code, out, err = screen(capsys, "commit", frozen.directory, "--chain", chain, "--out", first, "--json")
    assert code == 0
    made = json.loads(out)
    assert made["manifest_digest"] == frozen.digest
    assert {candidate["task"] for candidate in made["candidates"]} == set(HOLDOUTS)
    pinned = CHAINS["default" if chain == "default" else "quicknet"]
    wait = pinned.due_at(made["beacon_round"]) - made["committed_at"]
    assert LEAD_MS <= wait < LEAD_MS + 1000 * pinned.period_seconds
    assert "publish" in err
    for other in ("default", "quicknet"):
        code, out, err = screen(capsys, "commit", frozen.directory, "--chain", other, "--out", second)
        assert (code, out, second.exists()) == (72, "", False)
        assert "a second commitment would be a choice" in err
    kept = tmp_path / "state" / "holdouts" / "small.dsse.json"
    assert kept.read_bytes() == first.read_bytes()
    with relays(HONEST, HONEST, HONEST) as started:
        named = [part for one in started for part in ("--relay", one.url)]
        code, out, err = screen(capsys, "select", first, "--out", second, *named)
        assert [one.paths for one in started] == [[], [], []]
    assert (code, out, second.exists()) == (85, "", False)
    assert "is due" in err


def test_an_unwritable_request_leaves_the_commitment_where_it_is_named(
    frozen: HoldoutRound, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    taken = tmp_path / "taken.json"
    taken.write_text("mine")
    code, _, err = screen(capsys, "commit", frozen.directory, "--out", taken)
    assert (code, taken.read_text()) == (72, "mine")
    assert not (tmp_path / "state" / "holdouts").exists(), "nothing was committed to"
    assert "exists" in err


def test_what_is_selected_passes_the_check_from_a_manifest_and_from_a_bundle(
    frozen: HoldoutRound, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = tmp_path / "selection.dsse.json"
    code, out, _ = selected(capsys, frozen, record)
    assert code == 0
    candidate = json.loads(out)
    written = tmp_path / "selection.dsse.json.candidate.json"
    assert json.loads(written.read_bytes()) == candidate
    task = candidate["selection"]["scenario"]
    assert task in HOLDOUTS
    assert candidate["amends"] == {"round_id": "small", "manifest_digest": frozen.digest}
    request = frozen.request("quicknet", BEACON.round)
    assert candidate["selection"]["request_digest"] == sha256_digest(canonical(request))
    for option, path in (("--manifest", frozen.directory / "manifest.json"), ("--bundle", frozen.directory)):
        code, out, _ = screen(capsys, "check", record, option, path)
        assert code == 0
        assert f"ok  7 selection: {task}, index" in out
        assert out.splitlines()[-1] == "accepted; signed by the key this machine knows for the publisher"
    code, out, _ = screen(capsys, "check", record, "--bundle", frozen.directory, "--json")
    report = json.loads(out)
    assert (report["task"], report["trust"], len(report["steps"])) == (task, "publisher", 7)
    assert "127.0.0.1, 127.0.0.2, 127.0.0.3" in report["steps"][4]["detail"]


def test_a_stranger_says_whose_key_he_trusts(
    frozen: HoldoutRound, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    record, manifest = tmp_path / "selection.dsse.json", frozen.directory / "manifest.json"
    assert selected(capsys, frozen, record)[0] == 0
    monkeypatch.setenv("FAIRTRIAL_STATE_DIR", str(tmp_path / "theirs"))
    code, _, err = screen(capsys, "check", record, "--manifest", manifest)
    assert code == 72
    assert "--key" in err
    code, out, _ = screen(capsys, "check", record, "--bundle", frozen.directory)
    assert code == 0
    assert "integrity only" in out.splitlines()[-1]
    code, out, _ = screen(capsys, "check", record, "--manifest", manifest, "--key", frozen.directory / "keys.json")
    assert code == 0
    assert out.splitlines()[-1] == "accepted; signed by the key you pinned"
    assert not (tmp_path / "theirs").exists(), "a check makes no key"
    rival = holdout_round(tmp_path / "rival", publisher(read_settings({"FAIRTRIAL_STATE_DIR": str(tmp_path / "r")})))
    code, _, err = screen(capsys, "check", record, "--manifest", manifest, "--key", rival.directory / "keys.json")
    assert code == 94
    assert "step 1 (record)" in err


@pytest.mark.parametrize(
    ("arguments", "code", "why"),
    [
        (["check", "{file}"], 72, "give --bundle DIR or --manifest FILE"),
        (["check", "{file}", "--bundle", "{round}", "--manifest", "{file}"], 72, "give --bundle DIR or --manifest"),
        (["check", "{file}", "--bundle", "{round}"], 94, "step 1 (record)"),
        (["check", "{round}", "--bundle", "{round}"], 72, "Is a directory"),
        (["check", "{file}", "--bundle", "{file}"], 72, "Not a directory"),
        (["select", "{file}", "--out", "{new}"], 91, "not one canonical DSSE envelope"),
        (["select", "{file}", "--out", "{new}", "--relay", "https://api.drand.sh"], 72, "1 named"),
        (["select", "{file}", "--out", "{new}", "--relay", "ftp://api.drand.sh"], 72, "not of the form"),
        (["commit", "{new}", "--out", "{new}"], 71, "manifest.json"),
        (["commit", "{round}", "--chain", "fastnet", "--out", "{new}"], 2, "fastnet"),
    ],
)
def test_bad_input_is_one_screen(
    arguments: list[str], code: int, why: str, frozen: HoldoutRound, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "file.json"
    file.write_text("{}")
    places = {"file": file, "round": frozen.directory, "new": tmp_path / "new"}
    found, out, err = screen(capsys, *(argument.format(**places) for argument in arguments))
    assert (found, out) == (code, "")
    assert why in " ".join(err.split())
    assert not (tmp_path / "new").exists()


def test_a_request_signed_by_another_is_not_selected_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    theirs = read_settings({"FAIRTRIAL_STATE_DIR": str(tmp_path / "theirs")})
    rival = holdout_round(tmp_path / "rival", publisher(theirs))
    code, _, err = selected(capsys, rival, tmp_path / "selection.dsse.json")
    assert code == 91
    assert "not a trusted key" in err


def test_the_relays_that_are_asked_by_default_lie_in_three_domains() -> None:
    assert check_sites(load_relays(read_settings({}).relays_file)) == ("drand.sh", "cloudflare.com", "secureweb3.com")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "schema = 1",
        'schema = "fairtrial.relays/1"\nrelays = "x"',
        'schema = "fairtrial.relays/1"\nrelays = [1]',
        "=",
    ],
)
def test_a_malformed_list_of_relays_is_named(text: str, tmp_path: Path) -> None:
    path = tmp_path / "relays.toml"
    path.write_text(text)
    with pytest.raises(InvalidInput, match=r"relays\.toml"):
        load_relays(path)


def test_the_check_loads_no_client_of_the_network() -> None:
    program = "import sys, controller.wiring.holdout; sys.exit('aiohttp' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0
