"""The check against outsiders, who can change bytes, and against the key's holder, who can sign what he changed."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

from controller.conductor.recompute import RoundRecompute
from controller.domain import bodies
from controller.domain.ids import sha256_digest
from controller.domain.plan import LogicalRun, RoundManifest
from controller.domain.record import Record
from controller.domain.statement import Statement, StatementKind
from controller.errors import BundleRejected
from controller.evidence import bundle
from controller.evidence.canonical import dumps, lines, parse_lines
from controller.evidence.check import STEPS, check, choose_keys, examine
from controller.evidence.envelope import AUTHORIZATION_TYPE, MANIFEST_TYPE, sign
from controller.evidence.log import checkpoint_of, leaves, next_statement
from controller.evidence.note import sign_checkpoint
from tests.world.signer import FixedSigner

SIGNER = FixedSigner()
Files = dict[str, bytes]
Tamper = Callable[[Files], None]
K = StatementKind
MUTATIONS, MANY_MUTATIONS = 2_500, 20_000


def _failed_step(files: Files, recompute: RoundRecompute | None = None) -> tuple[int, str]:
    report = examine(files, recompute or RoundRecompute(), keys=SIGNER.ring)
    assert not report.passed
    return next((step.number, step.detail) for step in report.steps if step.passed is False)


def test_a_good_bundle_passes_every_step(good_bundle: Files) -> None:
    report = check(good_bundle, RoundRecompute(), keys=SIGNER.ring)
    assert report.passed
    assert report.kind == "rehearsal"
    assert [step.number for step in report.steps] == list(range(1, 12))
    assert all(step.passed and step.detail for step in report.steps)


def test_the_numbers_of_the_steps_are_those_of_the_prose() -> None:
    from controller.evidence import check as module

    text = module.__doc__ or ""
    assert all(f"{number:2}. " in text for number in range(1, len(STEPS) + 1))
    assert f"{len(STEPS) + 1:2}. " not in text
    guide = (Path(__file__).parents[3] / "docs" / "evidence.md").read_text().lower()
    for number, (name, _) in enumerate(STEPS, start=1):
        assert f"\n{number}. **{name}" in guide


def _accepted_mutations(files: Files, count: int, *, seed: int) -> list[tuple[int, str, int]]:
    """Change, drop, insert or cut at one random byte of one file after the other; returns what the check accepted."""
    chance, accepted, names = Random(seed), [], sorted(files)
    for number in range(count):
        name = names[number % len(names)]
        data = bytearray(files[name])
        place = chance.randrange(len(data))
        match chance.randrange(4):
            case 0:
                data[place] ^= 1 << chance.randrange(8)
            case 1:
                del data[place]
            case 2:
                data.insert(place, chance.randrange(256))
            case _:
                del data[place:]
        for keys in (SIGNER.ring, None) if number % 5 == 0 else (SIGNER.ring,):
            if examine({**files, name: bytes(data)}, RoundRecompute(), keys=keys).passed:
                accepted.append((number, name, place))
    return accepted


def test_every_mutation_of_a_byte_is_refused(good_bundle: Files) -> None:
    assert _accepted_mutations(good_bundle, MUTATIONS, seed=20261130) == []


@pytest.mark.slow
def test_every_one_of_many_mutations_is_refused(good_bundle: Files) -> None:
    assert _accepted_mutations(good_bundle, MANY_MUTATIONS, seed=1) == []


def test_every_bit_of_the_index_matters(good_bundle: Files) -> None:
    index = good_bundle[bundle.INDEX]
    chance = Random(7)
    for bit in chance.sample(range(len(index) * 8), 1_000):
        changed = bytearray(index)
        changed[bit // 8] ^= 1 << bit % 8
        assert not examine({**good_bundle, bundle.INDEX: bytes(changed)}, RoundRecompute(), keys=SIGNER.ring).passed


def test_missing_extra_and_exchanged_files_are_refused(good_bundle: Files) -> None:
    for name in good_bundle:
        rest = {key: data for key, data in good_bundle.items() if key != name}
        assert not examine(rest, RoundRecompute(), keys=SIGNER.ring).passed
        for other in good_bundle:
            if good_bundle[other] != good_bundle[name]:
                swapped = {**good_bundle, name: good_bundle[other], other: good_bundle[name]}
                assert not examine(swapped, RoundRecompute(), keys=SIGNER.ring).passed
    assert _failed_step({**good_bundle, "patches/att-0.patch": b""}) == (1, "patches/att-0.patch is not in the index")


def test_nothing_in_a_hostile_bundle_makes_the_check_raise() -> None:
    for files in ({}, {bundle.KEYS: b"{}"}, {bundle.KEYS: b"\xff", bundle.INDEX: b"["}):
        assert not examine(files, RoundRecompute()).passed
        assert not examine(files, RoundRecompute(), keys=SIGNER.ring).passed


def test_whose_key_it_was_is_said(good_bundle: Files) -> None:
    alone = examine(good_bundle, RoundRecompute())
    assert alone.passed
    assert alone.trust == "self-signed"
    assert "integrity only" in alone.trust_text
    with pytest.raises(BundleRejected, match=r"step 1 \(index\): .* not a trusted key"):
        check(good_bundle, RoundRecompute(), keys=FixedSigner("rival").ring)
    assert choose_keys(good_bundle, pinned=None, local=SIGNER.ring) == (SIGNER.ring, "publisher")
    assert choose_keys(good_bundle, pinned=None, local=FixedSigner("rival").ring) == (None, "self-signed")
    assert choose_keys({}, pinned=None, local=SIGNER.ring) == (None, "self-signed")
    pinned = FixedSigner("rival").ring
    assert choose_keys(good_bundle, pinned=pinned, local=SIGNER.ring) == (pinned, "pinned")


# From here on the one who tampers holds the signing key and signs everything anew.


def _resigned(files: Files) -> Files:
    rest = {name: data for name, data in files.items() if name != bundle.INDEX}
    digest = sha256_digest(rest[bundle.MANIFEST])
    return bundle.build(rest, SIGNER, round_id="small", manifest_digest=digest)


def _statements(files: Files) -> list[Statement]:
    return list(parse_lines(files[bundle.STATEMENTS], Statement, "s"))


def _relog(files: Files, statements: Sequence[Statement]) -> None:
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
        files[bundle.checkpoint_name(size)] = _note(chain[:size])
    files[bundle.CHECKPOINT] = _note(chain)


def _note(statements: Sequence[Statement]) -> bytes:
    return sign_checkpoint(checkpoint_of("small", leaves(statements)), SIGNER)


def _drop(kind: StatementKind, position: int = 0, *, starting: str = "") -> Tamper:
    def tamper(files: Files) -> None:
        statements = _statements(files)
        places = [i for i, s in enumerate(statements) if s.kind is kind and s.subject.startswith(starting)]
        del statements[places[position]]
        _relog(files, statements)

    return tamper


def _repeat(kind: StatementKind, position: int = 0) -> Tamper:
    def tamper(files: Files) -> None:
        statements = _statements(files)
        found = [s for s in statements if s.kind is kind][position]
        _relog(files, [*statements, found])

    return tamper


def _alter(kind: StatementKind, position: int = 0, **changes: Any) -> Tamper:
    def tamper(files: Files) -> None:
        statements = _statements(files)
        places = [i for i, s in enumerate(statements) if s.kind is kind]
        place = places[position]
        body = {**statements[place].body, **changes}
        statements[place] = statements[place].model_copy(update={"body": body})
        _relog(files, statements)

    return tamper


def _normal_answer(position: int) -> Tamper:
    """Call an attempt that was retried a normal answer, in every statement about it."""

    def tamper(files: Files) -> None:
        _alter(K.RESULT_ACKNOWLEDGED, position, end="normal")(files)
        _alter(K.ATTEMPT_CLASSIFIED, position, end="normal", retryable=False, blame=None)(files)

    return tamper


def _move_first(kind: StatementKind) -> Tamper:
    def tamper(files: Files) -> None:
        statements = _statements(files)
        place = next(i for i, s in enumerate(statements) if s.kind is kind)
        _relog(files, [statements[0], statements[place], *statements[1:place], *statements[place + 1 :]])

    return tamper


def _insert(position: int, kind: StatementKind, subject: str, body: Record) -> Tamper:
    """One more statement at that place, counted from the end if negative."""

    def tamper(files: Files) -> None:
        statements = _statements(files)
        added = next_statement(None, kind=kind, at=statements[position].at, subject=subject, body=body)
        statements.insert(position, added)
        _relog(files, statements)

    return tamper


def _stopped(rule: str) -> Tamper:
    return _insert(-2, K.ROUND_STOPPED, "small", bodies.RoundStopped(rule=rule, detail="d"))


def _declared(event: str) -> Tamper:
    return _insert(-2, K.OPERATOR_ACT, "small", bodies.OperatorAct(act="stop", note="n", event=event))


def _granted_last(files: Files) -> None:
    statements = _statements(files)
    place = next(i for i, s in enumerate(statements) if s.kind is K.ROUND_AUTHORIZED)
    _relog(files, [*statements[:place], *statements[place + 1 :], statements[place]])


def _unsigned(position: int) -> Tamper:
    """Without one of the signed states, counted from the oldest."""

    def tamper(files: Files) -> None:
        del files[bundle.checkpoint_name(_sizes(files)[position])]

    return tamper


def _sizes(files: Files) -> list[int]:
    return sorted(size for name in files if (size := bundle.checkpoint_size(name)) is not None)


def _forked(size: int) -> Tamper:
    """The key holder once signed another history of that size."""

    def tamper(files: Files) -> None:
        other = _statements(files)[:size]
        other[-1] = other[-1].model_copy(update={"subject": "another"})
        files[bundle.checkpoint_name(size)] = _note(other)

    return tamper


def _signed_as(size: int, named: int) -> Tamper:
    def tamper(files: Files) -> None:
        statements = _statements(files)
        note = sign_checkpoint(checkpoint_of("small", [b"x"] * size), SIGNER)
        files[bundle.checkpoint_name(named)] = note if size > len(statements) else _note(statements[:size])

    return tamper


def _disputed(subject: str, text: bytes, kept: bytes) -> Tamper:
    def tamper(files: Files) -> None:
        body = bodies.DisputeFiled(by="a rival", text_digest=sha256_digest(text))
        _insert(len(_statements(files)) - 1, K.DISPUTE_FILED, subject, body)(files)
        if kept:
            files[bundle.dispute_name(body.text_digest)] = kept

    return tamper


def _row(name: str, position: int, **changes: Any) -> Tamper:
    def tamper(files: Files) -> None:
        rows = [json.loads(line) for line in files[name].splitlines()]
        rows[position].update(changes)
        files[name] = b"".join(dumps(row) + b"\n" for row in rows)

    return tamper


def _cut_row(name: str, position: int) -> Tamper:
    def tamper(files: Files) -> None:
        rows = files[name].splitlines(keepends=True)
        del rows[position]
        files[name] = b"".join(rows)

    return tamper


def _manifest(**changes: Any) -> Tamper:
    def tamper(files: Files) -> None:
        files[bundle.MANIFEST] = dumps({**json.loads(files[bundle.MANIFEST]), **changes})
        files[bundle.MANIFEST_ENVELOPE] = sign(MANIFEST_TYPE, files[bundle.MANIFEST], SIGNER)

    return tamper


def _grant(**changes: Any) -> Tamper:
    """Another grant in place of the signed one; the log names it as if it had always been so."""

    def tamper(files: Files) -> None:
        import base64

        payload = json.loads(base64.b64decode(json.loads(files[bundle.AUTHORIZATION])["payload"]))
        payload["caps"].update(changes.pop("caps", {}))
        altered = dumps({**payload, **changes})
        files[bundle.AUTHORIZATION] = sign(AUTHORIZATION_TYPE, altered, SIGNER)
        digest = sha256_digest(altered)
        _alter(K.ROUND_AUTHORIZED, authorization_digest=digest)(files)
        _alter(K.ROUND_STARTED, authorization_digest=digest)(files)

    return tamper


def _set(name: str, data: bytes) -> Tamper:
    return lambda files: files.__setitem__(name, data)


def _patch(data: bytes) -> Tamper:
    return lambda files: files.__setitem__(next(n for n in sorted(files) if n.startswith("patches/")), data)


def _old_checkpoint(files: Files) -> None:
    note = files[bundle.CHECKPOINT]
    _drop(StatementKind.ROUND_SETTLED)(files)
    files[bundle.CHECKPOINT] = note


def _unlinked(files: Files) -> None:
    statements = _statements(files)
    del statements[5]
    files[bundle.STATEMENTS] = lines(statements)


OTHER = "sha256:" + "0" * 64
TAMPERS: list[tuple[str, int, str, Tamper]] = [
    ("manifest not the signed one", 2, "not what was signed", lambda f: f.__setitem__("manifest.json", b"{}")),
    ("corpus root", 3, "corpus root", _manifest(corpus_root=OTHER)),
    ("rate card digest", 3, "rate card digest", _manifest(rate_card_digest=OTHER)),
    ("retail policy digest", 3, "retail policy digest", _manifest(retail_policy_digest=OTHER)),
    ("network policy widened", 3, "network policy digest", _manifest(network_policy="allow everything")),
    ("another plan under the same log", 4, "another manifest", _manifest(title="Better title")),
    ("statement cut out", 4, "statement at position 5", _unlinked),
    ("tail cut off", 4, "checkpoint signs", _old_checkpoint),
    ("unknown field in a claim", 4, "statement 3 ", _alter(K.ATTEMPT_INTENDED, favourite=True)),
    ("no freezing", 4, "does not begin by freezing", _drop(K.ROUND_FROZEN)),
    ("frozen twice", 4, "does not begin by freezing", _repeat(K.ROUND_FROZEN)),
    ("no start", 4, "never says that the round was started", _drop(K.ROUND_STARTED)),
    ("not signed at freeze", 4, "not signed at freeze", _unsigned(0)),
    ("not signed at the start", 4, "between the start in statement 2 and an attempt", _unsigned(1)),
    ("not signed at the close", 4, "not signed after the round was closed", _unsigned(2)),
    ("signed another beginning", 4, "the first 3 statements are not those that were signed", _forked(3)),
    ("signed more than there is", 4, "999 statements were signed", _signed_as(999, 999)),
    ("signed state under another name", 4, "checkpoints/4.txt signs 5 statements", _signed_as(5, 4)),
    ("dispute without its text", 4, "the text of a dispute, is missing", _disputed("small", b"We object.", b"")),
    ("dispute with another text", 4, "has other bytes", _disputed("small", b"We object.", b"We agree.")),
    ("dispute about nothing", 4, "disputes 'first.alpha.r9'", _disputed("first.alpha.r9", b"No.", b"No.")),
    ("text without a dispute", 4, "belongs to no dispute", _set(bundle.dispute_name(OTHER), b"What?")),
    ("line of nobody", 4, "with one more line", _set("witness/3-00000000.txt", b"")),
    ("stamp of nothing", 4, "stamps a state of the log that is not here", _set("timestamps/7.tsr", b"")),
    ("started under another grant", 4, "not in the bundle", _alter(K.ROUND_STARTED, authorization_digest=OTHER)),
    ("cap on attempts", 5, "attempts: 3 of 2", _grant(caps={"attempts": 2})),
    ("grant beyond the envelope", 5, "frozen envelope: usd: 301 of 300", _grant(caps={"usd": "301"})),
    ("cap on money", 5, "usd: ", _grant(caps={"usd": "0.5"})),
    ("cap on requests", 5, "requests: ", _grant(caps={"requests": 61})),
    ("cap on time", 5, "timeout_ms: ", _grant(caps={"timeout_minutes": 30})),
    ("cap on logical runs", 5, "logical_runs: ", _grant(caps={"logical_runs": 7})),
    ("never granted", 5, "no grant was in force", _drop(K.ROUND_AUTHORIZED)),
    ("granted afterwards", 5, "no grant was in force", _granted_last),
    ("granted something else", 5, "names a grant that is not", _alter(K.ROUND_AUTHORIZED, authorization_digest=OTHER)),
    ("stopped for caps that were far", 5, "caps that were not reached", _stopped("authorization")),
    ("expired grant", 5, "no grant was in force", _grant(expires_at=1_790_000_003_000)),
    ("later grant", 5, "no grant was in force", _grant(authorized_at=1_795_000_000_000)),
    ("grant for another plan", 5, "another manifest", _grant(manifest_digest=OTHER)),
    ("score dropped", 6, "has no score", _drop(K.RUN_SCORED, 1)),
    ("score twice", 6, "scored 2 times", _repeat(K.RUN_SCORED)),
    ("failure called success", 6, "its attempts give 'failure'", _alter(K.RUN_SCORED, 1, outcome="success")),
    ("invalid called success", 6, "its attempts give 'invalid'", _alter(K.RUN_SCORED, 5, outcome="success")),
    ("classification dropped", 6, "classified 0 times", _drop(K.ATTEMPT_CLASSIFIED)),
    ("settlement dropped", 6, "settled 0 times", _drop(K.ATTEMPT_SETTLED)),
    ("result dropped", 6, "acknowledged 0 times", _drop(K.RESULT_ACKNOWLEDGED)),
    ("destruction dropped", 6, "never proven gone", _drop(K.SANDBOX_DESTROYED, starting="att-")),
    ("verifier left standing", 6, "never proven gone", _drop(K.SANDBOX_DESTROYED, starting="ver-")),
    ("verdict dropped", 6, "classified otherwise", _drop(K.VERDICT)),
    ("verdict turned", 6, "classified otherwise", _alter(K.ATTEMPT_CLASSIFIED, 1, verified=True)),
    ("end turned", 6, "classified otherwise", _alter(K.ATTEMPT_CLASSIFIED, 4, end="normal")),
    ("gate failed but passed", 6, "every gate", _alter(K.VERDICT, verdict={
        "passed": True, "gates": [{"name": "g", "passed": False, "detail": ""}], "patch_digest": None,
        "changed_paths": [], "soundness": "black-box"})),
    ("a gate left out", 6, "every gate", _alter(K.VERDICT, verdict={
        "passed": True, "gates": [{"name": "patch-not-empty", "passed": True, "detail": ""}], "patch_digest": None,
        "changed_paths": [], "soundness": "black-box"})),
    ("another to blame", 6, "witnessed: blame", _alter(K.ATTEMPT_CLASSIFIED, 2, blame="harness")),
    ("judged elsewhere", 6, "image is not the frozen one", _alter(K.VERDICT, verifier_image=OTHER)),
    ("attempt disowned", 6, "precedes the intent", _drop(K.ATTEMPT_INTENDED, 2)),
    ("effect before intent", 6, "precedes the intent", _move_first(K.SANDBOX_LEASED)),
    ("isolation breached", 6, "isolation was not proven", _alter(K.ISOLATION_RECEIPT, mismatches=["route"])),
    ("a normal answer tried again", 6, "may not be retried", _normal_answer(2)),
    ("a run nobody scheduled", 6, "never scheduled", _alter(K.ATTEMPT_INTENDED, run="first.alpha.r9")),
    ("stopped for who is winning", 6, "no predeclared event", _stopped("our arm is losing")),
    ("stopped for errors that were few", 6, "which the log does not show", _stopped("error-share")),
    ("stopped for a model that answered", 6, "which the log does not show", _stopped("observed-model")),
    ("stopped for accounts that settled", 6, "which the log does not show", _stopped("reconciliation")),
    ("stopped for what persons declare", 6, "no predeclared event", _stopped("sealed-task-exposure")),
    ("declared what the log shows", 6, "that persons declare", _declared("error-share")),
    ("never closed", 6, "closed 0 times", _drop(K.ROUND_CLOSED)),
    ("closed with another count", 6, "the scores give", _alter(K.ROUND_CLOSED, success=8)),
    ("gone on after the end", 6, "after the round was closed", _repeat(K.ATTEMPT_INTENDED)),
    ("patch exchanged", 6, "not the patch that was judged", _patch(b"better")),
    ("patch from nowhere", 6, "belongs to no verdict", _set("patches/att-0.patch", b"")),
    ("cheaper request", 7, "is charged 0.000001", _row("ledger.jsonl", 0, usd="0.000001")),
    ("smaller usage", 7, "the rate card gives", _row("ledger.jsonl", 0, usage={"tokens": {"in": 1}, "units": {}})),
    ("unpriced class", 7, "gives no price", _row("ledger.jsonl", 0, usage={"tokens": {"read": 1}, "units": {}})),
    ("request dropped", 7, "is missing", _cut_row("ledger.jsonl", 0)),
    ("last request dropped", 7, "but the ledger gives", _cut_row("ledger.jsonl", -1)),
    ("request of a stranger", 7, "never intended", _row("ledger.jsonl", 0, attempt_id="att-0")),
    ("request of another run", 7, "another logical run", _row("ledger.jsonl", 0, logical_run_id="first.beta.r9")),
    ("asked off the lane", 7, "off its lane", _row("ledger.jsonl", 0, model="cheaper")),
    ("answered off the lane", 7, "off its lane", _row("ledger.jsonl", 0, observed_model="cheaper")),
    ("free without proof", 7, "without a proof", _row("ledger.jsonl", 0, state="zero_bill", usd="0")),
    ("unknown with a price", 7, "is unknown", _row("ledger.jsonl", 0, state="unknown")),
    ("settled without usage", 7, "without usage", _row("ledger.jsonl", 0, usage=None)),
    ("refusal dropped", 7, "does not tell the 0 refusals", _cut_row("refusals.jsonl", 0)),
    ("run scored lower", 7, "is scored at 0 USD", _alter(K.RUN_SCORED, usd="0")),
    ("invalid for no reason", 7, "does not tell why it is invalid", _drop(K.RUN_INVALIDATED)),
    ("invalid for another cause", 7, "not tell why", _alter(K.RUN_INVALIDATED, reasons={"att-0": "request-in-flight"})),
    ("refusals untold", 7, "does not tell the 1 refusals", _drop(K.REQUESTS_REFUSED)),
    ("refused for another reason", 7, "by their reasons", _alter(K.REQUESTS_REFUSED, reasons={"impolite": 1})),
    ("an invalid run hidden", 7, "settlement calls [] invalid", _alter(K.ROUND_SETTLED, invalid_runs=[])),
    ("attempt settled lower", 7, "was settled at 0", _alter(K.ATTEMPT_SETTLED, usd="0")),
    ("round settled lower", 7, "the round is settled at 0", _alter(K.ROUND_SETTLED, usd="0")),
    ("round never settled", 7, "never settled", _drop(K.ROUND_SETTLED)),
    ("run cheaper in the dataset", 7, "not the sum", _row("dataset.jsonl", 0, usd="0")),
    ("outcome turned in the dataset", 9, "dataset.jsonl does not follow", _row("dataset.jsonl", 1, outcome="success")),
    ("row dropped from the dataset", 9, "dataset.jsonl does not follow", _cut_row("dataset.jsonl", 1)),
    ("analysis exchanged", 9, "analysis.json does not follow", _set("analysis.json", b"{}")),
    ("report without the mark", 10, "does not say", _set("report.html", b"<h1>Results</h1>")),
]  # fmt: skip


@pytest.mark.parametrize(("step", "finding", "tamper"), [t[1:] for t in TAMPERS], ids=[t[0] for t in TAMPERS])
def test_what_the_key_holder_signs_anew_is_still_refused(
    good_bundle: Files, step: int, finding: str, tamper: Tamper
) -> None:
    files = dict(good_bundle)
    tamper(files)
    number, detail = _failed_step(_resigned(files))
    assert finding in detail
    assert number == step


def test_another_schedule_than_the_seeds_is_refused(good_bundle: Files) -> None:
    class Otherwise(RoundRecompute):
        def schedule(self, manifest: RoundManifest) -> tuple[LogicalRun, ...]:
            return tuple(reversed(manifest.schedule))

    assert _failed_step(good_bundle, Otherwise()) == (8, "the schedule does not follow from the seed")


def test_a_bundle_built_twice_is_the_same_bytes(good_bundle: Files) -> None:
    assert _resigned(good_bundle) == good_bundle
    assert list(_resigned(good_bundle)) == sorted(good_bundle, key=str.encode)
