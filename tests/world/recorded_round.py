"""A small conducted round without machines: manifest, log, ledger and patches that agree with one another.

Two tasks, two arms, two repeats. Among the eight logical runs are successes, a failed verification, a provider error
that was retried, a hard limit, a crash whose patch would have passed, and a run whose cost stayed unknown.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from controller.adapters.files_durable import LocalFiles
from controller.authorize import authorize
from controller.conductor.history import run_histories
from controller.conductor.recompute import RoundRecompute
from controller.domain import bodies
from controller.domain.authorization import Caps
from controller.domain.ids import AttemptId, LogicalRunId, RequestId, attempt_id, sha256_digest
from controller.domain.instant import InstantMs
from controller.domain.launch import LaunchContract
from controller.domain.money import usd_from_text, usd_to_text
from controller.domain.outcome import BLAME, RETRYABLE, EndKind, Gate, Verdict, VerifierOutput
from controller.domain.plan import Arm, Lane, LogicalRun, RoundManifest, TaskEntry
from controller.domain.rate_card import RateBand, RateCard, RateRow
from controller.domain.rating import Rate, price
from controller.domain.record import Record
from controller.domain.retail import RetailPolicy
from controller.domain.statement import Statement, StatementKind
from controller.domain.usage import AttemptAccount, MeteredRequest, Refusal, RequestState, Usage, ZeroBillProof
from controller.evidence.bundle import checkpoint_name
from controller.evidence.canonical import canonical
from controller.evidence.invalidation import invalidation
from controller.evidence.log import checkpoint_of, leaves, next_statement
from controller.evidence.note import sign_checkpoint
from controller.freeze import FreezeInputs, freeze
from controller.freeze.plan import PlanArm, RoundPlan
from controller.freeze.sections import CostIndexSection, OptimizerSection
from controller.protocols.cost_index.manifest import SpendBoundary
from controller.protocols.optimizer_matrix.manifest import Candidate, ProbeBoundary
from controller.publish import Published, RoundRecords, Version, publish
from controller.schedule import allocation
from controller.settle import settle_attempt, settle_round, settled_usd
from tests.world.clock import StepClock
from tests.world.signer import FixedSigner

START = InstantMs(1_790_000_000_000)
SEED = "5e" * 32
REPORT = "<!doctype html><title>Rehearsal</title><p>Rehearsal: scripted model, not a measurement."
ENVELOPE = Caps(logical_runs=100, attempts=300, requests=300 * 60, usd="300", timeout_minutes=300 * 30)
CAPS = Caps(logical_runs=8, attempts=24, requests=24 * 60, usd="24", timeout_minutes=24 * 30)
WALL_MS = 61_000  # of every attempt
SETTLED, ZERO, UNKNOWN = RequestState.SETTLED, RequestState.ZERO_BILL, RequestState.UNKNOWN


def digest(text: str) -> str:
    return sha256_digest(text.encode())


CARD = RateCard(
    name="test",
    rows=(
        RateRow(
            provider="rehearsal",
            model="m-1",
            source="invented",
            retrieved_on="2026-11-01",
            bands=(RateBand(over=0, nano_usd_per_million={"in": 2_000_000_000, "out": 10_000_000_000}),),
        ),
    ),
)
RETAIL = RetailPolicy(name="whole cents", source="invented", quantum_usd="0.01", rounding="half_up", rounded_per="run")
GATES = ("hidden verifier",)


@dataclass(frozen=True)
class Try:
    """How one attempt goes."""

    end: EndKind = EndKind.NORMAL
    passes: bool | None = True  # None: no verdict
    requests: tuple[RequestState, ...] = (SETTLED, SETTLED)
    refusals: int = 0


STORIES: Mapping[int, tuple[Try, ...]] = {
    0: (Try(),),
    1: (Try(passes=False),),
    2: (Try(end=EndKind.PROVIDER_ERROR, passes=None, requests=(SETTLED, ZERO)), Try()),
    3: (Try(end=EndKind.HARD_LIMIT, passes=False, refusals=1),),
    4: (Try(end=EndKind.HARNESS_CRASH), Try(end=EndKind.HARNESS_CRASH, passes=False), Try(passes=False)),
    5: (Try(requests=(SETTLED, UNKNOWN)),),
    6: (Try(end=EndKind.INFRASTRUCTURE, passes=None, requests=()), Try()),
    7: (Try(),),
}


Protocol = Literal["harness-round", "cost-index", "optimizer-matrix"]
ARMS: Mapping[Protocol, tuple[str, ...]] = {
    "harness-round": ("alpha", "beta"),
    "cost-index": ("alpha", "beta"),
    "optimizer-matrix": ("adaptive", "always-frontier", "prompt-only"),
}
COST_INDEX = CostIndexSection(
    boundary=SpendBoundary(
        uncounted={
            "tool": "none is billed",
            "compute": "our own machines",
            "human_verification": "nobody grades",
            "allocated_shared": "nothing is shared",
        }
    )
)
OPTIMIZER = OptimizerSection(
    candidates=(
        Candidate(id="codex-big", harness="codex", lane="lane", tier="frontier", billing_basis="invented prices"),
    ),
    routing=dict.fromkeys(ARMS["optimizer-matrix"], "fixed"),
    probe=ProbeBoundary(files_max=200, bytes_max=2**20, duration_ms_max=2_000),
)


def inputs(
    *,
    replicates: int = 2,
    given: Sequence[TaskEntry] = (),
    round_id: str = "small",
    protocol: Protocol = "harness-round",
) -> FreezeInputs:
    """What a conductor would gather for the plan of two tasks, or those given, and the protocol's arms."""
    arms = ARMS[protocol]
    settings = [{"reasoning_effort": effort} for effort in ("low", "medium", "high")]  # stacks differ in something
    plan = RoundPlan(
        round_id=round_id,
        title="A small round",
        protocol=protocol,
        kind="rehearsal",
        seed=SEED,
        replicates=replicates,
        tasks=("corpus/*",),
        arms=tuple(
            PlanArm(id=name, title=name, harness="codex", lane="lane", settings=chosen)
            for name, chosen in zip(arms, settings, strict=False)
        ),
        lanes=(Lane(id="lane", provider="rehearsal", model="m-1", observed_models=("m-1",)),),
        rate_card="card.json",
        retail_policy="retail.json",
        approvers="approvers.json",
        envelope=ENVELOPE,
        cost_index=COST_INDEX if protocol == "cost-index" else None,
        optimizer_matrix=OPTIMIZER if protocol == "optimizer-matrix" else None,
    )
    tasks = tuple(given) or tuple(task_entry(name) for name in ("first", "second"))
    return FreezeInputs(
        plan=plan,
        seed=SEED,
        tasks=tasks,
        arms=tuple(_arm(arm) for arm in plan.arms),
        fixtures={task.id: digest(f"{task.id} cases") for task in tasks if task.sealed is None},
        rate_card=CARD,
        retail_policy=RETAIL,
        approvers=(FixedSigner("a person").key,),
        images={"harness-codex": digest("image"), "vm-runner": digest("runner"), "vm-verifier": digest("verifier")},
        network_policy="flows",
        gates=GATES,
        schedule=allocation([t.id for t in tasks], arms, replicates, seed=SEED, round_id=round_id),
        software="fairtrial test",
        software_digest=digest("package"),
        launch_contracts={arm.id: LaunchContract(argv=("codex",), env={}, files={}) for arm in plan.arms},
    )


