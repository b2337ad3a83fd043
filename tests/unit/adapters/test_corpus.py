"""Task directories and their sources: every problem is named, nothing unproven gets in. No registry is asked."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import tarfile
from pathlib import Path

import pytest
from pydantic import ValidationError

from controller.adapters.archive_tree import read_archive
from controller.adapters.corpus_fs import load_task
from controller.adapters.strict_toml import strict_toml
from controller.adapters.task_sources import TaskSource, TaskSources
from controller.domain.tree import EXECUTABLE, REGULAR
from controller.errors import ImageRecipeFailed, InvalidTask
from controller.settings import read_settings
from controller.wiring.tasks import load_bundle
from tests.world.task_directory import RELEASE, archive, write_task
from tests.world.tasks import PYTHON_WRONG

CORPUS = Path(__file__).parents[3] / "corpus"


@pytest.fixture
def task(tmp_path: Path) -> Path:
    """A well-formed task directory whose source lies in the cache already."""
    return write_task(tmp_path)


def load(directory: Path) -> object:
    return load_task(directory, TaskSources(directory.parent / "sources"))


def test_a_task_is_loaded_with_its_trees(task: Path) -> None:
    bundle = load_task(task, TaskSources(task.parent / "sources"))
    assert {path: content.data.decode() for path, content in bundle.base.items()} == {"ordinals.py": PYTHON_WRONG}
    assert bundle.verifier.keys() == {"driver.py", "cases.json"}
    assert (bundle.entry.id, bundle.entry.language, bundle.rehearsal_json) == ("ordinals", "python", None)


def test_the_task_digest_covers_every_file(task: Path) -> None:
    sources = TaskSources(task.parent / "sources")
    before = load_task(task, sources).entry
    (task / "prompt.md").write_text("Repair it now.\n")
    after = load_task(task, sources).entry
    assert before.task_digest != after.task_digest
    assert before.base_digest == after.base_digest


def test_all_problems_are_told_at_once(task: Path) -> None:
    text = (task / "task.toml").read_text()
    text = text.replace('language = "python"', 'language = "perl"').replace("verify_seconds = 20", "verify_seconds = 0")
    (task / "task.toml").write_text(text.replace('id = "ordinals"', 'id = "Ordinals"\ncolour = "red"'))
    (task / "gold.patch").unlink()
    (task / "prompt.md").write_bytes(b"\xff")
    (task / "notes").write_text("")
    (task / "rehearsal.json").write_text("{}")
    with pytest.raises(InvalidTask) as caught:
        load(task)
    message = str(caught.value)
    for part in (
        "gold.patch: missing",
        "notes: unknown file",
        "prompt.md: not UTF-8",
        "task.toml: language: ",
        "task.toml: verify_seconds: ",
        "task.toml: id: ",
        "task.toml: colour: ",
        "rehearsal.json: variants: ",
    ):
        assert part in message


@pytest.mark.parametrize(
    ("old", "new", "part"),
    [
        ('"tests/**"', '"/tests"', "protected: '/tests': it is absolute"),
        ('"tests/**"', '"*.py"', "gold.patch changes protected paths: ordinals.py"),
        ('id = "ordinals"', 'id = "other"', "task.toml: id: is other, the directory is called ordinals"),
        ("sha256 =", "integrity =", "task.toml: source.integrity: "),
        ("[source]", "[source", "task.toml: (whole file): "),
        ('language = "python"', 'language = "node"', "driver.mjs: missing"),
        ('"manual/**"', '"ordinals.py"', "bug.patch: the patch does not apply cleanly"),
    ],
)
def test_a_problem_names_file_and_field(task: Path, old: str, new: str, part: str) -> None:
    text = (task / "task.toml").read_text()
    assert old in text
    (task / "task.toml").write_text(text.replace(old, new))
    with pytest.raises(InvalidTask) as caught:
        load(task)
    assert part in str(caught.value)


def test_links_in_a_task_directory_are_refused(task: Path) -> None:
    (task / "README.md").symlink_to("/etc/passwd")
    with pytest.raises(InvalidTask, match=r"README\.md: not a regular file"):
        load(task)


def test_a_cached_release_that_was_changed_is_not_used(task: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/none")
    monkeypatch.setenv("PIP_RETRIES", "0")
    for kept in (task.parent / "sources").iterdir():
        kept.write_bytes(RELEASE + b"x")
    with pytest.raises(ImageRecipeFailed, match="task ordinals: source pypi ordinals 1: could not be fetched"):
        load(task)


HOSTILE: dict[str, bytes] = {
    "no archive": b"x",
    "cut off": RELEASE[:40],
    "no tar": gzip.compress(b"x" * 2000),
    "parent": archive({"a/../../b": b""}),
    "absolute": archive({"/a/b": b""}),
    "git directory": archive({"a/.git/config": b""}),
    "two tops": archive({"a/x": b"", "b/y": b""}),
    "repeated": archive({"a/x": b"", "a//x": b""}),
    "case": archive({"a/x": b"", "a/X": b""}),
    "link": archive({"a/x": b""}, edit=lambda entry: setattr(entry, "type", tarfile.SYMTYPE)),
    "hard link": archive({"a/x": b""}, edit=lambda entry: setattr(entry, "type", tarfile.LNKTYPE)),
    "device": archive({"a/x": b""}, edit=lambda entry: setattr(entry, "type", tarfile.CHRTYPE)),
    "fifo": archive({"a/x": b""}, edit=lambda entry: setattr(entry, "type", tarfile.FIFOTYPE)),
    "bomb": gzip.compress(b"\0" * (33 * 2**20)),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_archive_is_refused(name: str) -> None:
    with pytest.raises(InvalidTask, match="some-1"):
        read_archive(HOSTILE[name], origin="some-1")


def test_an_archive_keeps_only_the_executable_bit() -> None:
    tree = read_archive(archive({"a/x": b"1"}, edit=lambda entry: setattr(entry, "mode", 0o6755)), origin="a")
    assert (tree["x"].mode, tree["x"].data) == (EXECUTABLE, b"1")
    assert read_archive(RELEASE, origin="a")["ordinals.py"].mode == REGULAR


def test_a_source_is_pinned_by_the_hash_of_its_registry() -> None:
    data = b"release"
    sha256, sha512 = (
        hashlib.sha256(data).hexdigest(),
        f"sha512-{base64.b64encode(hashlib.sha512(data).digest()).decode()}",
    )
    assert TaskSource(kind="pypi", name="a", version="1", file="a-1.tar.gz", sha256=sha256).is_matched_by(data)
    npm = TaskSource(kind="npm", name="@a/b", version="1.0.0", file="a-b-1.0.0.tgz", integrity=sha512)
    assert npm.is_matched_by(data)
    assert not npm.is_matched_by(data + b"x")
    with pytest.raises(ValidationError, match="pinned by `sha256` alone"):
        TaskSource(kind="pypi", name="a", version="1", file="a-1.tar.gz", integrity=sha512)
    for name in ("-r requirements.txt", "a b", "../a", "git+x"):
        with pytest.raises(ValidationError):
            TaskSource(kind="pypi", name=name, version="1", file="a-1.tar.gz", sha256=sha256)


@pytest.mark.parametrize(
    "directory", sorted(path for path in CORPUS.iterdir() if path.is_dir()), ids=lambda path: path.name
)
def test_a_starter_task_is_worth_running(directory: Path) -> None:
    """At least fifteen cases with distinct ids, a prompt that gives no file away, and both outcomes to rehearse."""
    cases = json.loads((directory / "verifier" / "cases.json").read_text())["cases"]
    assert len({case["id"] for case in cases}) == len(cases) >= 15
    changed = {
        line.split(" b/", 1)[1]
        for line in (directory / "gold.patch").read_text().splitlines()
        if line.startswith("diff --git")
    }
    prompt = (directory / "prompt.md").read_text()
    assert len(changed) == 1
    assert not any(path in prompt for path in changed - {"index.js"})
    variants = json.loads((directory / "rehearsal.json").read_text())["variants"]
    assert {"pass", "fail"} <= variants.keys()


@pytest.mark.parametrize(
    "text", ["a = " + "[" * 9000, "a." * 4000 + "b = 1", "# " + "x" * 20_000, "a = {" + "b={" * 4000]
)
def test_toml_that_would_exhaust_the_parser_is_refused_at_once(text: str) -> None:
    with pytest.raises(ValueError, match=r"nested|larger|dots"):
        strict_toml(text.encode())


@pytest.mark.parametrize(
    "text", ["", "NaN", "[" * 50_000, '{"cases": []}', '{"cases": [{"id": "a"}]}', '{"cases": 1}', "\xff"]
)
def test_hidden_cases_that_no_judge_can_read_are_refused_before_a_machine_is_leased(
    text: str, task: Path, tmp_path: Path
) -> None:
    (task / "verifier" / "cases.json").write_bytes(text.encode("latin-1"))
    chosen = read_settings({"FAIRTRIAL_STATE_DIR": str(tmp_path)})
    with pytest.raises(InvalidTask, match=r"verifier/cases\.json"):
        load_bundle(chosen, task)
