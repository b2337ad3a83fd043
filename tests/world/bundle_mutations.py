"""Random damage to good bundles, by outsiders and by the holder of the key.

`python -m tests.world.bundle_mutations 10000` says how many of so many were accepted, and which steps refused the rest.

Every mutation changes something that the check answers for, so none may be accepted. What it does not answer for, since
it is the word of the controller or of the publisher alone, stands in the constants below, and is left as
it is.
"""

from __future__ import annotations

import json
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from controller.conductor.recompute import RoundRecompute
from controller.domain.statement import Statement
from controller.evidence import bundle
from controller.evidence.canonical import dumps
from controller.evidence.check import examine
from controller.evidence.envelope import AUTHORIZATION_TYPE, INDEX_TYPE, MANIFEST_TYPE, sign
from controller.evidence.log import checkpoint_of
from controller.evidence.note import sign_checkpoint
from tests.world.bundle_corpus import FOLDER, laid, table
from tests.world.bundle_defects import RIVAL, padded, payload, signed_by
from tests.world.tampering import SIGNER, Files, K, relog, resigned, signed_note, statements_of

Place = tuple[str | int, ...]
Goods = Mapping[str, Files]
Mutator = Callable[[Random, Files, Goods], Files | None]  # None: it finds nothing to do there

LOG, LEDGER, EXCERPTS, DATASET = bundle.STATEMENTS, bundle.LEDGER, bundle.EXCERPTS, bundle.DATASET
# Fields of statements that nothing else in a bundle follows from, save `at`, which is free in all of them.
FREE_CLAIMS: Final[Mapping[K, frozenset[str]]] = {
    K.ROUND_STARTED: frozenset({"epoch", "pool"}),
    K.ATTEMPT_INTENDED: frozenset({"epoch"}),
    K.SANDBOX_LEASED: frozenset({"created_at", "expires_at", "generation"}),  # a later one may have been destroyed
    K.ISOLATION_RECEIPT: frozenset({"receipt_digest", "probes_refused", "mismatches"}),
    K.RESULT_ACKNOWLEDGED: frozenset({"missing", "reason"}),
    K.SANDBOX_DESTROYED: frozenset({"existed", "proof", "generation"}),
    K.VERDICT: frozenset({"gates", "output"}),  # names of gates in a failed verdict; the exit code is in an excerpt
    K.ATTEMPT_SETTLED: frozenset({"problems"}),
}
MAY_BE_MISSING: Final = frozenset({K.SANDBOX_LEASED, K.ISOLATION_RECEIPT})  # the latter of attempts without success
MAY_BE_TWICE: Final = MAY_BE_MISSING | {K.ROUND_AUTHORIZED, K.ROUND_STARTED, K.SANDBOX_DESTROYED, K.ROUND_SETTLED}
FREE_FIELDS: Final[Mapping[str, frozenset[str]]] = {
    LEDGER: frozenset({"accepted_at", "body_digest", "ended_at", "note", "request_id", "status"}),
    bundle.REFUSALS: frozenset({"at", "limit", "status"}),
    EXCERPTS: frozenset({"text", "is_truncated", "redactions"}),
    DATASET: frozenset(),
}
UNORDERED: Final = frozenset({LEDGER, bundle.REFUSALS})
JSON_LINES: Final = (LOG, *FREE_FIELDS)


# -- by anyone -------------------------------------------------------------------------------------------------------


def bit(chance: Random, files: Files, goods: Goods) -> Files:
    name, data = _any_file(chance, files)
    data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    return {**files, name: bytes(data)}


def truncated(chance: Random, files: Files, goods: Goods) -> Files:
    name, data = _any_file(chance, files)
    return {**files, name: bytes(data[: chance.randrange(len(data))])}


def byte_more_or_less(chance: Random, files: Files, goods: Goods) -> Files:
    name, data = _any_file(chance, files)
    place = chance.randrange(len(data))
    if chance.random() < 0.5:
        del data[place]
    else:
        data.insert(place, chance.randrange(256))
    return {**files, name: bytes(data)}