def measured_inputs() -> FreezeInputs:
    """A measured harness-round of twelve logical runs, whose report "a person" may approve."""
    given = inputs(replicates=3)
    lane = Lane(id="lane", provider="openai", model="m-1", observed_models=("m-1",))
    card = CARD.model_copy(update={"rows": (CARD.rows[0].model_copy(update={"provider": "openai"}),)})
    plan = given.plan.model_copy(update={"kind": "measured", "lanes": (lane,)})
    return given.model_copy(update={"plan": plan, "rate_card": card})


def measured(directory: Path) -> RecordedRound:
    """That round, conducted."""
    stories = {number: STORIES.get(number, (Try(),)) for number in range(12)}
    caps = CAPS.model_copy(update={"logical_runs": 12, "attempts": 36})
    found = conducted(directory, stories=stories, caps=caps, given=measured_inputs())
    found.report = "<!doctype html><title>A measured round</title>"
    return found


def task_entry(name: str) -> TaskEntry:
    """A public task with invented digests."""
    return TaskEntry(
        id=name,
        title=name,
        stratum="small",
        cluster=f"repo-{name}",
        visibility="public",
        language="python",
        task_digest=digest(f"{name} task"),
        prompt_digest=digest(f"{name} prompt"),
        base_digest=digest(f"{name} base"),
        verifier_digest=digest(f"{name} verifier"),
        gold_digest=digest(f"{name} gold"),
        soundness="black-box",
    )


