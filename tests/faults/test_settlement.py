"""A round is settled: with the provider's report and without, after a crash, twice, too early, and when it is over.

Whatever the report changed, a stranger derives it again from the bundle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from controller.adapters.files_durable import LocalFiles
from controller.cli.settle_text import describe
from controller.conductor import rounds, running
from controller.conductor.opening import provider_key_name
from controller.conductor.recompute import RoundRecompute
from controller.conductor.settlement import UsageReports, draw_up
from controller.conductor.settlement_report import settlement
from controller.domain import bodies
from controller.domain.ids import AttemptId, LogicalRunId, attempt_id
from controller.domain.instant import InstantMs
from controller.domain.outcome import EndKind
from controller.domain.plan import LogicalRun
from controller.domain.provider_report import MINUTE_MS, Figure, Finding
from controller.domain.retail import RetailPolicy
from controller.domain.statement import StatementKind
from controller.domain.stops import StopEvent
from controller.domain.usage import MeteredRequest, Refusal, RequestState, Usage
from controller.errors import InvalidInput, ObservedModelMismatch, RateCardChanged
from controller.evidence.claims import claim
from controller.ports.ledger import RequestEnd
from controller.publish import Published, RoundRecords, publish
from controller.settle import read_reports
from tests.world.recorded_round import REPORT
from tests.world.simulation import Simulation, started
from tests.world.usage_reports import openai_page

USED = {"input_tokens": 1_000, "output_tokens": 100, "num_model_requests": 1}  # of every request in the simulation
FIRST = "first.alpha.r1"


def simulation(tmp_path: Path, **story: object) -> Simulation:
    """One finished round of four logical runs with two requests each."""
    found = Simulation(tmp_path, **story)  # type: ignore[arg-type]
    started(found, 1)
    found.conduct(found.world())
    return found


def losing(*lost: tuple[str, int]) -> Callable[[str, int], bool]:
    """The answers to these requests are lost: logical run and sequence."""
    return lambda run, sequence: (run, sequence) in lost


def rows(found: Simulation, run: str) -> Iterator[MeteredRequest]:
    for statement in found.journal.statements():
        if statement.kind is StatementKind.ATTEMPT_INTENDED and statement.body["run"] == run:
            yield from found.ledger.account(AttemptId(statement.subject)).requests


def key_of(run: LogicalRun) -> str:
    return f"key_{run.id}"


def reported(
    found: Simulation,
    *,
    billed: Callable[[MeteredRequest], bool] = lambda row: row.state is RequestState.SETTLED,
    leave_out: str = "",
) -> UsageReports:
    """The provider's report over the whole round, for those requests that it `billed`."""
    manifest = found.frozen.manifest
    runs = [run for run in manifest.schedule if run.id != leave_out]
    lane = manifest.lanes[0]
    usage = [
        (InstantMs(row.accepted_at // MINUTE_MS * MINUTE_MS), key_of(run), USED, row)
        for run in runs
        for row in rows(found, run.id)
        if billed(row)
    ]
    summed: dict[tuple[InstantMs, str], dict[str, int]] = {}
    for minute, key, counts, _ in usage:
        cell = summed.setdefault((minute, key), dict.fromkeys(counts, 0))
        for name, count in counts.items():
            cell[name] += count
    start = min(minute for minute, _ in summed) // MINUTE_MS
    minutes = [InstantMs((start + number) * MINUTE_MS) for number in range(-5, 60)]
    page = openai_page([(minute, key, counts) for (minute, key), counts in summed.items()], minutes=minutes)
    key_ids = {provider_key_name(lane, run, number): key_of(run) for run in manifest.schedule for number in (1, 2, 3)}
    return UsageReports(read_reports([("usage.json", page)]), key_ids)


def release(found: Simulation, out: Path) -> Published:
    manifest, recompute = found.frozen.manifest, RoundRecompute()
    found.checkpoints().sign()
    statements = found.journal.statements()
    dataset = recompute.dataset(manifest, found.frozen.digest, statements)
    (found.directory / "dataset.jsonl").write_bytes(dataset)
    (found.directory / "analysis.json").write_bytes(recompute.analysis(manifest, dataset))
    names = [s.subject for s in statements if s.kind is StatementKind.ATTEMPT_INTENDED]
    accounts = [found.ledger.account(AttemptId(name)) for name in dict.fromkeys(names)]
    records = RoundRecords(
        statements=statements,
        ledger=[row for account in accounts for row in account.requests],
        refusals=[refusal for account in accounts for refusal in account.refusals],
        report=lambda versions: REPORT,
    )
    return publish(found.directory, out, records, files=LocalFiles(), signer=found.signer, recompute=recompute)


def finding(found: Simulation, run: str) -> bodies.RunReconciled:
    statement = found.journal.find(StatementKind.RUN_RECONCILED, run)
    assert statement is not None
    return claim(statement, bodies.RunReconciled)


def test_without_a_report_an_unknown_request_makes_its_run_invalid_and_the_total_a_floor(tmp_path: Path) -> None:
    found = simulation(tmp_path, loses=losing((FIRST, 2)))
    books = found.settle()
    # Seven of eight requests at 0.003 dollars.
    assert (books.settled.usd, books.settled.floor_usd, books.settled.figure) == (None, "0.021", Figure.FLOOR)
    assert books.settled.invalid_runs == (FIRST,)
    published = release(found, tmp_path / "release")
    assert "at least 0.021 USD" in published.report.steps[6].detail


def test_a_report_that_agrees_proves_the_lost_answer_free_and_the_run_counts(tmp_path: Path) -> None:
    found = simulation(tmp_path, loses=losing((FIRST, 2)))
    scored = found.journal.find(StatementKind.RUN_SCORED, FIRST)
    assert scored is not None
    assert scored.body["outcome"] == "invalid"
    before = list(rows(found, FIRST))
    books = found.settle(reported(found))
    assert (books.settled.usd, books.settled.figure, books.settled.invalid_runs) == ("0.021", Figure.EXACT, ())
    assert (books.closed.success, books.closed.invalid) == (4, 0)
    assert finding(found, FIRST).finding is Finding.AGREES
    assert list(rows(found, FIRST)) == before, "the ledger's rows stay as they are"
    published = release(found, tmp_path / "release")
    assert published.report.passed
    assert "4 runs compared with the provider's report again, 1 unknown requests resolved" in str(published.report)
    dataset = (published.path / "dataset.jsonl").read_text()
    assert '"outcome":"invalid"' not in dataset
    assert dataset.count('"figure":"exact"') == 4


def test_usage_of_the_one_lost_answer_is_assigned_and_the_figure_is_an_estimate(tmp_path: Path) -> None:
    found = simulation(tmp_path, loses=losing((FIRST, 2)))
    books = found.settle(reported(found, billed=lambda row: True))
    assert (books.settled.usd, books.settled.figure) == ("0.024", Figure.ESTIMATED)
    assert [each.usd for each in finding(found, FIRST).resolved] == ["0.003"]
    published = release(found, tmp_path / "release")
    assert published.report.passed
    assert (published.path / "dataset.jsonl").read_text().count('"figure":"estimated"') == 1


def test_a_provider_that_has_less_makes_a_success_invalid(tmp_path: Path) -> None:
    found = simulation(tmp_path)
    spared = next(rows(found, FIRST)).request_id
    books = found.settle(reported(found, billed=lambda row: row.request_id != spared))
    assert (books.settled.usd, books.settled.invalid_runs) == (None, (FIRST,))
    assert books.settled.floor_usd == "0.018", "of the refuted run nothing is certain"
    assert books.closed.invalid == 1
    assert release(found, tmp_path / "release").report.passed


def test_a_report_that_was_filtered_proves_nothing_about_the_run_it_hides(tmp_path: Path) -> None:
    found = simulation(tmp_path, loses=losing((FIRST, 1), (FIRST, 2)))
    books = found.settle(reported(found, leave_out=FIRST))
    assert books.settled.invalid_runs == (FIRST,)
    assert finding(found, FIRST).finding is Finding.NOT_COMPARED


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("a cheaper run", {"usd": "0.001"}),
        ("another outcome", {"outcome": "invalid"}),
        ("another finding", {"finding": Finding.ASSIGNED}),
        ("no resolution", {"resolved": ()}),
        ("another figure", {"figure": Figure.ESTIMATED}),
        ("another floor", {"floor_usd": "0"}),
    ],
)
def test_a_finding_that_does_not_follow_is_refused(name: str, change: dict[str, object], tmp_path: Path) -> None:
    found = simulation(tmp_path, loses=losing((FIRST, 2)))
    usage = reported(found)
    books = draw_up(found.frozen.manifest, found.journal, found.ledger, found.clock, usage=usage)
    history = books.histories[FIRST]
    assert history.reconciled is not None
    forged = history.reconciled.model_copy(update=change)
    at = found.clock.now()
    found.journal.append(StatementKind.RUN_RECONCILED, FIRST, forged, at=at)
    for run, other in books.histories.items():
        if run != FIRST and other.reconciled is not None:
            found.journal.append(StatementKind.RUN_RECONCILED, run, other.reconciled, at=at)
    found.journal.append(StatementKind.ROUND_SETTLED, "small", books.settled, at=at)
    counted = books.closed
    if "outcome" in change:
        counted = counted.model_copy(update={"success": counted.success - 1, "invalid": counted.invalid + 1})
    found.journal.append(StatementKind.ROUND_CLOSED, "small", counted, at=at)
    with pytest.raises(Exception, match="reconciled otherwise than the provider's report gives"):
        release(found, tmp_path / "release")


