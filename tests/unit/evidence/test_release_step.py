"""Step 11 refuses whatever does not follow from the evidence, one defect at a time."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from controller.conductor.recompute import RoundRecompute
from controller.domain.aggregate import Aggregate
from controller.domain.ids import sha256_digest
from controller.errors import NotCanonical
from controller.evidence import bundle
from controller.evidence.canonical import canonical, lines, parse, parse_lines
from controller.evidence.check import examine
from controller.evidence.excerpt import AttemptExcerpt
from tests.world.signer import FixedSigner

SIGNER = FixedSigner()
Files = dict[str, bytes]


def verdict(files: Files) -> tuple[bool | None, int, str]:
    """What the check says of these files under a new index and, unless they are the defect, new sums."""
    rest = {name: data for name, data in files.items() if name != bundle.INDEX}
    again = bundle.build(rest, SIGNER, round_id="small", manifest_digest=sha256_digest(rest[bundle.MANIFEST]))
    report = examine(again, RoundRecompute(), keys=SIGNER.ring)
    last = next((step for step in report.steps if step.passed is False), report.steps[-1])
    return report.passed, last.number, last.detail


def excerpts(files: Files, change: Callable[[list[AttemptExcerpt]], object]) -> None:
    found = list(parse_lines(files[bundle.EXCERPTS], AttemptExcerpt, "e"))
    change(found)
    files[bundle.EXCERPTS] = lines(found)


def put(found: list[AttemptExcerpt], **changes: object) -> None:
    found[0] = found[0].model_copy(update=changes)


def digest_of(field: str) -> Callable[[list[AttemptExcerpt]], None]:
    def change(found: list[AttemptExcerpt]) -> None:
        excerpt = getattr(found[0], field)
        put(found, **{field: excerpt.model_copy(update={"whole_digest": sha256_digest(b"another")})})

    return change


CHANGES: dict[str, tuple[Callable[[list[AttemptExcerpt]], object], str]] = {
    "one-dropped": (lambda found: found.pop(), "not one for each verdict"),
    "one-twice": (lambda found: found.append(found[0]), "not one for each verdict"),
    "other-order": (lambda found: found.reverse(), "not one for each verdict"),
    "exit-code": (lambda found: put(found, exit_code=7), "the exit code is not the verdict's"),
    "other-patch": (digest_of("patch"), "patch: the excerpt is of something else"),
    "no-patch": (lambda found: put(found, patch=None), "patch: the excerpt is of something else"),
    "other-output": (digest_of("verifier_output"), "verifier output: the excerpt is of something else"),
    "other-paths": (digest_of("changed"), "changed paths: the excerpt is of something else"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_an_excerpt_of_something_else_is_refused(good_bundle: Files, name: str) -> None:
    files, (change, detail) = dict(good_bundle), CHANGES[name]
    excerpts(files, change)
    files[bundle.SUMS] = bundle.sums(files)
    passed, number, told = verdict(files)
    assert (passed, number) == (False, 11)
    assert detail in told


@pytest.mark.parametrize("text", ["x" * 4097, "caf\u00e9", "\x1b[31m", "a\rb", "\x00"])
def test_an_excerpt_that_is_too_long_or_would_move_a_terminal_is_no_excerpt(good_bundle: Files, text: str) -> None:
    files = dict(good_bundle)
    excerpts(files, lambda found: put(found, changed=found[0].changed.model_copy(update={"text": text})))
    with pytest.raises(NotCanonical):
        parse_lines(files[bundle.EXCERPTS], AttemptExcerpt, "e")
    files[bundle.SUMS] = bundle.sums(files)
    assert verdict(files)[:2] == (False, 11)


def test_an_aggregate_that_does_not_follow_is_refused(good_bundle: Files) -> None:
    files = dict(good_bundle)
    found = parse(files[bundle.AGGREGATE], Aggregate)
    metrics = (found.metrics[0].model_copy(update={"value": "99"}), *found.metrics[1:])
    files[bundle.AGGREGATE] = canonical(found.model_copy(update={"metrics": metrics}))
    files[bundle.SUMS] = bundle.sums(files)
    assert verdict(files) == (False, 11, "aggregate.json does not follow from the analysis")


@pytest.mark.parametrize("change", [lambda sums: sums[:-1], lambda sums: b"", lambda sums: sums + sums[:66]])
def test_sums_that_differ_are_refused(good_bundle: Files, change: Callable[[bytes], bytes]) -> None:
    files = {**good_bundle, bundle.SUMS: change(good_bundle[bundle.SUMS])}
    assert verdict(files) == (False, 11, "SHA256SUMS does not list the files as they are")


def test_the_sums_are_what_sha256sum_reads(good_bundle: Files) -> None:
    rows = [row.split("  ") for row in good_bundle[bundle.SUMS].decode().splitlines()]
    assert {name for _, name in rows} == good_bundle.keys() - {bundle.SUMS, bundle.INDEX}
    assert all(f"sha256:{digest}" == sha256_digest(good_bundle[name]) for digest, name in rows)


@pytest.mark.parametrize(
    ("version", "supersedes", "correction"),
    [(1, sha256_digest(b""), None), (1, None, "why"), (2, None, "why"), (2, sha256_digest(b""), None), (2, None, None)],
)
def test_a_later_version_says_what_it_supersedes_and_why_and_the_first_does_not(
    good_bundle: Files, version: int, supersedes: str | None, correction: str | None
) -> None:
    rest = {name: data for name, data in good_bundle.items() if name != bundle.INDEX}
    with pytest.raises(ValueError, match="a version after the first supersedes one"):
        bundle.build(
            rest,
            SIGNER,
            round_id="small",
            manifest_digest=sha256_digest(b""),
            version=version,
            supersedes=supersedes,
            correction=correction,
        )
