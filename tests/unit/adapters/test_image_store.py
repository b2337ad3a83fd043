"""Images are found by name and by digest, and a digest covers every file."""

from __future__ import annotations

from pathlib import Path

import pytest

from controller.adapters.image_store import ImageManifest, ImageStore
from controller.errors import MissingImage

RECIPE = "sha256:" + "1" * 64


def write_image(root: Path, name: str, directory: str, content: str) -> ImageManifest:
    files = {"rootfs.qcow2": "sha256:" + content * 64}
    manifest = ImageManifest(name=name, recipe_digest=RECIPE, files=files, size_bytes=5)
    path = root / name / directory
    path.mkdir(parents=True)
    (path / "image.json").write_text(manifest.model_dump_json())
    (root / name / "current").unlink(missing_ok=True)
    (root / name / "current").symlink_to(directory)
    return manifest


def test_a_name_gives_the_newest_image_and_a_digest_any(tmp_path: Path) -> None:
    old = write_image(tmp_path, "vm-runner", "aa", "2")
    new = write_image(tmp_path, "vm-runner", "bb", "3")
    store = ImageStore(tmp_path)
    assert [ref.digest for ref in store.list()] == [new.digest()]
    assert store.by_digest(old.digest()).path == tmp_path / "vm-runner" / "aa"
    found = store.find("vm-runner")
    assert found is not None and (found.path.name, store.manifest(found)) == ("bb", new)


def test_what_was_never_baked_is_not_there(tmp_path: Path) -> None:
    store = ImageStore(tmp_path / "absent")
    assert (store.find("vm-runner"), store.list()) == (None, ())
    with pytest.raises(MissingImage, match="no image has the digest"):
        store.by_digest(RECIPE)


def test_the_digest_changes_with_the_name_the_recipe_and_any_file(tmp_path: Path) -> None:
    base = write_image(tmp_path, "vm-runner", "aa", "2")
    changes: list[dict[str, object]] = [
        {"name": "other"},
        {"recipe_digest": "sha256:" + "9" * 64},
        {"files": {"rootfs.qcow2": RECIPE}},
    ]
    digests = {base.model_copy(update=change).digest() for change in changes} | {base.digest()}
    assert len(digests) == 4
