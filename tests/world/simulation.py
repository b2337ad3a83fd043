"""A whole round without machines or models, and a controller that can be killed before or after any of its effects.

Pool, ledger, artifacts and log are the outside world: they survive a kill. A simulated harness makes two requests, then
hands in its artifacts, its exit record last. What a killed controller's machine does meanwhile is chosen by the test.
"""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

from controller.adapters.files_durable import LocalFiles
from controller.authorize import authorize, check_authorization, log_grant
from controller.conductor import running
from controller.conductor.attempt import ATTEMPT_STEPS
from controller.conductor.checkpoints import Checkpoints
from controller.conductor.settlement import Books, UsageReports, close, draw_up
from controller.conductor.world import World, token_sha256
from controller.domain.authorization import Caps
from controller.domain.bodies import RoundFrozen, RoundStarted
from controller.domain.ids import AttemptId, RequestId, sha256_digest
from controller.domain.instant import InstantMs
from controller.domain.keys import KeyRing
from controller.domain.launch import LaunchContext, LaunchContract, Shim
from controller.domain.limits import SandboxLimits
from controller.domain.outcome import EndKind, Gate, SelfReport, Verdict, VerifierOutput
from controller.domain.plan import TaskEntry
from controller.domain.receipt import RunOrder
from controller.domain.statement import StatementKind
from controller.domain.task import TaskBrief, TaskBundle
from controller.domain.tree import Tree, TreeFile
from controller.domain.tree_stream import HarvestedTree
from controller.domain.usage import RequestState, Usage
from controller.errors import SandboxLost
from controller.freeze import FreezeInputs, Frozen, freeze
from controller.ports.files import DurableFiles
from controller.ports.journal import Journal
from controller.ports.ledger import RequestEnd
from controller.ports.patches import Patch, PatchTool
from controller.ports.pool import Sandbox
from controller.ports.signer import Signer
from controller.ports.tasks import TaskContents
from controller.run import artifact_sizes
from controller.run.probes import PROBES
from controller.run.rules import expected_walls
from tests.world import recorded_round
from tests.world.artifacts import MemoryArtifacts
from tests.world.clock import StepClock
from tests.world.journal import MemoryJournal
from tests.world.ledger import MemoryLedger, accepted
from tests.world.pool import FakePool
from tests.world.signer import FixedSigner

Aftermath = Literal["finishes", "goes on", "dies"]
EFFECTS = {
    "journal": ("append",),
    "pool": ("lease", "destroy"),
    "ledger": ("open_attempt", "close_attempt"),
    "artifacts": ("grant", "revoke"),
    "files": ("create_file",),
}


class Killed(BaseException):
    """SIGKILL of the controller: no handler of ours may catch it."""


class Effects:
    """Counts the controller's effects and kills it before or after a chosen one. Points are numbered from 0."""

    def __init__(self, kill_at: int | None = None) -> None:
        self.count = 0
        self._kill_at = kill_at

    def point(self) -> None:
        """One moment at which the controller may die."""
        self.count += 1
        if self._kill_at is not None and self.count - 1 == self._kill_at:
            raise Killed

    def watch(self, port: Any, names: tuple[str, ...]) -> Any:
        """The port with a point before and after each named method."""
        outer = self

        class Watched:
            def __getattr__(self, name: str) -> Any:
                value = getattr(port, name)
                if name not in names:
                    return value

                def call(*args: Any, **kwargs: Any) -> Any:
                    outer.point()
                    result = value(*args, **kwargs)
                    outer.point()
                    return result

                return call

        return Watched()


class FakeHarness:
    """An adapter that nobody starts."""

    name, version, title, image = "fake", "1.0", "Fake", "harness-fake"
    dialect: Literal["anthropic"] = "anthropic"

    def __init__(self, says: str | None = None) -> None:
        self._says = says

    def check_settings(self, settings: object) -> None:
        return None

    def shims(self, settings: object) -> tuple[Shim, ...]:
        return ()

    def launch(self, context: LaunchContext) -> LaunchContract:
        return LaunchContract(argv=("true",), env={}, files={})

    def self_report(self, files: object, log: bytes) -> SelfReport:
        return SelfReport(usd=self._says)


