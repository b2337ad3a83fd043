"""Sealed content: who may open what, what is published of it, and that nothing passes for anything else."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Callable

import pytest
from pydantic import ValidationError

from controller.domain.plan import TaskEntry
from controller.domain.sealed import PARTS, Part, RecipientKey, SealedTask
from controller.domain.task import TaskBundle
from controller.domain.tree import TreeFile, tree_digest
from controller.errors import BundleRejected, FairtrialError, InvalidInput, SealedKeyMissing
from controller.evidence.canonical import canonical
from controller.evidence.corpus import commitment, corpus_root, leaf_hash
from controller.evidence.sealing import (
    directory_of,
    open_curator,
    open_runner,
    open_verifier,
    opening_of,
    opening_of_content,
    seal,
)
from controller.ports.opener import Opener
from tests.world.recorded_round import inputs
from tests.world.sealed import (
    CURATOR,
    OTHERS,
    RECIPIENTS,
    RUNNER,
    VERIFIER,
    LabelledEntropy,
    LabelledOpener,
    hidden_bundle,
    sealed_task,
)

DIGESTS = ("task_digest", "prompt_digest", "base_digest", "verifier_digest", "gold_digest")


def open_all(task: SealedTask, parts: dict[Part, bytes], openers: dict[Part, Opener] | None = None) -> TaskBundle:
    """Open every part, by default each with its own key."""
    keys = openers or {"runner": RUNNER, "verifier": VERIFIER, "curator": CURATOR}
    open_curator(task, parts["curator"], keys["curator"])
    return open_verifier(task, open_runner(task, parts["runner"], keys["runner"]), parts["verifier"], keys["verifier"])


def test_what_was_sealed_is_opened_by_each_key_and_by_the_curator() -> None:
    task, parts = sealed_task()
    original = hidden_bundle()
    for openers in (None, dict.fromkeys(PARTS, CURATOR)):
        opened = open_all(task, parts, openers)  # type: ignore[arg-type]
        assert opened == original.model_copy(update={"entry": task.entry})
    rest = open_curator(task, parts["curator"], CURATOR)
    assert rest.files == OTHERS
    assert directory_of(original, rest.files).keys() == {
        "README.md", "bug.patch", "gold.patch", "prompt.md", "task.toml", "verifier/cases.json", "verifier/driver.py",
    }  # fmt: skip


def test_the_commitment_is_the_salted_leaf_over_id_and_digests() -> None:
    task, parts = sealed_task()
    salt = bytes.fromhex(open_curator(task, parts["curator"], CURATOR).salt_hex)
    assert len(salt) == 32
    stands_for = {"id": "hidden", **{name: getattr(hidden_bundle().entry, name) for name in DIGESTS}}
    text = json.dumps(stands_for, sort_keys=True, separators=(",", ":")).encode()
    expected = hashlib.sha256(b"\x00" + salt + text).hexdigest()
    assert task.commitment == f"sha256:{expected}"
    assert task.commitment == commitment(opening_of_content(hidden_bundle(), OTHERS), salt)


def test_the_root_covers_public_and_sealed_tasks_and_is_recomputed_without_salts() -> None:
    public = inputs().tasks  # first and second
    task, _ = sealed_task()
    leaf = json.dumps({"id": "first", "task_digest": public[0].task_digest}, separators=(",", ":")).encode()
    second = json.dumps({"id": "second", "task_digest": public[1].task_digest}, separators=(",", ":")).encode()

    def node(left: bytes, right: bytes) -> bytes:
        return hashlib.sha256(b"\x01" + left + right).digest()

    hidden = bytes.fromhex(task.commitment.removeprefix("sha256:"))
    first_leaf, second_leaf = (hashlib.sha256(b"\x00" + data).digest() for data in (leaf, second))
    expected = node(node(first_leaf, hidden), second_leaf)  # in byte order: first, hidden, second
    assert corpus_root((*public, task.entry)) == f"sha256:{expected.hex()}"
    assert leaf_hash(task.entry) == hidden


def test_nothing_that_is_published_depends_on_the_content_alone() -> None:
    """Equal content sealed twice has nothing in common but the metadata, so no guess can be tried."""
    one, two = sealed_task(label="one"), sealed_task(label="two")
    texts = [json.loads(canonical(task)) for task, _ in (one, two)]
    assert one[0].commitment != two[0].commitment
    for name in DIGESTS:
        assert getattr(one[0].entry, name) is None
    for text in texts:
        for kept in ("schema_version", "is_rehearsable"):
            text.pop(kept)
        text["entry"] = text["entry"]["sealed"]
    assert not set(_leaves(texts[0])) & set(_leaves(texts[1])) - {key.id for key in RECIPIENTS}
    known = {getattr(hidden_bundle().entry, name) for name in DIGESTS}
    assert not known & set(_leaves(texts[0]))


def _leaves(value: object) -> list[str]:
    if isinstance(value, dict):
        return [leaf for item in value.values() for leaf in _leaves(item)]
    if isinstance(value, list):
        return [leaf for item in value for leaf in _leaves(item)]
    return [str(value)]


OPEN: dict[Part, Callable[[SealedTask, bytes, Opener], object]] = {
    "runner": open_runner,
    "verifier": lambda task, data, opener: open_verifier(
        task, open_runner(task, sealed_task()[1]["runner"], RUNNER), data, opener
    ),
    "curator": open_curator,
}


@pytest.mark.parametrize(
    ("part", "opener"),
    [
        ("runner", VERIFIER),
        ("verifier", RUNNER),
        ("curator", RUNNER),
        ("curator", VERIFIER),
        *((part, LabelledOpener(part, "stranger")) for part in PARTS),
    ],
    ids=lambda value: value if isinstance(value, str) else value.key.id[7:13],
)
def test_a_key_opens_its_own_part_and_no_other(part: Part, opener: LabelledOpener) -> None:
    task, parts = sealed_task()
    with pytest.raises(SealedKeyMissing, match=f"its {part} part is not sealed for x25519:"):
        OPEN[part](task, parts[part], opener)


def _naming(task: SealedTask, part: Part, digest: str) -> SealedTask:
    """The task by somebody who can write store and manifest: it names another ciphertext."""
    assert task.entry.sealed is not None
    if part == "curator":
        return task.model_copy(update={"curator_digest": digest})
    content = task.entry.sealed.model_copy(update={f"{part}_digest": digest})
    return task.model_copy(update={"entry": task.entry.model_copy(update={"sealed": content})})


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("source", ["another task", "the same task sealed again"])
def test_a_ciphertext_of_something_else_is_refused_at_every_depth_of_the_exchange(part: Part, source: str) -> None:
    task, _ = sealed_task()
    other, other_parts = sealed_task("other") if source == "another task" else sealed_task(label="again")
    openers: dict[Part, Opener] = {"runner": RUNNER, "verifier": VERIFIER, "curator": CURATOR}
    with pytest.raises(BundleRejected, match="not the one that was sealed"):
        OPEN[part](task, other_parts[part], openers[part])
    exchanged = _naming(task, part, other.ciphertext_digest(part))
    with pytest.raises(BundleRejected, match="does not open"):
        OPEN[part](exchanged, other_parts[part], openers[part])
    keys = {**task.keys, part: other.keys[part]}  # its wrapped keys are exchanged as well
    with pytest.raises(BundleRejected, match="does not open"):
        OPEN[part](exchanged.model_copy(update={"keys": keys}), other_parts[part], openers[part])


@pytest.mark.parametrize(("part", "taken"), list(itertools.permutations(PARTS, 2)))
def test_parts_of_one_task_do_not_pass_for_one_another(part: Part, taken: Part) -> None:
    """The curator can open all three, so only what is authenticated beside the content tells them apart."""
    task, parts = sealed_task()
    keys = {**task.keys, part: task.keys[taken]}
    changed = _naming(task, part, task.ciphertext_digest(taken)).model_copy(update={"keys": keys})
    with pytest.raises(BundleRejected, match="does not open"):
        OPEN[part](changed, parts[taken], CURATOR)


@pytest.mark.parametrize("cut", [0, 1, 15, 16, -1, -16])
@pytest.mark.parametrize("part", PARTS)
def test_a_truncated_part_is_refused(part: Part, cut: int) -> None:
    task, parts = sealed_task()
    with pytest.raises(BundleRejected):
        open_all(task, {**parts, part: parts[part][:cut]})


@pytest.mark.parametrize(
    ("recipients", "said"),
    [
        ((), "no key for runner, verifier, curator"),
        ((RUNNER.key, CURATOR.key), "no key for verifier"),
        ((RUNNER.key, VERIFIER.key), "no key for curator"),
        ((*RECIPIENTS, RUNNER.key), "a key is given twice"),
        ((RUNNER.key, LabelledOpener("verifier", "runner").key, CURATOR.key), "a key is given twice"),
        ((RUNNER.key, RecipientKey.of("verifier", bytes(32)), CURATOR.key), "small order"),
        ((RUNNER.key, RecipientKey.of("verifier", bytes([1]) + bytes(31)), CURATOR.key), "small order"),
    ],
    ids=["none", "no verifier", "no curator", "repeated", "one key for two parts", "zero key", "key of order one"],
)
def test_recipients_that_would_not_separate_access_are_refused(recipients: tuple[RecipientKey, ...], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        seal(hidden_bundle(), OTHERS, recipients, LabelledEntropy())


def test_a_recipients_id_can_not_be_lent_to_another_key() -> None:
    text = RUNNER.key.model_copy(update={"public_hex": VERIFIER.key.public_hex}).model_dump_json()
    with pytest.raises(ValidationError, match="id is not the SHA-256 of the key"):
        RecipientKey.model_validate_json(text)


def test_what_is_sealed_already_is_not_sealed_again() -> None:
    with pytest.raises(InvalidInput, match="sealed already"):
        opening_of(sealed_task()[0].entry)


@pytest.mark.parametrize("name", ["../x", "/x", "a/../../x", ".git/hooks/x", "a\\b", ""])
def test_names_that_would_leave_their_directory_are_refused_even_from_a_curator(name: str) -> None:
    bundle = hidden_bundle()
    base = {**bundle.base, name: TreeFile(mode="100644", data=b"")}
    hostile: list[tuple[TaskBundle, dict[str, bytes]]] = [
        (bundle.model_copy(update={"base": base}), OTHERS),
        (bundle.model_copy(update={"verifier": {**bundle.verifier, name: b""}}), OTHERS),
        (bundle, {**OTHERS, name: b""}),
    ]
    for content, others in hostile:
        task, parts = seal(content, others, RECIPIENTS, LabelledEntropy())
        with pytest.raises(BundleRejected, match="task hidden: "):
            open_all(task, parts)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"task_digest": None}, "has all its digests"),
        ({"sealed": sealed_task()[0].entry.sealed}, "has no digest of its content"),
        (
            {**dict.fromkeys(DIGESTS), "sealed": sealed_task()[0].entry.sealed, "visibility": "public"},
            "a public task is not sealed",
        ),
    ],
)
def test_a_task_is_named_by_its_digests_or_by_its_commitment_and_never_by_both(
    changes: dict[str, object], said: str
) -> None:
    entry = hidden_bundle().entry
    with pytest.raises(ValidationError, match=said):
        TaskEntry.model_validate({**dict(entry), **changes})


def test_every_refusal_says_what_to_do_next() -> None:
    task, parts = sealed_task()
    for error in (
        _error(lambda: open_runner(task, b"", RUNNER)),
        _error(lambda: open_runner(task, parts["runner"], VERIFIER)),
    ):
        assert "curators" in error.remedy
    assert _error(lambda: open_runner(task, parts["runner"], VERIFIER)).exit_code == 84


def _error(call: Callable[[], object]) -> FairtrialError:
    with pytest.raises(FairtrialError) as caught:
        call()
    return caught.value


def test_the_digest_of_a_tree_follows_from_the_digests_of_its_files() -> None:
    opening = opening_of_content(hidden_bundle(), OTHERS)
    assert opening.base_digest == tree_digest(hidden_bundle().base) == hidden_bundle().entry.base_digest