def file_gone(chance: Random, files: Files, goods: Goods) -> Files:
    name = chance.choice(sorted(files))
    return {key: data for key, data in files.items() if key != name}


def file_more(chance: Random, files: Files, goods: Goods) -> Files:
    number = chance.randrange(10**6)
    names = (
        f"patches/att-{number}.patch",
        f"checkpoints/{number + 1000}.txt",
        f"../{number}",
        f"authorization-{number}.x",
    )
    return {**files, chance.choice(names): b""}


def files_exchanged(chance: Random, files: Files, goods: Goods) -> Files | None:
    one, other = chance.sample(sorted(files), 2)
    if files[one] == files[other]:
        return None
    return {**files, one: files[other], other: files[one]}


def second_spelling(chance: Random, files: Files, goods: Goods) -> Files:
    found = dict(files)
    padded(bundle.INDEX)(found)
    return found


def file_of_another_round(chance: Random, files: Files, goods: Goods) -> Files | None:
    return _foreign(chance, files, goods)


# -- by the holder of the key, who signs sums and index anew ---------------------------------------------------------


def signed_file_of_another_round(chance: Random, files: Files, goods: Goods) -> Files | None:
    found = _foreign(chance, files, goods, spared=frozenset({bundle.INDEX, bundle.SUMS, bundle.REPORT}))
    return None if found is None else _anew(found)


def line_dropped(chance: Random, files: Files, goods: Goods) -> Files:
    name, rows = _any_lines(chance, files)
    del rows[chance.randrange(len(rows))]
    return _anew({**files, name: b"".join(rows)})


def line_doubled(chance: Random, files: Files, goods: Goods) -> Files:
    name, rows = _any_lines(chance, files)
    rows.insert(chance.randrange(len(rows) + 1), chance.choice(rows))
    return _anew({**files, name: b"".join(rows)})


def lines_exchanged(chance: Random, files: Files, goods: Goods) -> Files | None:
    name, rows = _any_lines(chance, files)
    if name in UNORDERED or len(rows) < 2:
        return None
    one, other = chance.sample(range(len(rows)), 2)
    rows[one], rows[other] = rows[other], rows[one]
    return _anew({**files, name: b"".join(rows)})


def line_edited(chance: Random, files: Files, goods: Goods) -> Files | None:
    name = chance.choice(sorted(FREE_FIELDS))
    rows = files[name].splitlines()
    if not rows:
        return None
    number = chance.randrange(len(rows))
    value = json.loads(rows[number])
    place = _place(chance, value, FREE_FIELDS[name])
    rows[number] = dumps(_edited(chance, value, place))
    return _anew({**files, name: b"".join(row + b"\n" for row in rows)})


def result_edited(chance: Random, files: Files, goods: Goods) -> Files:
    name = chance.choice((bundle.ANALYSIS, bundle.AGGREGATE))
    value = json.loads(files[name])
    return _anew({**files, name: dumps(_edited(chance, value, _place(chance, value, frozenset())))})


def signed_payload_edited(chance: Random, files: Files, goods: Goods) -> Files:
    """Manifest, grant or index with another value somewhere, signed."""
    name, kind = chance.choice(
        (
            (bundle.MANIFEST_ENVELOPE, MANIFEST_TYPE),
            (bundle.AUTHORIZATION, AUTHORIZATION_TYPE),
            (bundle.INDEX, INDEX_TYPE),
        )
    )
    value = json.loads(payload(files[name]))
    changed = dumps(_edited(chance, value, _place(chance, value, frozenset())))
    found = {**files, name: sign(kind, changed, SIGNER)}
    if name == bundle.MANIFEST_ENVELOPE:
        found[bundle.MANIFEST] = changed
    return found if name == bundle.INDEX else _anew(found)