class OpenTasks:
    """The TaskContents port: tasks with next to nothing in them."""

    def __init__(self, entries: Sequence[TaskEntry]) -> None:
        self._bundles = {
            entry.id: TaskBundle(
                entry=entry,
                prompt="mend it",
                base={"a.py": TreeFile(mode="100644", data=b"1\n")},
                verifier={},
                gold_patch=b"",
                rehearsal_json=None,
                protected=(),
            )
            for entry in entries
        }

    def brief(self, task: str) -> TaskBrief:
        return self._bundles[task]

    def bundle(self, task: str) -> TaskBundle:
        return self._bundles[task]


class NoPatches:
    """The PatchTool port for attempts whose trees nobody looks at."""

    def make_patch(self, base: Tree, harvested: Tree) -> Patch:
        raise AssertionError("the simulated verifier makes no patch")

    def apply_check(self, base: Tree, patch: bytes) -> Tree:
        raise AssertionError("the simulated verifier applies no patch")

    def base_commit_tar(self, base: Tree) -> bytes:
        return b""


class Simulation:
    """One frozen and authorized round in a directory, and the outside world that survives its controllers."""

    def __init__(
        self,
        directory: Path,
        *,
        replicates: int = 1,
        end: Callable[[str, int], EndKind] = lambda run, number: EndKind.NORMAL,
        passes: Callable[[str, int], bool] = lambda run, number: True,
        observed: Callable[[str, int], str] = lambda run, number: "m-1",
        loses: Callable[[str, int], bool] = lambda run, sequence: False,
        lingers: Callable[[str, int], bool] = lambda run, sequence: False,
        says: str | None = None,
        caps: Caps | None = None,
        given: FreezeInputs | None = None,
        tasks: TaskContents | None = None,
        signer: Signer | None = None,
        journal: Callable[[Path], Journal] = lambda directory: MemoryJournal(),
    ) -> None:
        self.clock = StepClock(recorded_round.START)
        self.signer: Signer = signer or FixedSigner()
        self.directory = directory / "round"
        inputs = given or recorded_round.inputs(replicates=replicates)
        self.frozen: Frozen = freeze(inputs, self.directory, self.signer, self.clock, files=LocalFiles())
        authorize(
            self.directory,
            self.frozen.digest,
            caps or recorded_round.CAPS,
            self.signer,
            self.clock,
            files=LocalFiles(),
            round_id=self.frozen.manifest.round_id,
            expires_at=InstantMs(self.clock.now() + 10**9),
        )
        frozen = RoundFrozen(manifest_digest=self.frozen.digest, corpus_root=self.frozen.manifest.corpus_root)
        self.rate_card_in_use = self.frozen.manifest.rate_card_digest
        self.journal = journal(self.directory)
        round_id = self.frozen.manifest.round_id
        self.journal.append(StatementKind.ROUND_FROZEN, round_id, frozen, at=self.clock.now())
        self.checkpoints().sign()
        self.pool = FakePool(self.clock)
        self.ledger = MemoryLedger(self.clock)
        self.artifacts = MemoryArtifacts(self.clock)
        self.started: Counter[str] = Counter()  # how often each attempt's harness was started
        self.ended: set[str] = set()
        self._end, self._passes, self._observed, self._loses = end, passes, observed, loses
        self._says, self._lingers = says, lingers
        self.tasks = tasks or OpenTasks(self.frozen.manifest.tasks)
        self._names: dict[str, tuple[str, int]] = {}

    def checkpoints(self, files: DurableFiles | None = None) -> Checkpoints:
        """What signs the round's log."""
        return Checkpoints(
            self.directory,
            self.frozen.manifest.round_id,
            journal=self.journal,
            signer=self.signer,
            files=files or LocalFiles(),
            clock=self.clock,
        )

    def world(self, effects: Effects | None = None) -> World:
        """A new controller over the same outside world."""
        watch = effects or Effects()
        starts = sum(s.kind is StatementKind.ROUND_STARTED for s in self.journal.statements())
        adapter = FakeHarness(self._says)
        return World(
            round_dir=self.directory,
            manifest=self.frozen.manifest,
            manifest_digest=self.frozen.digest,
            tasks=self.tasks,
            harnesses={arm.harness: adapter for arm in self.frozen.manifest.arms},
            journal=watch.watch(self.journal, EFFECTS["journal"]),
            checkpoints=self.checkpoints(watch.watch(LocalFiles(), EFFECTS["files"])),
            pool=watch.watch(self.pool, EFFECTS["pool"]),
            ledger=watch.watch(self.ledger, EFFECTS["ledger"]),
            artifacts=watch.watch(self.artifacts, EFFECTS["artifacts"]),
            patches=NoPatches(),
            files=watch.watch(LocalFiles(), EFFECTS["files"]),
            clock=self.clock,
            keys=KeyRing(keys=(self.signer.key,)),
            secret=b"s" * 32,
            egress_socket="/run/none.sock",
            owner="tests",
            epoch=starts + 1 + self._controllers(),
            rate_card_in_use=lambda: self.rate_card_in_use,
            execute=lambda sandbox, order: self._execute(sandbox, order, watch),
            verify=self._verify,
        )

    def _controllers(self) -> int:
        self._made = getattr(self, "_made", -1) + 1
        return self._made

    def conduct(self, world: World) -> dict[str, str]:
        """Work on every logical run in schedule order, without the workflow engine; what became of each."""
        runner = running.Runner(world)
        return {run.id: self._conduct_run(runner, run.id) for run in world.manifest.schedule}

    def _conduct_run(self, runner: running.Runner, run_id: str) -> str:
        while True:
            planned = runner.plan_next(run_id)
            if planned in (running.SCORED, running.HALTED, running.STOPPED):
                return planned
            for step in ATTEMPT_STEPS:
                if runner.act(run_id, planned, step.name) == running.HALTED:
                    return running.HALTED

    def settle(self, usage: UsageReports | None = None) -> Books:
        """Close the books and sign the log."""
        books = draw_up(self.frozen.manifest, self.journal, self.ledger, self.clock, usage=usage)
        close(books, self.journal, self.clock)
        self.checkpoints().sign()
        return books

    def after_kill(self, aftermath: Aftermath) -> None:
        """What the machines of a killed controller do while nobody watches."""
        for name, machine in list(self.pool.machines.items()):
            in_flight = name in self.started and name not in self.ended
            if aftermath == "dies":
                machine.alive = False
            elif aftermath == "finishes" and in_flight:
                self._hand_in(name)

    # -- the harness -------------------------------------------------------------------------------------------------

    def _execute(self, sandbox: Sandbox, order: RunOrder, effects: Effects) -> None:
        name = order.attempt_id
        if name in self.ended:
            return
        if name not in self.started:
            effects.point()
            self.started[name] += 1
            run, number = self.cell(name)
            if self._end(run, number) is EndKind.INFRASTRUCTURE:
                self.ended.add(name)
                raise SandboxLost(f"{name}: lost, as arranged")
            self._request(name, 1)
            effects.point()
        self._hand_in(name)
        effects.point()

    def cell(self, name: str) -> tuple[str, int]:
        """Logical run and number of an attempt, from its intent."""
        intent = self.journal.find(StatementKind.ATTEMPT_INTENDED, name)
        assert intent is not None, f"{name} was started without an intent"
        return intent.body["run"], intent.body["number"]

    def _hand_in(self, name: str) -> None:
        self._request(name, 2)
        run, number = self.cell(name)
        end = self._end(run, number)
        exit_code = 0 if end is EndKind.NORMAL else 1
        limits = self.frozen.manifest.artifact_limits
        contents = {
            "receipt.json": _receipt(name, self.frozen.manifest.sandbox_limits),
            "tree.jsonl": _tree(),
            "harness.log": b"",
            "self-report.json": b'{"schema_version":"fairtrial.self-report/1","files":{}}',
            "exit.json": _exit(exit_code, timed_out=end is EndKind.TIMEOUT),
        }
        assert contents.keys() == artifact_sizes(limits).keys()
        intent = self.journal.find(StatementKind.ATTEMPT_INTENDED, name)
        assert intent is not None
        generation = intent.body["generation"]
        token = token_sha256(self.world().token("up", AttemptId(name), generation))
        for artifact, data in contents.items():
            grant = self.artifacts.find_grant(AttemptId(name), artifact, token)
            assert grant is not None, f"{name}/{artifact} has no grant"
            self.artifacts.store(grant, data, at=self.clock.now())
        self.ended.add(name)

    def _request(self, name: str, sequence: int) -> None:
        request_id = RequestId(f"{name}-{sequence}")
        run, number = self.cell(name)
        row = accepted(request_id, name, run, dialect="anthropic", model="m-1", at=self.clock.now())
        refused = self.ledger.accept(row, estimate_usd="0.01")
        assert refused is None, refused
        self.ledger.mark_sent(request_id)
        if self._lingers(run, sequence):
            return
        model = self._observed(run, number)
        if self._loses(run, sequence):
            end = RequestEnd(state=RequestState.UNKNOWN, ended_at=self.clock.now(), note="lost, as arranged")
        else:
            end = RequestEnd(
                state=RequestState.SETTLED if model == "m-1" else RequestState.UNKNOWN,
                ended_at=self.clock.now(),
                status=200,
                provider_message_id=request_id,
                observed_model=model,
                usage=Usage(tokens={"in": 1_000, "out": 100}),
                usd="0.003" if model == "m-1" else None,
            )
        self.ledger.finish(request_id, end)

    # -- the verifier ------------------------------------------------------------------------------------------------

    def _verify(
        self, sandbox: Sandbox, bundle: TaskBundle, harvested: HarvestedTree | str, patches: PatchTool
    ) -> tuple[Verdict, bytes]:
        name = "att-" + sandbox.facts.name.removeprefix("ver-")
        passed = self._passes(*self.cell(name))
        patch = b"patch of " + name.encode()
        return (
            Verdict(
                passed=passed,
                gates=tuple(Gate(name=name, passed=passed, detail="as arranged") for name in recorded_round.GATES),
                patch_digest=sha256_digest(patch),
                changed_paths=("a.py",),
                soundness="black-box",
                output=VerifierOutput(
                    exit_code=0,
                    cases=1,
                    passed=int(passed),
                    failed=() if passed else ("hidden-case",),
                    report_bytes=0,
                    report_digest=sha256_digest(b""),
                ),
            ),
            patch,
        )