def _arm(arm: PlanArm) -> Arm:
    return Arm(
        id=arm.id,
        title=arm.title,
        harness=arm.harness,
        harness_version="1",
        adapter_digest=digest("adapter"),
        image="harness-codex",
        image_digest=digest("image"),
        lane=arm.lane,
        dialect="openai_responses",
        shims=(),
        settings=arm.settings,
    )


@dataclass
class RecordedRound:
    """The round and the means to go on recording. Everything in it may be changed by a test before `records`."""

    directory: Path
    manifest: RoundManifest
    manifest_digest: str
    clock: StepClock = field(default_factory=lambda: StepClock(START))
    statements: list[Statement] = field(default_factory=list)
    ledger: list[MeteredRequest] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    report: str = REPORT

    def log(self, kind: StatementKind, subject: str, body: Record) -> None:
        previous = self.statements[-1] if self.statements else None
        self.statements.append(next_statement(previous, kind=kind, at=self.clock.now(), subject=subject, body=body))

    def sign(self) -> None:
        """Sign the log as it is, and keep the signed state with the round."""
        spelled = leaves(self.statements)
        note = sign_checkpoint(checkpoint_of("small", spelled), FixedSigner())
        LocalFiles().create_file(self.directory / checkpoint_name(len(spelled)), note)

    def records(self) -> RoundRecords:
        self.sign()
        return RoundRecords(statements=self.statements, ledger=self.ledger, refusals=self.refusals, report=self.told)

    def publish(self, **options: Any) -> Published:
        """Publish the round beside its directory, as its operator does."""
        return publish(
            self.directory,
            self.directory.parent / "release",
            self.records(),
            files=LocalFiles(),
            signer=FixedSigner(),
            recompute=RoundRecompute(),
            **options,
        )

    def told(self, versions: tuple[Version, ...]) -> str:
        """The report, with what its versions correct."""
        return self.report + "".join(f"<p>v{each.number}: {each.correction}" for each in versions[1:])

    def close(self, settlement: bodies.RoundSettled) -> None:
        """Settle, close and analyse."""
        for run_id, history in run_histories(self.statements).items():
            accounts = {a.attempt_id: a.settled for a in history.attempts if a.settled}
            invalid = invalidation(accounts, history.reconciled, history.outcome)
            if invalid is not None:
                self.log(StatementKind.RUN_INVALIDATED, run_id, invalid)
        self.log(StatementKind.ROUND_SETTLED, "small", settlement)
        outcomes = Counter(s.body["outcome"] for s in self.statements if s.kind is StatementKind.RUN_SCORED)
        counts = {name: outcomes[name] for name in ("success", "failure", "invalid")}
        missing = len(self.manifest.schedule) - outcomes.total()
        self.log(StatementKind.ROUND_CLOSED, "small", bodies.RoundClosed(**counts, missing=missing))
        self.analyse()

    def analyse(self) -> None:
        """Write dataset and analysis as the analyse step does."""
        recompute = RoundRecompute()
        dataset = recompute.dataset(self.manifest, self.manifest_digest, self.statements)
        (self.directory / "dataset.jsonl").write_bytes(dataset)
        (self.directory / "analysis.json").write_bytes(recompute.analysis(self.manifest, dataset))


