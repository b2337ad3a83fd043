"""What each of the steps of docs/evidence.md looks at, and what it leaves behind for the later ones."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Tuple

from . import claims as said
from . import files as names
from .aggregate import aggregate_bytes
from .analysis import analysis_bytes
from .canonical import loads
from .charges import check_charges
from .dataset import RowForm, dataset_bytes, dataset_rows
from .files import Files
from .grants import Grant, check_authorization
from .harness_round import HarnessRound, harness_round_of
from .history import History, history_of
from .index import check_index
from .ledger import Refusal, Request, read_records
from .log import Statement, claims, read_log
from .merkle import sha256_digest
from .plan import REHEARSAL_PROVIDER, Plan, check_commitments, read_plan
from .refusal import Refused
from .release import check_approval, check_excerpts, check_sums
from .runs import check_runs
from .schedule import check_schedule
from .shapes import read
from .signatures import AUTHORIZATION_TYPE, MANIFEST_TYPE, KeyRing, payload_of
from .signed_states import check_signed_states

FULL = "`fairtrial check` does"
ALWAYS_LEFT = (
    "report.html: covered by the index, but not rendered again, here or by `fairtrial check`",
    "the text of excerpts: redacted with values that only the publisher knows, so that nobody can make it again",
    f"fields of the manifest that decide no number, such as titles, images and launch contracts: {FULL}",
    f"signatures of witnesses and time authorities: {FULL}, with --witness and --tsa",
    f"the wording of problems in settlements and reconciliations: {FULL} for reconciliations",
)


class Examination:
    """One bundle under examination. Each step leaves behind what the later ones need."""

    plan: Plan
    manifest: Dict[str, Any]
    harness_round: Optional[HarnessRound]
    log: List[Statement]
    history: History
    grants: Dict[str, Grant]  # by the digest of the payload

    def __init__(self, files: Files, ring: KeyRing) -> None:
        self.files, self.ring = files, ring
        self.digest = ""
        self.not_recomputed = list(ALWAYS_LEFT)

    def check_index(self) -> str:
        """(1) The signed list and the files are the same."""
        self.index = check_index(self.files, self.ring)
        return f"{len(self.index.files)} files, version {self.index.version}"

    def check_manifest(self) -> str:
        """(2) The manifest is the signed one, sound, and of this round."""
        data, envelope = self.files[names.MANIFEST], self.files[names.MANIFEST_ENVELOPE]
        if payload_of(envelope, MANIFEST_TYPE, self.ring, names.MANIFEST_ENVELOPE) != data:
            raise Refused(f"{names.MANIFEST} is not what was signed")
        self.manifest = loads(data, names.MANIFEST)
        self.plan = read_plan(self.manifest, names.MANIFEST)
        is_ours = self.plan.protocol == "harness-round"
        self.harness_round = harness_round_of(self.manifest, self.plan) if is_ours else None
        self.digest = sha256_digest(data)
        if (self.index.manifest_digest, self.index.round_id) != (self.digest, self.plan.round_id):
            raise Refused("the index is about another manifest or round")
        return f"round {self.plan.round_id}, {self.digest}"

    def check_commitments(self) -> str:
        """(3) Corpus root and rate card digest."""
        return check_commitments(self.plan, self.manifest)

    def check_statements(self) -> str:
        """(4) The log is whole, in order, typed, signed in time, and about this manifest and grants of this bundle."""
        self.log, leaves = read_log(self.files[names.STATEMENTS])
        payloads = [
            (name, payload_of(self.files[name], AUTHORIZATION_TYPE, self.ring, name))
            for name in names.grant_names(self.files)
        ]
        self.grants = {sha256_digest(data): read(Grant, loads(data, name), name) for name, data in payloads}
        self._check_round_statements()
        return check_signed_states(self.plan, self.files, self.ring, self.log, leaves)

    def _check_round_statements(self) -> None:
        about = (said.RoundFrozen, said.RoundAuthorized, said.RoundStarted)
        named = [statement for statement in self.log if isinstance(statement.claim, about)]
        if [each.sequence for each in named if isinstance(each.claim, said.RoundFrozen)] != [0]:
            raise Refused("the log does not begin by freezing its manifest, once")
        for statement in named:
            if statement.claim.manifest_digest != self.digest:
                raise Refused(f"statement {statement.sequence} is about another manifest")
        if named[0].claim.corpus_root != self.plan.corpus_root:
            raise Refused("statement 0 freezes another corpus root than the manifest's")
        of_round = (*about, said.RoundStopped, said.RoundSettled, said.RoundClosed)
        for statement in self.log:
            if isinstance(statement.claim, of_round) and statement.subject != self.plan.round_id:
                raise Refused(f"statement {statement.sequence} is about round {statement.subject[:60]!r}")
        starts = claims(self.log, said.RoundStarted)
        if not starts:
            raise Refused("the log never says that the round was started")
        for start in starts:
            if start.authorization_digest not in self.grants:
                raise Refused(f"epoch {start.epoch} started under a grant that is not in the bundle")

    def check_authorization(self) -> str:
        """(5) A signed grant covered every attempt."""
        return check_authorization(self.plan, self.digest, self.grants, self.log)

    def check_runs(self) -> str:
        """(6) Every logical run and every attempt."""
        self.history = history_of(self.log)
        return check_runs(self.plan, self.digest, self.history, self.log, self.files)

    def check_charges(self) -> str:
        """(7) Every charge."""
        ledger = read_records(Request, self.files[names.LEDGER], names.LEDGER)
        refusals = read_records(Refusal, self.files[names.REFUSALS], names.REFUSALS)
        dataset = read_records(RowForm, self.files[names.DATASET], names.DATASET)
        return check_charges(self.plan, self.history, ledger, refusals, dataset)

    def check_schedule(self) -> str:
        """(8) The schedule."""
        return check_schedule(self.plan)

    def check_results(self) -> str:
        """(9) Dataset and analysis, byte for byte."""
        rows = dataset_rows(self.plan, self.digest, self.history)
        if dataset_bytes(rows) != self.files[names.DATASET]:
            raise Refused(f"{names.DATASET} does not follow from the statements")
        if self.harness_round is None:
            what = f"{names.ANALYSIS}, {names.AGGREGATE} and the conditions of release of protocol {self.plan.protocol}"
            self.not_recomputed.append(f"{what}: {FULL}")
            return f"{len(rows)} rows rebuilt and equal byte for byte; the analysis was not recomputed here"
        if analysis_bytes(self.plan, self.harness_round, self.digest, rows) != self.files[names.ANALYSIS]:
            raise Refused(f"{names.ANALYSIS} does not follow from the dataset")
        return f"{len(rows)} rows rebuilt, analysis recomputed, both equal byte for byte"

    def check_kind(self) -> str:
        """(10) A scripted model makes a rehearsal, and a rehearsal is never shown as a measurement."""
        is_rehearsal = self.plan.kind == "rehearsal"
        if {lane.provider == REHEARSAL_PROVIDER for lane in self.plan.lanes} != {is_rehearsal}:
            raise Refused(f"the round calls itself {self.plan.kind}, but its lanes say otherwise")
        if is_rehearsal:
            if b"rehearsal" not in self.files[names.REPORT].lower():
                raise Refused(f"{names.REPORT} does not say that this is a rehearsal")
            return "rehearsal: scripted model, not a measurement; marked in manifest, dataset and report"
        for start in claims(self.log, said.RoundStarted):
            if start.isolation != "vm":
                raise Refused(f"epoch {start.epoch} ran in {start.isolation} isolation")
        return "measured: every epoch ran in disposable machines"

    def check_release(self) -> str:
        """(11) Excerpts, aggregate and sums are of these files, and the approval holds."""
        excerpts = check_excerpts(self.files, self.log)
        told = "aggregate not recomputed here"
        if self.harness_round is not None:
            sources = {
                "manifest": self.digest,
                "corpus_root": self.plan.corpus_root,
                "dataset": sha256_digest(self.files[names.DATASET]),
                "analysis": sha256_digest(self.files[names.ANALYSIS]),
            }
            analysis = loads(self.files[names.ANALYSIS], names.ANALYSIS)
            if aggregate_bytes(analysis, sources) != self.files[names.AGGREGATE]:
                raise Refused(f"{names.AGGREGATE} does not follow from the analysis")
            told = "aggregate recomputed"
        check_sums(self.files)
        return f"{excerpts} excerpts, {told}; {check_approval(self.plan, self.files, self.ring, self.log)}"


STEPS: Tuple[Tuple[str, Callable[[Examination], str]], ...] = (
    ("index", Examination.check_index),
    ("manifest", Examination.check_manifest),
    ("commitments", Examination.check_commitments),
    ("statements", Examination.check_statements),
    ("authorization", Examination.check_authorization),
    ("logical runs", Examination.check_runs),
    ("charges", Examination.check_charges),
    ("schedule", Examination.check_schedule),
    ("dataset and analysis", Examination.check_results),
    ("kind of round", Examination.check_kind),
    ("release", Examination.check_release),
)