def _receipt(name: str, limits: SandboxLimits) -> bytes:
    return json.dumps(
        {
            "schema_version": "fairtrial.receipt/1",
            "attempt_id": name,
            "found": expected_walls(limits),
            "unenforced": [],
            "probes": [
                {"name": probe.name, "kind": probe.kind, "outcome": "refused", "detail": "unreachable"}
                for probe in PROBES
            ],
            "mismatches": [],
            "phases_ms": {},
        }
    ).encode()


def _tree() -> bytes:
    data = b"2\n"
    entry = {
        "path": "a.py",
        "mode": "100644",
        "size": len(data),
        "sha256": sha256_digest(data).removeprefix("sha256:"),
        "data": base64.b64encode(data).decode(),
    }
    rows = ({"schema": "fairtrial.tree/1"}, entry, {"end": True, "entries": 1})
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def _exit(code: int, *, timed_out: bool) -> bytes:
    ended = {
        "exit_code": None if timed_out else code,
        "timed_out": timed_out,
        "wall_ms": 1500,
        "log_truncated": False,
        "tree_truncated": False,
    }
    fields = {"schema_version": "fairtrial.exit/1", "exit": ended, "relay_exit": None, "phases_ms": {}}
    return json.dumps(fields).encode()


def started(simulation: Simulation, epoch: int) -> None:
    """Write what `rounds.start` writes first, for rounds that are conducted without it."""
    world = simulation.world()
    grant = check_authorization(world.round_dir, world.manifest_digest, world.keys, world.clock.now())
    body = RoundStarted(
        manifest_digest=simulation.frozen.digest,
        authorization_digest=log_grant(simulation.journal, grant, at=simulation.clock.now()),
        epoch=epoch,
        pool="fake",
        isolation="vm",
    )
    key = f"{StatementKind.ROUND_STARTED}:e{epoch}"
    simulation.journal.append(StatementKind.ROUND_STARTED, "small", body, at=simulation.clock.now(), key=key)
    simulation.checkpoints().sign()