def test_a_report_about_some_runs_only_is_refused(tmp_path: Path) -> None:
    found = simulation(tmp_path)
    books = draw_up(found.frozen.manifest, found.journal, found.ledger, found.clock, usage=reported(found))
    one = books.histories[FIRST].reconciled
    assert one is not None
    found.journal.append(StatementKind.RUN_RECONCILED, FIRST, one, at=found.clock.now())
    found.journal.append(StatementKind.ROUND_SETTLED, "small", books.settled, at=found.clock.now())
    found.journal.append(StatementKind.ROUND_CLOSED, "small", books.closed, at=found.clock.now())
    with pytest.raises(Exception, match="other runs were compared with the provider's report"):
        release(found, tmp_path / "release")


def test_a_settlement_that_was_cut_short_is_finished_with_the_same_files_only(tmp_path: Path) -> None:
    found = simulation(tmp_path, loses=losing((FIRST, 2)))
    usage = reported(found)
    whole = draw_up(found.frozen.manifest, found.journal, found.ledger, found.clock, usage=usage)
    begun = whole.histories[FIRST].reconciled
    assert begun is not None
    found.journal.append(StatementKind.RUN_RECONCILED, FIRST, begun, at=found.clock.now())
    with pytest.raises(InvalidInput, match="begun with other reports"):
        found.settle()
    with pytest.raises(InvalidInput, match="begun with other reports"):
        found.settle(reported(found, billed=lambda row: True))
    assert found.settle(usage).settled == whole.settled
    assert release(found, tmp_path / "release").report.passed