def statement_edited(chance: Random, files: Files, goods: Goods) -> Files | None:
    """Another claim, chained and signed as if it had always been so."""
    statements = statements_of(files)
    number = chance.randrange(len(statements))
    chosen = statements[number]
    free = FREE_CLAIMS.get(chosen.kind, frozenset())
    places = [place for place in _places(chosen.body) if not free & set(place)]
    if not places:
        return None
    body = _edited(chance, dict(chosen.body), chance.choice(places))
    statements[number] = chosen.model_copy(update={"body": body})
    return _logged(files, statements)


def statement_dropped(chance: Random, files: Files, goods: Goods) -> Files | None:
    statements = statements_of(files)
    number = chance.randrange(len(statements))
    if statements[number].kind in MAY_BE_MISSING:
        return None
    del statements[number]
    return _logged(files, statements)


def statement_doubled(chance: Random, files: Files, goods: Goods) -> Files | None:
    statements = statements_of(files)
    number = chance.randrange(len(statements))
    if statements[number].kind in MAY_BE_TWICE:
        return None
    statements.insert(chance.randrange(number, len(statements) + 1), statements[number])
    return _logged(files, statements)


def effect_before_intent(chance: Random, files: Files, goods: Goods) -> Files | None:
    statements = statements_of(files)
    number = chance.randrange(len(statements))
    chosen = statements[number]
    if not chosen.subject.startswith(("att-", "ver-")) or chosen.kind is K.ATTEMPT_INTENDED:
        return None
    intent = next(s.sequence for s in statements if s.subject[4:] == chosen.subject[4:])
    del statements[number]
    statements.insert(chance.randrange(1, intent + 1), chosen)
    return _logged(files, statements)


def tail_cut(chance: Random, files: Files, goods: Goods) -> Files:
    """A shorter log, consistently signed."""
    statements = statements_of(files)
    return _logged(files, statements[: chance.randrange(3, len(statements))])


def old_checkpoint(chance: Random, files: Files, goods: Goods) -> Files:
    statements = statements_of(files)
    note = signed_note(statements[: chance.randrange(1, len(statements))])
    return _anew({**files, bundle.CHECKPOINT: note})


def another_history_signed(chance: Random, files: Files, goods: Goods) -> Files:
    """A signed state of the right size and another root."""
    name = chance.choice([name for name in sorted(files) if bundle.checkpoint_size(name)] + [bundle.CHECKPOINT])
    size = bundle.checkpoint_size(name) or len(statements_of(files))
    leaves = [chance.randbytes(8) for _ in range(size)]
    return _anew({**files, name: sign_checkpoint(checkpoint_of("small", leaves), SIGNER)})


def signed_second_spelling(chance: Random, files: Files, goods: Goods) -> Files:
    found = dict(files)
    padded(chance.choice((bundle.MANIFEST_ENVELOPE, bundle.AUTHORIZATION)))(found)
    return _anew(found)


def key_exchanged(chance: Random, files: Files, goods: Goods) -> Files:
    """One signature, or all, are another's."""
    name = chance.choice((bundle.MANIFEST_ENVELOPE, bundle.AUTHORIZATION, bundle.CHECKPOINT, bundle.INDEX, ""))
    rivals = signed_by(RIVAL, files)
    if name in ("", bundle.INDEX):
        return rivals if not name else {**files, name: rivals[name]}
    return _anew({**files, name: rivals[name]})


MUTATORS: Final[tuple[Mutator, ...]] = (
    bit,
    truncated,
    byte_more_or_less,
    file_gone,
    file_more,
    files_exchanged,
    second_spelling,
    file_of_another_round,
    signed_file_of_another_round,
    line_dropped,
    line_doubled,
    lines_exchanged,
    line_edited,
    result_edited,
    signed_payload_edited,
    statement_edited,
    statement_dropped,
    statement_doubled,
    effect_before_intent,
    tail_cut,
    old_checkpoint,
    another_history_signed,
    signed_second_spelling,
    key_exchanged,
)


