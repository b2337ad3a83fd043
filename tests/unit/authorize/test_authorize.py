from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.adapters.files_durable import LocalFiles
from controller.authorize import authorize, check_authorization, log_grant, next_is_covered, remaining
from controller.domain.authorization import Authorization, Caps, Consumed, attempt_ceiling, excesses
from controller.domain.ids import sha256_digest
from controller.domain.instant import InstantMs
from controller.domain.limits import SandboxLimits, SpendLimits
from controller.domain.money import usd_from_text
from controller.domain.statement import StatementKind
from controller.errors import AuthorizationExpired, BadSignature, InvalidInput, NotAuthorized
from controller.evidence.canonical import canonical
from controller.evidence.consumption import Tally, consumption
from tests.world.clock import StepClock
from tests.world.journal import MemoryJournal
from tests.world.recorded_round import START, conducted, digest
from tests.world.signer import FixedSigner

SIGNER = FixedSigner()
CAPS = Caps(logical_runs=2, attempts=3, requests=180, usd="3.00", timeout_minutes=90)
EXPIRY = InstantMs(START + 3_600_000)
MANIFEST = digest("manifest")


def _grant(
    directory: Path, *, at: InstantMs = START, caps: Caps = CAPS, expires_at: InstantMs = EXPIRY
) -> Authorization:
    return authorize(
        directory,
        MANIFEST,
        caps,
        SIGNER,
        StepClock(at),
        files=LocalFiles(),
        round_id="small",
        expires_at=expires_at,
    )


def test_a_grant_is_read_back_while_it_is_in_force(tmp_path: Path) -> None:
    granted = _grant(tmp_path)
    assert check_authorization(tmp_path, MANIFEST, SIGNER.ring, InstantMs(START + 5000)) == granted


def test_no_wrong_early_late_or_foreign_grant_is_accepted(tmp_path: Path) -> None:
    now = InstantMs(START + 5000)
    with pytest.raises(NotAuthorized, match="no authorization"):
        check_authorization(tmp_path, MANIFEST, SIGNER.ring, now)
    _grant(tmp_path)
    with pytest.raises(NotAuthorized, match="for manifest"):
        check_authorization(tmp_path, digest("other"), SIGNER.ring, now)
    with pytest.raises(NotAuthorized, match="begins"):
        check_authorization(tmp_path, MANIFEST, SIGNER.ring, START)
    with pytest.raises(AuthorizationExpired):
        check_authorization(tmp_path, MANIFEST, SIGNER.ring, EXPIRY)
    with pytest.raises(BadSignature, match="not a trusted key"):
        check_authorization(tmp_path, MANIFEST, FixedSigner("rival").ring, now)


def test_a_second_grant_takes_the_place_of_the_first_and_leaves_it_there(tmp_path: Path) -> None:
    _grant(tmp_path)
    first = (tmp_path / "authorization.dsse.json").read_bytes()
    later = _grant(tmp_path, at=InstantMs(START + 10_000), caps=CAPS.model_copy(update={"attempts": 9}))
    assert check_authorization(tmp_path, MANIFEST, SIGNER.ring, InstantMs(START + 20_000)) == later
    assert (tmp_path / "authorization.dsse.json").read_bytes() == first
    assert (tmp_path / "authorization-2.dsse.json").is_file()


def test_a_grant_that_ends_before_it_begins_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="expires_at"):
        _grant(tmp_path, expires_at=START)
    assert list(tmp_path.iterdir()) == []


def test_the_next_attempt_is_covered_up_to_the_last_ceiling() -> None:
    ceiling = attempt_ceiling(SpendLimits(), SandboxLimits(), opens_run=False)
    used = Consumed(logical_runs=2, attempts=2, requests=120, usd="2.00", timeout_ms=60 * 60_000)
    assert next_is_covered(CAPS, used, ceiling)
    for over in (
        Consumed(attempts=1),
        Consumed(requests=1),
        Consumed(usd="0.000000001"),
        Consumed(timeout_ms=1),
        Consumed(logical_runs=1),
    ):
        assert not next_is_covered(CAPS, used.plus(over), ceiling)


AMOUNTS = st.builds(
    Consumed,
    logical_runs=st.integers(0, 5),
    attempts=st.integers(0, 5),
    requests=st.integers(0, 300),
    usd=st.decimals(0, 5, places=9).map(lambda value: f"{value:f}"),
    timeout_ms=st.integers(0, 10**7),
)


@given(AMOUNTS)
def test_what_remains_can_be_used_and_no_more(used: Consumed) -> None:
    left = remaining(CAPS, used)
    if not excesses(CAPS, used):
        assert not excesses(CAPS, used.plus(left))
        assert usd_from_text(used.plus(left).usd) == usd_from_text(CAPS.usd)
        assert excesses(CAPS, used.plus(left).plus(Consumed(requests=1)))
    else:
        assert usd_from_text(left.usd) >= 0


def test_attempts_count_with_their_ceilings_until_they_are_settled(tmp_path: Path) -> None:
    found = conducted(tmp_path / "small")
    spend, sandbox = found.manifest.spend_limits, found.manifest.sandbox_limits
    tally, seen = Tally(spend, sandbox), []
    for statement in found.statements:
        tally.add(statement)
        if statement.kind in (StatementKind.ATTEMPT_INTENDED, StatementKind.ATTEMPT_SETTLED):
            seen.append(tally.consumed)
    ceiling = Consumed(logical_runs=1, attempts=1, requests=60, usd="1", timeout_ms=1_800_000)
    settled = Consumed(logical_runs=1, attempts=1, requests=2, usd="0.005546", timeout_ms=1_800_000)
    assert seen[:3] == [ceiling, settled, settled.plus(ceiling)]
    unknown = 17  # the statement that settles the attempt with a request of unknown cost keeps its ceilings
    assert usd_from_text(seen[unknown].usd) == usd_from_text(seen[unknown - 1].usd)
    assert consumption(found.statements, spend, sandbox) == seen[-1]
    assert (seen[-1].logical_runs, seen[-1].attempts) == (8, 12)


def test_a_new_generation_of_an_attempt_is_not_counted_again(tmp_path: Path) -> None:
    found = conducted(tmp_path / "small")
    intent = next(s for s in found.statements if s.kind is StatementKind.ATTEMPT_INTENDED)
    spend, sandbox = found.manifest.spend_limits, found.manifest.sandbox_limits
    again = [intent, intent.model_copy(update={"body": {**intent.body, "generation": 2}})]
    assert consumption(again, spend, sandbox) == consumption([intent], spend, sandbox)


def test_every_attempt_counts_its_whole_timeout_however_soon_it_ended(tmp_path: Path) -> None:
    found = conducted(tmp_path / "small")
    used = consumption(found.statements, found.manifest.spend_limits, found.manifest.sandbox_limits)
    assert used.timeout_ms == 12 * 1_800_000


def test_a_grant_is_logged_once_with_the_digest_of_its_payload(tmp_path: Path) -> None:
    granted, journal = _grant(tmp_path), MemoryJournal()
    digest = log_grant(journal, granted, at=InstantMs(START + 1))
    assert log_grant(journal, granted, at=InstantMs(START + 2)) == digest == sha256_digest(canonical(granted))
    assert [s.body for s in journal.statements()] == [
        {"manifest_digest": MANIFEST, "authorization_digest": digest},
    ]