def test_a_closed_round_shows_its_books_and_takes_no_report_any_more(tmp_path: Path) -> None:
    found = simulation(tmp_path, loses=losing((FIRST, 2)))
    closed = found.settle().settled
    statements = found.journal.statements()
    assert found.settle().settled == closed
    with pytest.raises(InvalidInput, match="closed"):
        found.settle(reported(found))
    assert found.journal.statements() == statements


def test_a_look_at_the_books_writes_nothing(tmp_path: Path) -> None:
    found = simulation(tmp_path)
    statements = found.journal.statements()
    books = draw_up(found.frozen.manifest, found.journal, found.ledger, found.clock)
    assert books.settled.usd == "0.024"
    assert found.journal.statements() == statements


def test_requests_in_flight_are_waited_for_but_not_for_ever(tmp_path: Path) -> None:
    found = simulation(tmp_path)
    ledger, asked = found.ledger, 0

    class Draining:
        """A ledger whose first request ends after a few looks at it."""

        def __init__(self, looks: int) -> None:
            self.looks = looks

        def account(self, attempt_id: AttemptId) -> object:
            nonlocal asked
            asked += 1
            account = ledger.account(attempt_id)
            if asked > self.looks:
                return account
            sent = account.requests[0].model_copy(update={"state": RequestState.SENT})
            return account.model_copy(update={"requests": (sent, *account.requests[1:])})

    begun = found.clock.at
    books = draw_up(found.frozen.manifest, found.journal, Draining(6), found.clock)  # type: ignore[arg-type]
    assert books.settled.usd == "0.024"
    assert found.clock.at > begun, "it waited"
    asked = 0
    with pytest.raises(InvalidInput, match="4 requests are still in flight"):
        draw_up(found.frozen.manifest, found.journal, Draining(10**9), found.clock)  # type: ignore[arg-type]


def test_a_request_that_outlives_the_patience_of_its_attempt_leaves_a_bundle_that_is_accepted(tmp_path: Path) -> None:
    found = simulation(tmp_path, lingers=losing((FIRST, 2)))
    with pytest.raises(InvalidInput, match="1 requests are still in flight"):
        found.settle()
    (late,) = (row for row in rows(found, FIRST) if row.state is RequestState.SENT)
    usage = Usage(tokens={"in": 1_000, "out": 100})
    end = RequestEnd(state=RequestState.SETTLED, ended_at=found.clock.now(), status=200, usage=usage, usd="0.003")
    found.ledger.finish(late.request_id, end)
    books = found.settle()
    # Its attempt was closed without it, so the run stays invalid; what is settled is certain all the same.
    assert (books.settled.usd, books.settled.floor_usd, books.settled.invalid_runs) == (None, "0.024", (FIRST,))
    assert release(found, tmp_path / "release").report.passed