def mutations(goods: Goods, count: int, *, seed: int) -> Iterator[tuple[str, str, Files]]:
    """So many mutations, every kind in turn: name of the good bundle, kind, files."""
    chance, made = Random(seed), 0
    while made < count:
        name = chance.choice(sorted(goods))
        mutator = MUTATORS[made % len(MUTATORS)]
        files = mutator(chance, goods[name], goods)
        if files is not None:
            made += 1
            yield name, mutator.__name__, files


@dataclass
class Survey:
    """What the check said of many mutations."""

    tried: int = 0
    accepted: list[str] = field(default_factory=list)
    steps: dict[str, Counter[str]] = field(
        default_factory=lambda: defaultdict(Counter)
    )  # by kind, how often which step


def good_bundles() -> dict[str, Files]:
    """Those of the conformance folder."""
    return {case.name: laid(FOLDER, case) for case in table(FOLDER) if case.name == case.over}


def survey(goods: Goods, count: int, *, seed: int) -> Survey:
    """Check so many mutations under the pinned key."""
    found = Survey()
    for name, kind, files in mutations(goods, count, seed=seed):
        report = examine(files, RoundRecompute(), keys=SIGNER.ring)
        refused = next((step for step in report.steps if step.passed is False), None)
        if report.passed or refused is None:
            found.accepted.append(f"{found.tried}: {kind} of {name}")
        else:
            found.steps[kind][f"{refused.number} {refused.name}"] += 1
        found.tried += 1
    return found


def _any_file(chance: Random, files: Files) -> tuple[str, bytearray]:
    name = chance.choice(sorted(name for name, data in files.items() if data))
    return name, bytearray(files[name])


def _any_lines(chance: Random, files: Files) -> tuple[str, list[bytes]]:
    name = chance.choice(sorted(name for name in JSON_LINES if files[name]))
    return name, files[name].splitlines(keepends=True)


def _foreign(chance: Random, files: Files, goods: Goods, spared: frozenset[str] = frozenset()) -> Files | None:
    other = goods[chance.choice(sorted(goods))]
    name = chance.choice(sorted((files.keys() & other.keys()) - spared))
    return None if files[name] == other[name] else {**files, name: other[name]}


def _anew(files: Files) -> Files:
    found = dict(files)
    found[bundle.SUMS] = bundle.sums(found)
    return resigned(found)


def _logged(files: Files, statements: list[Statement]) -> Files:
    found = dict(files)
    relog(found, statements)
    return _anew(found)


def _places(value: Any, before: Place = ()) -> Iterator[Place]:
    """Every value that is no object and no array, and every empty one."""
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from _places(item, (*before, key))
    elif isinstance(value, list) and value:
        for position, item in enumerate(value):
            yield from _places(item, (*before, position))
    else:
        yield before


def _place(chance: Random, value: Any, free: frozenset[str]) -> Place:
    return chance.choice([place for place in _places(value) if not free & set(place)])


def _edited(chance: Random, value: Any, place: Place) -> Any:
    """The value with another one at that place."""
    if not place:
        return _another(chance, value)
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[place[0]] = _edited(chance, copy[place[0]], place[1:])  # type: ignore[index]
    return copy


def _another(chance: Random, value: Any) -> Any:
    match value:
        case bool():
            return not value
        case int():
            return value + chance.choice((-1, 1, 2, 1000))
        case str() if value:
            position = chance.randrange(len(value))
            return value[:position] + ("1" if value[position] != "1" else "2") + value[position + 1 :]
        case dict() | list():
            return None
        case None:
            return 0
    return "x"


if __name__ == "__main__":
    result = survey(good_bundles(), int(sys.argv[1]), seed=int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    shown = {"tried": result.tried, "accepted": result.accepted, "steps": result.steps}
    sys.stdout.write(json.dumps(shown, indent=2) + "\n")
