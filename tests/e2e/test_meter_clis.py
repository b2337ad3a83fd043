"""Codex CLI and Claude Code, as they are published, through the real meter."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

from controller.domain.limits import SpendLimits
from controller.domain.usage import RequestState
from tests.world.client_rig import ClientRig, client_rig
from tests.world.clis import CLAUDE, CLIS, CODEX, FILE_TEXT, LOCK, ROOT, SCRIPT, Cli
from tests.world.processes import short_directory
from tests.world.rehearsal_model import key, rehearsal_model
from tests.world.scripted_provider import TEXT, Fate
from tests.world.sdks import ANTHROPIC, RESPONSES, Sdk
from tests.world.wire import Tap, Trap

SETTLED, UNKNOWN = RequestState.SETTLED, RequestState.UNKNOWN


@pytest.fixture(scope="module")
def rig() -> Iterator[ClientRig]:
    with client_rig() as running:
        yield running


@pytest.mark.parametrize("cli", CLIS, ids=str)
def test_a_task_of_two_turns_is_accounted_for_to_the_token(cli: Cli, tmp_path: Path) -> None:
    with (
        short_directory() as directory,
        rehearsal_model(directory / "model", SCRIPT) as model,
        Tap(model) as far,
        client_rig(upstreams={"rehearsal": far.url}) as rig,
        Trap() as trap,
    ):
        token = rig.open_lane("rehearsal", cli.dialect, key=key(1))
        done = cli.run(rig.wire.url, token, tmp_path / "run", **trap.environment)
        account = rig.account()
        sent, received = rig.wire.requests(), far.requests()
    assert done.exit_code == 0 and "It holds one line." in done.stdout, done
    # The command of the first turn was carried out: its output is in the second request.
    assert FILE_TEXT.strip() in sent[1].body.decode()
    # Every request on the wire is in the ledger and settled, and nothing went past the meter.
    assert [request.method for request in sent] == ["POST", "POST"] and not trap.caught
    assert [request.body for request in sent] == [request.body for request in received]
    assert [request.state for request in account.requests] == [SETTLED, SETTLED] and not account.refusals
    # Its own account of its tokens is the meter's. Of money it knows nothing: no client has this card.
    metered: Counter[str] = Counter()
    for request in account.requests:
        assert request.usage is not None
        metered.update(request.usage.tokens)
    assert cli.own_account(done) == dict(metered)


def test_the_lock_names_every_package_by_its_bytes_and_codex_as_rounds_use_it() -> None:
    locked = json.loads((LOCK / "package-lock.json").read_text())["packages"]
    packages = {name: package for name, package in locked.items() if name}
    assert all(package["integrity"].startswith("sha512-") for package in packages.values())
    recipe = ROOT / "images" / "recipes" / "harness-codex" / "package-lock.json"
    baked = json.loads(recipe.read_text())["packages"]
    ours = {name: package["integrity"] for name, package in packages.items() if "@openai" in name}
    assert ours == {name: package["integrity"] for name, package in baked.items() if name}


QUICK: tuple[Fate, ...] = ("529", "cut")
LONGER: tuple[Fate, ...] = ("429", "500", "reset", "error event", "silence")


@pytest.mark.parametrize(
    ("cli", "fate"),
    [
        *((CODEX, fate) for fate in (*QUICK, *LONGER)),
        *((CLAUDE, fate) for fate in QUICK),
        *(pytest.param(CLAUDE, fate, marks=pytest.mark.slow) for fate in LONGER),  # it takes some seconds to start
    ],
    ids=str,
)
def test_a_failing_provider_costs_one_request(rig: ClientRig, cli: Cli, fate: Fate, tmp_path: Path) -> None:
    # By default the meter gives a silent provider ten minutes.
    with client_rig(idle_seconds=0.5) if fate == "silence" else nullcontext(rig) as used:
        token = used.open_lane(cli.provider, cli.dialect)
        used.provider.play(fate)
        done = cli.run(used.wire.url, token, tmp_path / "run")
        assert done.exit_code != 0
        requests = used.account().requests
        assert len(used.wire.requests("POST")) == len(used.provider.received) == len(requests) == 1
        assert [request.state for request in requests] == [UNKNOWN]


def test_what_claude_code_tries_again_spends_the_count(rig: ClientRig, tmp_path: Path) -> None:
    ample = SpendLimits(usd_per_attempt="100", usd_per_logical_run="100", requests_per_attempt=2)
    token = rig.open_lane(CLAUDE.provider, CLAUDE.dialect, limits=ample)
    rig.provider.play("529", "529", "529")
    done = CLAUDE.run(rig.wire.url, token, tmp_path / "run", CLAUDE_CODE_MAX_RETRIES="5")
    assert done.exit_code != 0 and "requests_per_attempt" in done.stdout
    requests = rig.account().requests
    # It retries in a loop of its own around its SDK, so each of its requests calls itself the first; the meter's
    # sequence is what tells them apart.
    assert {sent.headers["x-stainless-retry-count"] for sent in rig.wire.requests("POST")} == {"0"}
    assert [request.sequence for request in requests] == [1, 2]
    assert [request.state for request in requests] == [UNKNOWN, UNKNOWN]
    assert len(rig.provider.received) == 2 and len(rig.wire.requests("POST")) == 3


@pytest.mark.parametrize(("cli", "sdk"), [(CODEX, RESPONSES), (CLAUDE, ANTHROPIC)], ids=str)
def test_a_refusal_ends_the_harness_at_once(rig: ClientRig, cli: Cli, sdk: Sdk, tmp_path: Path) -> None:
    call = rig.open(sdk, limits=SpendLimits(requests_per_attempt=1))
    assert sdk.ask(call).text == TEXT  # the one request of this attempt
    done = cli.run(call.base_url, call.token, tmp_path / "run", CLAUDE_CODE_MAX_RETRIES="3")
    assert done.exit_code != 0 and "fairtrial meter: the limit requests_per_attempt" in done.stdout
    assert len(rig.wire.requests("POST")) == 2 and len(rig.provider.received) == 1
    assert [refusal.limit for refusal in rig.account().refusals] == [True]