def test_self_reports_are_shown_beside_the_meter_and_change_nothing(tmp_path: Path) -> None:
    found = simulation(tmp_path, says="0.0045")
    shown = settlement(found.settle(), closed=True)
    for arm in shown.arms:
        # Two runs of two requests at 0.003 dollars against 0.0045 dollars that the harness claims of each run.
        assert arm.self_report is not None
        assert (arm.self_report.metered_usd, arm.self_report.self_reported_usd) == ("0.012", "0.009")
        assert (arm.self_report.difference_usd, arm.self_report.attempts) == ("-0.003", 2)
        assert arm.usd == "0.012"
    text = describe(shown)
    assert "-$0.0030" in text
    assert len(text.splitlines()) <= 24


def test_retail_is_simulated_from_the_same_requests(tmp_path: Path) -> None:
    found = simulation(tmp_path, loses=losing((FIRST, 2)))
    policy = RetailPolicy(
        name="cents", source="invented", quantum_usd="0.01", rounding="ceiling", rounded_per="request"
    )
    shown = settlement(found.settle(reported(found)), closed=True, retail=policy)
    # Each request of 0.003 dollars is charged as a cent; the one that was proven free is charged nothing.
    assert {run.run: run.retail_usd for run in shown.runs}[FIRST] == "0.01"
    assert sorted(run.retail_usd or "" for run in shown.runs) == ["0.01", "0.02", "0.02", "0.02"]


def test_an_answer_of_another_model_stops_the_round_though_no_other_attempt_waits(tmp_path: Path) -> None:
    last = "first.alpha.r1"
    found = Simulation(tmp_path, observed=lambda run, number: "m-2" if run == last else "m-1")
    started(found, 1)
    order = [run.id for run in found.frozen.manifest.schedule]
    results = found.conduct(found.world())
    stopped = found.journal.find(StatementKind.ROUND_STOPPED, "small")
    assert stopped is not None
    assert stopped.body["rule"] == "observed-model"
    assert "2 requests in 1 attempts" in stopped.body["detail"]
    assert "'m-2' (2)" in stopped.body["detail"]
    after = order[order.index(last) + 1 :]
    assert {results[run] for run in after} <= {running.STOPPED}
    assert results[last] == running.SCORED
    books = found.settle()
    assert last in books.settled.invalid_runs
    assert release(found, tmp_path / "release").report.passed


def test_the_operator_is_told_of_another_model_even_when_every_run_is_scored(tmp_path: Path) -> None:
    last = Simulation(tmp_path / "order").frozen.manifest.schedule[-1].id
    found = Simulation(tmp_path / "round", observed=lambda run, number: "m-2" if run == last else "m-1")
    with pytest.raises(ObservedModelMismatch, match="'m-2'"):
        rounds.start(found.world(), fleet_size=1, on_progress=lambda status: None)
    assert found.journal.find(StatementKind.ROUND_STOPPED, "small") is not None


def test_a_bundle_whose_log_was_not_stopped_for_another_model_is_refused(tmp_path: Path) -> None:
    found = Simulation(tmp_path, observed=lambda run, number: "m-2" if run == FIRST else "m-1")
    started(found, 1)
    manifest = found.frozen.manifest
    deaf = manifest.model_copy(update={"stop_rules": manifest.stop_rules.model_copy(update={"events": ()})})
    found.frozen = found.frozen.__class__(manifest=deaf, digest=found.frozen.digest)
    found.conduct(found.world())
    assert found.journal.find(StatementKind.ROUND_STOPPED, "small") is None
    found.frozen = found.frozen.__class__(manifest=manifest, digest=found.frozen.digest)
    found.settle()
    with pytest.raises(Exception, match="answered by a model off its lane, and nothing stopped the round"):
        release(found, tmp_path / "release")