def conducted(
    directory: Path,
    *,
    stories: Mapping[int, tuple[Try, ...]] = STORIES,
    caps: Caps = CAPS,
    given: FreezeInputs | None = None,
) -> RecordedRound:
    """Freeze, authorize, conduct, settle and analyse in a new directory."""
    signer, files, clock = FixedSigner(), LocalFiles(), StepClock(START)
    frozen = freeze(given or inputs(), directory, signer, clock, files=files)
    found = RecordedRound(directory, frozen.manifest, frozen.digest, clock)
    root = frozen.manifest.corpus_root
    found.log(StatementKind.ROUND_FROZEN, "small", bodies.RoundFrozen(manifest_digest=frozen.digest, corpus_root=root))
    found.sign()
    expires_at = InstantMs(START + 10**9)
    grant = authorize(
        directory, frozen.digest, caps, signer, clock, files=files, round_id="small", expires_at=expires_at
    )
    granted = sha256_digest(canonical(grant))
    authorized = bodies.RoundAuthorized(manifest_digest=frozen.digest, authorization_digest=granted)
    found.log(StatementKind.ROUND_AUTHORIZED, "small", authorized)
    found.log(
        StatementKind.ROUND_STARTED,
        "small",
        bodies.RoundStarted(
            manifest_digest=frozen.digest,
            authorization_digest=granted,
            epoch=1,
            pool="qemu",
            isolation="vm",
        ),
    )
    found.sign()
    settled: dict[str, list[bodies.AttemptSettled]] = {}
    for run, tries in zip(frozen.manifest.schedule, stories.values(), strict=False):
        settled[run.id] = [_conduct(found, run, number, one) for number, one in enumerate(tries, start=1)]
        _score(found, run, tries, settled[run.id])
    found.close(settle_round(settled, floors=[settled_usd(found.ledger)]))
    return found


def _conduct(found: RecordedRound, run: LogicalRun, number: int, one: Try) -> bodies.AttemptSettled:
    name = attempt_id(found.manifest_digest, LogicalRunId(run.id), number)
    found.log(
        StatementKind.ATTEMPT_INTENDED, name, bodies.AttemptIntended(run=run.id, number=number, generation=1, epoch=1)
    )
    _machine(found, name, "runner")
    isolation = bodies.IsolationChecked(receipt_digest=digest(name), probes_refused=24, mismatches=())
    found.log(StatementKind.ISOLATION_RECEIPT, name, isolation)
    found.clock.sleep(WALL_MS / 1000)
    result = bodies.ResultAcknowledged(
        artifacts=(), missing=(), wall_ms=WALL_MS, end=one.end, reason="", self_reported_usd=None
    )
    found.log(StatementKind.RESULT_ACKNOWLEDGED, name, result)
    found.log(
        StatementKind.SANDBOX_DESTROYED, name, bodies.SandboxGone(name=name, generation=1, existed=True, proof="-")
    )
    if one.passes is not None:
        _judge(found, name, one.passes)
    account = _account(found, run, name, one)
    if account.refusals:
        reasons = {refusal.reason: one.refusals for refusal in account.refusals}
        found.log(StatementKind.REQUESTS_REFUSED, name, bodies.RequestsRefused(reasons=reasons))
    settled = settle_attempt(account, observed_models=("m-1",))
    found.log(StatementKind.ATTEMPT_SETTLED, name, settled)
    classified = bodies.AttemptClassified(
        run=run.id,
        number=number,
        end=one.end,
        reason="",
        blame=BLAME[one.end],
        retryable=one.end in RETRYABLE,
        verified=one.passes,
        would_have_passed=bool(one.passes) and one.end is not EndKind.NORMAL,
    )
    found.log(StatementKind.ATTEMPT_CLASSIFIED, name, classified)
    return settled


