"""What the holder of the signing key may do to a bundle before he signs it anew: one defect each, with the step that
refuses it and what it says."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from typing import Any

from controller.domain import bodies
from controller.domain.ids import sha256_digest
from controller.domain.record import Record
from controller.domain.statement import Statement, StatementKind
from controller.evidence import bundle
from controller.evidence.canonical import dumps, lines, parse_lines
from controller.evidence.envelope import AUTHORIZATION_TYPE, MANIFEST_TYPE, sign
from controller.evidence.log import checkpoint_of, leaves, next_statement
from controller.evidence.note import sign_checkpoint
from tests.world.signer import FixedSigner

SIGNER = FixedSigner()
Files = dict[str, bytes]
Tamper = Callable[[Files], None]
K = StatementKind


def resigned(files: Files) -> Files:
    rest = {name: data for name, data in files.items() if name != bundle.INDEX}
    digest = sha256_digest(rest[bundle.MANIFEST])
    return bundle.build(rest, SIGNER, round_id="small", manifest_digest=digest)


def statements_of(files: Files) -> list[Statement]:
    return list(parse_lines(files[bundle.STATEMENTS], Statement, "s"))


def relog(files: Files, statements: Sequence[Statement]) -> None:
    """Chain the statements anew, and sign the log anew wherever it must be signed."""
    chain: list[Statement] = []
    for one in statements:
        previous = chain[-1] if chain else None
        chain.append(next_statement(previous, kind=one.kind, at=one.at, subject=one.subject, body=one.body))
    files[bundle.STATEMENTS] = lines(chain)
    for name in [name for name in files if bundle.checkpoint_size(name)]:
        del files[name]
    starts = [s.sequence + 1 for s in chain if s.kind is K.ROUND_STARTED]
    for size in (1, *starts, len(chain)):
        files[bundle.checkpoint_name(size)] = signed_note(chain[:size])
    files[bundle.CHECKPOINT] = signed_note(chain)


def signed_note(statements: Sequence[Statement]) -> bytes:
    return sign_checkpoint(checkpoint_of("small", leaves(statements)), SIGNER)


def drop(kind: StatementKind, position: int = 0, *, starting: str = "") -> Tamper:
    def tamper(files: Files) -> None:
        statements = statements_of(files)
        places = [i for i, s in enumerate(statements) if s.kind is kind and s.subject.startswith(starting)]
        del statements[places[position]]
        relog(files, statements)

    return tamper


def repeat(kind: StatementKind, position: int = 0) -> Tamper:
    def tamper(files: Files) -> None:
        statements = statements_of(files)
        found = [s for s in statements if s.kind is kind][position]
        relog(files, [*statements, found])

    return tamper


def alter(kind: StatementKind, position: int = 0, **changes: Any) -> Tamper:
    def tamper(files: Files) -> None:
        statements = statements_of(files)
        places = [i for i, s in enumerate(statements) if s.kind is kind]
        place = places[position]
        body = {**statements[place].body, **changes}
        statements[place] = statements[place].model_copy(update={"body": body})
        relog(files, statements)

    return tamper


def name_subject(kind: StatementKind, subject: str) -> Tamper:
    """The first statement of that kind is about something else."""

    def tamper(files: Files) -> None:
        statements = statements_of(files)
        place = next(i for i, s in enumerate(statements) if s.kind is kind)
        statements[place] = statements[place].model_copy(update={"subject": subject})
        relog(files, statements)

    return tamper


def normal_answer(position: int) -> Tamper:
    """Call an attempt that was retried a normal answer, in every statement about it."""

    def tamper(files: Files) -> None:
        alter(K.RESULT_ACKNOWLEDGED, position, end="normal")(files)
        alter(K.ATTEMPT_CLASSIFIED, position, end="normal", retryable=False, blame=None)(files)

    return tamper


def move_first(kind: StatementKind) -> Tamper:
    def tamper(files: Files) -> None:
        statements = statements_of(files)
        place = next(i for i, s in enumerate(statements) if s.kind is kind)
        relog(files, [statements[0], statements[place], *statements[1:place], *statements[place + 1 :]])

    return tamper


def insert(position: int, kind: StatementKind, subject: str, body: Record) -> Tamper:
    """One more statement at that place, counted from the end if negative."""

    def tamper(files: Files) -> None:
        statements = statements_of(files)
        added = next_statement(None, kind=kind, at=statements[position].at, subject=subject, body=body)
        statements.insert(position, added)
        relog(files, statements)

    return tamper


def stopped(rule: str) -> Tamper:
    return insert(-2, K.ROUND_STOPPED, "small", bodies.RoundStopped(rule=rule, detail="d"))


def declared(event: str) -> Tamper:
    return insert(-2, K.OPERATOR_ACT, "small", bodies.OperatorAct(act="stop", note="n", event=event))


def granted_last(files: Files) -> None:
    statements = statements_of(files)
    place = next(i for i, s in enumerate(statements) if s.kind is K.ROUND_AUTHORIZED)
    relog(files, [*statements[:place], *statements[place + 1 :], statements[place]])


def unsigned(position: int) -> Tamper:
    """Without one of the signed states, counted from the oldest."""

    def tamper(files: Files) -> None:
        del files[bundle.checkpoint_name(signed_sizes(files)[position])]

    return tamper


def signed_sizes(files: Files) -> list[int]:
    return sorted(size for name in files if (size := bundle.checkpoint_size(name)) is not None)


def forked(size: int) -> Tamper:
    """The key holder once signed another history of that size."""

    def tamper(files: Files) -> None:
        other = statements_of(files)[:size]
        other[-1] = other[-1].model_copy(update={"subject": "another"})
        files[bundle.checkpoint_name(size)] = signed_note(other)

    return tamper


def signed_as(size: int, named: int) -> Tamper:
    def tamper(files: Files) -> None:
        statements = statements_of(files)
        note = sign_checkpoint(checkpoint_of("small", [b"x"] * size), SIGNER)
        files[bundle.checkpoint_name(named)] = note if size > len(statements) else signed_note(statements[:size])

    return tamper


def disputed(subject: str, text: bytes, kept: bytes) -> Tamper:
    def tamper(files: Files) -> None:
        body = bodies.DisputeFiled(by="a rival", text_digest=sha256_digest(text))
        insert(len(statements_of(files)) - 1, K.DISPUTE_FILED, subject, body)(files)
        if kept:
            files[bundle.dispute_name(body.text_digest)] = kept

    return tamper


def row(name: str, position: int, **changes: Any) -> Tamper:
    def tamper(files: Files) -> None:
        rows = [json.loads(line) for line in files[name].splitlines()]
        rows[position].update(changes)
        files[name] = b"".join(dumps(row) + b"\n" for row in rows)

    return tamper


def cut_row(name: str, position: int) -> Tamper:
    def tamper(files: Files) -> None:
        rows = files[name].splitlines(keepends=True)
        del rows[position]
        files[name] = b"".join(rows)

    return tamper


def manifest(**changes: Any) -> Tamper:
    def tamper(files: Files) -> None:
        files[bundle.MANIFEST] = dumps({**json.loads(files[bundle.MANIFEST]), **changes})
        files[bundle.MANIFEST_ENVELOPE] = sign(MANIFEST_TYPE, files[bundle.MANIFEST], SIGNER)

    return tamper


def grant(**changes: Any) -> Tamper:
    """Another grant in place of the signed one; the log names it as if it had always been so."""

    def tamper(files: Files) -> None:
        payload = json.loads(base64.b64decode(json.loads(files[bundle.AUTHORIZATION])["payload"]))
        caps = {**payload["caps"], **changes.get("caps", {})}
        altered = dumps({**payload, **changes, "caps": caps})
        files[bundle.AUTHORIZATION] = sign(AUTHORIZATION_TYPE, altered, SIGNER)
        digest = sha256_digest(altered)
        alter(K.ROUND_AUTHORIZED, authorization_digest=digest)(files)
        alter(K.ROUND_STARTED, authorization_digest=digest)(files)

    return tamper


def put(name: str, data: bytes) -> Tamper:
    return lambda files: files.__setitem__(name, data)


def patch(data: bytes) -> Tamper:
    return lambda files: files.__setitem__(next(n for n in sorted(files) if n.startswith("patches/")), data)


def old_checkpoint(files: Files) -> None:
    note = files[bundle.CHECKPOINT]
    drop(StatementKind.ROUND_SETTLED)(files)
    files[bundle.CHECKPOINT] = note


def unlinked(files: Files) -> None:
    statements = statements_of(files)
    del statements[5]
    files[bundle.STATEMENTS] = lines(statements)


OTHER = "sha256:" + "0" * 64
TAMPERS: list[tuple[str, int, str, Tamper]] = [
    ("manifest not the signed one", 2, "not what was signed", lambda f: f.__setitem__("manifest.json", b"{}")),
    ("corpus root", 3, "corpus root", manifest(corpus_root=OTHER)),
    ("rate card digest", 3, "rate card digest", manifest(rate_card_digest=OTHER)),
    ("retail policy digest", 3, "retail policy digest", manifest(retail_policy_digest=OTHER)),
    ("network policy widened", 3, "network policy digest", manifest(network_policy="allow everything")),
    ("another plan under the same log", 4, "another manifest", manifest(title="Better title")),
    ("statement cut out", 4, "statement at position 5", unlinked),
    ("tail cut off", 4, "checkpoint signs", old_checkpoint),
    ("unknown field in a claim", 4, "statement 3 ", alter(K.ATTEMPT_INTENDED, favourite=True)),
    ("no freezing", 4, "does not begin by freezing", drop(K.ROUND_FROZEN)),
    ("frozen twice", 4, "does not begin by freezing", repeat(K.ROUND_FROZEN)),
    ("another corpus in the log", 4, "freezes another corpus root", alter(K.ROUND_FROZEN, corpus_root=OTHER)),
    ("closed another round", 4, "is about round 'large'", name_subject(K.ROUND_CLOSED, "large")),
    ("no start", 4, "never says that the round was started", drop(K.ROUND_STARTED)),
    ("not signed at freeze", 4, "not signed at freeze", unsigned(0)),
    ("not signed at the start", 4, "between the start in statement 2 and an attempt", unsigned(1)),
    ("not signed at the close", 4, "not signed after the round was closed", unsigned(2)),
    ("signed another beginning", 4, "the first 3 statements are not those that were signed", forked(3)),
    ("signed more than there is", 4, "999 statements were signed", signed_as(999, 999)),
    ("signed state under another name", 4, "checkpoints/4.txt signs 5 statements", signed_as(5, 4)),
    ("dispute without its text", 4, "the text of a dispute, is missing", disputed("small", b"We object.", b"")),
    ("dispute with another text", 4, "has other bytes", disputed("small", b"We object.", b"We agree.")),
    ("dispute about nothing", 4, "disputes 'first.alpha.r9'", disputed("first.alpha.r9", b"No.", b"No.")),
    ("text without a dispute", 4, "belongs to no dispute", put(bundle.dispute_name(OTHER), b"What?")),
    ("line of nobody", 4, "with one more line", put("witness/3-00000000.txt", b"")),
    ("stamp of nothing", 4, "stamps a state of the log that is not here", put("timestamps/7.tsr", b"")),
    ("started under another grant", 4, "not in the bundle", alter(K.ROUND_STARTED, authorization_digest=OTHER)),
    ("cap on attempts", 5, "attempts: 3 of 2", grant(caps={"attempts": 2})),
    ("grant beyond the envelope", 5, "frozen envelope: usd: 301 of 300", grant(caps={"usd": "301"})),
    ("cap on money", 5, "usd: ", grant(caps={"usd": "0.5"})),
    ("cap on requests", 5, "requests: ", grant(caps={"requests": 61})),
    ("cap on time", 5, "timeout_ms: ", grant(caps={"timeout_minutes": 30})),
    ("cap on logical runs", 5, "logical_runs: ", grant(caps={"logical_runs": 7})),
    ("never granted", 5, "no grant was in force", drop(K.ROUND_AUTHORIZED)),
    ("granted afterwards", 5, "no grant was in force", granted_last),
    ("granted something else", 5, "names a grant that is not", alter(K.ROUND_AUTHORIZED, authorization_digest=OTHER)),
    ("stopped for caps that were far", 5, "caps that were not reached", stopped("authorization")),
    ("expired grant", 5, "no grant was in force", grant(expires_at=1_790_000_003_000)),
    ("later grant", 5, "no grant was in force", grant(authorized_at=1_795_000_000_000)),
    ("grant for another plan", 5, "another manifest", grant(manifest_digest=OTHER)),
    ("score dropped", 6, "has no score", drop(K.RUN_SCORED, 1)),
    ("score twice", 6, "scored 2 times", repeat(K.RUN_SCORED)),
    ("failure called success", 6, "its attempts give 'failure'", alter(K.RUN_SCORED, 1, outcome="success")),
    ("invalid called success", 6, "its attempts give 'invalid'", alter(K.RUN_SCORED, 5, outcome="success")),
    ("classification dropped", 6, "classified 0 times", drop(K.ATTEMPT_CLASSIFIED)),
    ("settlement dropped", 6, "settled 0 times", drop(K.ATTEMPT_SETTLED)),
    ("result dropped", 6, "acknowledged 0 times", drop(K.RESULT_ACKNOWLEDGED)),
    ("destruction dropped", 6, "never proven gone", drop(K.SANDBOX_DESTROYED, starting="att-")),
    ("verifier left standing", 6, "never proven gone", drop(K.SANDBOX_DESTROYED, starting="ver-")),
    ("verdict dropped", 6, "classified otherwise", drop(K.VERDICT)),
    ("verdict turned", 6, "classified otherwise", alter(K.ATTEMPT_CLASSIFIED, 1, verified=True)),
    ("end turned", 6, "classified otherwise", alter(K.ATTEMPT_CLASSIFIED, 4, end="normal")),
    ("gate failed but passed", 6, "every gate", alter(K.VERDICT, verdict={
        "passed": True, "gates": [{"name": "g", "passed": False, "detail": ""}], "patch_digest": None,
        "changed_paths": [], "soundness": "black-box"})),
    ("a gate left out", 6, "every gate", alter(K.VERDICT, verdict={
        "passed": True, "gates": [{"name": "patch-not-empty", "passed": True, "detail": ""}], "patch_digest": None,
        "changed_paths": [], "soundness": "black-box"})),
    ("another to blame", 6, "witnessed: blame", alter(K.ATTEMPT_CLASSIFIED, 2, blame="harness")),
    ("judged elsewhere", 6, "image is not the frozen one", alter(K.VERDICT, verifier_image=OTHER)),
    ("attempt disowned", 6, "precedes the intent", drop(K.ATTEMPT_INTENDED, 2)),
    ("effect before intent", 6, "precedes the intent", move_first(K.SANDBOX_LEASED)),
    ("isolation breached", 6, "isolation was not proven", alter(K.ISOLATION_RECEIPT, mismatches=["route"])),
    ("a normal answer tried again", 6, "may not be retried", normal_answer(2)),
    ("a run nobody scheduled", 6, "never scheduled", alter(K.ATTEMPT_INTENDED, run="first.alpha.r9")),
    ("stopped for who is winning", 6, "no predeclared event", stopped("our arm is losing")),
    ("stopped for errors that were few", 6, "which the log does not show", stopped("error-share")),
    ("stopped for a model that answered", 6, "which the log does not show", stopped("observed-model")),
    ("stopped for accounts that settled", 6, "which the log does not show", stopped("reconciliation")),
    ("stopped for what persons declare", 6, "no predeclared event", stopped("sealed-task-exposure")),
    ("declared what the log shows", 6, "that persons declare", declared("error-share")),
    ("never closed", 6, "closed 0 times", drop(K.ROUND_CLOSED)),
    ("closed with another count", 6, "the scores give", alter(K.ROUND_CLOSED, success=8)),
    ("gone on after the end", 6, "after the round was closed", repeat(K.ATTEMPT_INTENDED)),
    ("patch exchanged", 6, "not the patch that was judged", patch(b"better")),
    ("patch from nowhere", 6, "belongs to no verdict", put("patches/att-0.patch", b"")),
    ("cheaper request", 7, "is charged 0.000001", row("ledger.jsonl", 0, usd="0.000001")),
    ("smaller usage", 7, "the rate card gives", row("ledger.jsonl", 0, usage={"tokens": {"in": 1}, "units": {}})),
    ("unpriced class", 7, "gives no price", row("ledger.jsonl", 0, usage={"tokens": {"read": 1}, "units": {}})),
    ("request dropped", 7, "is missing", cut_row("ledger.jsonl", 0)),
    ("last request dropped", 7, "but the ledger gives", cut_row("ledger.jsonl", -1)),
    ("request of a stranger", 7, "never intended", row("ledger.jsonl", 0, attempt_id="att-0")),
    ("request of another run", 7, "another logical run", row("ledger.jsonl", 0, logical_run_id="first.beta.r9")),
    ("asked off the lane", 7, "off its lane", row("ledger.jsonl", 0, model="cheaper")),
    ("answered off the lane", 7, "off its lane", row("ledger.jsonl", 0, observed_model="cheaper")),
    ("free without proof", 7, "without a proof", row("ledger.jsonl", 0, state="zero_bill", usd="0")),
    ("unknown with a price", 7, "is unknown", row("ledger.jsonl", 0, state="unknown")),
    ("settled without usage", 7, "without usage", row("ledger.jsonl", 0, usage=None)),
    ("refusal dropped", 7, "does not tell the 0 refusals", cut_row("refusals.jsonl", 0)),
    ("run scored lower", 7, "is scored at 0 USD", alter(K.RUN_SCORED, usd="0")),
    ("invalid for no reason", 7, "does not tell why it is invalid", drop(K.RUN_INVALIDATED)),
    ("invalid for another cause", 7, "not tell why", alter(K.RUN_INVALIDATED, reasons={"att-0": "request-in-flight"})),
    ("refusals untold", 7, "does not tell the 1 refusals", drop(K.REQUESTS_REFUSED)),
    ("refused for another reason", 7, "by their reasons", alter(K.REQUESTS_REFUSED, reasons={"impolite": 1})),
    ("an invalid run hidden", 7, "settlement calls [] invalid", alter(K.ROUND_SETTLED, invalid_runs=[])),
    ("attempt settled lower", 7, "was settled at 0", alter(K.ATTEMPT_SETTLED, usd="0")),
    ("round settled lower", 7, "the round is settled at 0", alter(K.ROUND_SETTLED, usd="0")),
    ("round never settled", 7, "never settled", drop(K.ROUND_SETTLED)),
    ("run cheaper in the dataset", 7, "not the sum", row("dataset.jsonl", 0, usd="0")),
    ("outcome turned in the dataset", 9, "dataset.jsonl does not follow", row("dataset.jsonl", 1, outcome="success")),
    ("row dropped from the dataset", 9, "dataset.jsonl does not follow", cut_row("dataset.jsonl", 1)),
    ("analysis exchanged", 9, "analysis.json does not follow", put("analysis.json", b"{}")),
    ("report without the mark", 10, "does not say", put("report.html", b"<h1>Results</h1>")),
]  # fmt: skip