def test_another_rate_card_stops_the_round_before_anything_is_leased(tmp_path: Path) -> None:
    found = Simulation(tmp_path)
    found.rate_card_in_use = "sha256:" + "b" * 64
    with pytest.raises(RateCardChanged) as stopped:
        rounds.start(found.world(), fleet_size=1, on_progress=lambda status: None)
    assert "the meter prices by sha256:bbbb" in str(stopped.value)
    assert found.frozen.manifest.rate_card_digest in str(stopped.value)
    assert not found.started
    found.rate_card_in_use = found.frozen.manifest.rate_card_digest
    with pytest.raises(RateCardChanged):
        rounds.start(found.world(), fleet_size=1, on_progress=lambda status: None)
    assert not found.started, "a stop that a rule wrote is never taken back"


def test_a_rate_card_that_changes_under_way_lets_what_is_in_flight_end(tmp_path: Path) -> None:
    def end(run: str, number: int) -> EndKind:
        found.rate_card_in_use = "sha256:" + "b" * 64
        return EndKind.NORMAL

    found = Simulation(tmp_path, end=end)
    results = found.conduct(found.world())
    assert sorted(results.values()) == [running.SCORED, running.STOPPED, running.STOPPED, running.STOPPED]


def invalidated(found: Simulation) -> dict[str, dict[str, str]]:
    return {s.subject: s.body["reasons"] for s in found.journal.statements() if s.kind is StatementKind.RUN_INVALIDATED}


def attempt(found: Simulation, run: str) -> str:
    return next(row.attempt_id for row in rows(found, run))


@pytest.mark.parametrize(
    ("story", "reason"),
    [
        ({"loses": losing((FIRST, 2))}, "request-unknown"),
        ({"observed": lambda run, number: "m-2" if run == FIRST else "m-1"}, "model-off-lane"),
        ({"lingers": losing((FIRST, 2))}, "request-in-flight"),
    ],
    ids=["lost", "other model", "in flight"],
)
def test_an_invalid_run_says_why_in_the_log(story: dict[str, object], reason: str, tmp_path: Path) -> None:
    found = simulation(tmp_path, **story)
    if reason == "request-in-flight":
        for row in rows(found, FIRST):
            if row.state.is_open:
                end = RequestEnd(state=RequestState.UNKNOWN, ended_at=found.clock.now(), note="the meter was lost")
                found.ledger.finish(row.request_id, end)
    found.settle()
    assert invalidated(found) == {FIRST: {attempt(found, FIRST): reason}}
    assert release(found, tmp_path / "release").report.passed


def test_a_report_that_refutes_a_run_is_the_reason_and_one_that_mends_it_leaves_none(tmp_path: Path) -> None:
    refuted = simulation(tmp_path / "refuted")
    refuted.settle(reported(refuted, billed=lambda row: row.logical_run_id != FIRST or row.sequence == 1))
    assert invalidated(refuted) == {FIRST: {attempt(refuted, FIRST): "usage-report-refutes"}}
    mended = simulation(tmp_path / "mended", loses=losing((FIRST, 2)))
    mended.settle(reported(mended))
    assert invalidated(mended) == {}


def test_a_measured_round_is_not_closed_on_a_pause_but_on_a_declared_event(tmp_path: Path) -> None:
    found = Simulation(tmp_path)
    measured = found.frozen.manifest.model_copy(update={"kind": "measured"})
    rounds.stop(found.journal, found.clock, "small", "our arm is losing")
    with pytest.raises(InvalidInput, match="is not over: 0 of 4") as caught:
        draw_up(measured, found.journal, found.ledger, found.clock)
    assert "--event" in caught.value.remedy
    rounds.stop(found.journal, found.clock, "small", "leaked", event=StopEvent.SEALED_TASK_EXPOSURE)
    assert draw_up(measured, found.journal, found.ledger, found.clock).closed.missing == 4


def test_what_the_meter_refused_is_told_by_its_reasons(tmp_path: Path) -> None:
    def loses(run: str, sequence: int) -> bool:
        """The second request is refused twice for its model before it is sent, the first one once for its length."""
        for reason in ("too long",) if sequence == 1 else ("another model", "another model"):
            refused = Refusal(attempt_id=name_of(run), at=found.clock.now(), reason=reason, status=400, limit=False)
            found.ledger.refuse(refused)
        return False

    def name_of(run: str) -> AttemptId:
        return attempt_id(found.frozen.digest, LogicalRunId(run), 1)

    found = Simulation(tmp_path, loses=loses)
    started(found, 1)
    found.conduct(found.world())
    found.settle()
    told = [s for s in found.journal.statements() if s.kind is StatementKind.REQUESTS_REFUSED]
    assert [s.subject for s in told] == [name_of(run.id) for run in found.frozen.manifest.schedule]
    assert all(s.body["reasons"] == {"another model": 2, "too long": 1} for s in told)
    assert release(found, tmp_path / "release").report.passed