def _machine(found: RecordedRound, name: str, role: str) -> None:
    at = found.clock.now()
    body = bodies.SandboxLeased.model_validate(
        {"name": name, "role": role, "generation": 1, "created_at": at, "expires_at": at + 10**6}
    )
    found.log(StatementKind.SANDBOX_LEASED, name, body)


def _judge(found: RecordedRound, name: AttemptId, passes: bool) -> None:
    machine = name.replace("att-", "ver-")
    _machine(found, machine, "verifier")
    gone = bodies.SandboxGone(name=machine, generation=1, existed=True, proof="-")
    found.log(StatementKind.SANDBOX_DESTROYED, machine, gone)
    patch = f"diff of {name}\n".encode()
    LocalFiles().create_file(found.directory / "patches" / f"{name}.patch", patch)
    verdict = Verdict(
        passed=passes,
        gates=tuple(Gate(name=name, passed=passes, detail="") for name in GATES),
        patch_digest=sha256_digest(patch),
        changed_paths=("a.py",),
        soundness="black-box",
        output=VerifierOutput(
            exit_code=0,
            cases=2,
            passed=1 + passes,
            failed=() if passes else ("second",),
            report_bytes=10,
            report_digest=digest(f"report on {name}"),
        ),
    )
    found.log(StatementKind.VERDICT, name, bodies.VerdictReached(verdict=verdict, verifier_image=digest("verifier")))


def _account(found: RecordedRound, run: LogicalRun, name: AttemptId, one: Try) -> AttemptAccount:
    rows = [_request(found, run, name, sequence, state) for sequence, state in enumerate(one.requests, start=1)]
    refusals = [
        Refusal(attempt_id=name, at=found.clock.now(), reason="requests", status=400, limit=True)
        for _ in range(one.refusals)
    ]
    found.ledger += rows
    found.refusals += refusals
    return AttemptAccount(attempt_id=name, requests=tuple(rows), refusals=tuple(refusals), open=False)


def _request(
    found: RecordedRound, run: LogicalRun, name: AttemptId, sequence: int, state: RequestState
) -> MeteredRequest:
    usage = Usage(tokens={"in": 1000 + sequence, "out": 77}) if state is SETTLED else None
    usd = usd_to_text(price(usage, Rate(CARD.rows[0]))) if usage else ("0" if state is ZERO else None)
    return MeteredRequest(
        request_id=RequestId(f"req-{hashlib.sha256(f'{name}{sequence}'.encode()).hexdigest()[:12]}"),
        attempt_id=name,
        logical_run_id=LogicalRunId(run.id),
        sequence=sequence,
        dialect="openai_responses",
        model="m-1",
        state=state,
        accepted_at=found.clock.now(),
        ended_at=found.clock.now(),
        status=200 if state is SETTLED else 529,
        body_digest=digest(f"{name} {sequence}"),
        provider_message_id=None,
        observed_model="m-1" if state is SETTLED else None,
        usage=usage,
        usd=usd,
        zero_bill_proof=ZeroBillProof.DOCUMENTED_RULE if state is ZERO else None,
        note="",
    )


def _score(
    found: RecordedRound, run: LogicalRun, tries: Sequence[Try], settled: Sequence[bodies.AttemptSettled]
) -> None:
    valid = all(account.valid for account in settled)
    success = tries[-1].end is EndKind.NORMAL and tries[-1].passes
    costs = [account.usd for account in settled]
    total = sum((usd_from_text(cost) for cost in costs if cost is not None), start=usd_from_text("0"))
    body = bodies.RunScored(
        outcome="invalid" if not valid else "success" if success else "failure",
        scored_attempt=len(tries),
        attempts=len(tries),
        usd=usd_to_text(total) if None not in costs else None,
    )
    found.log(StatementKind.RUN_SCORED, run.id, body)
