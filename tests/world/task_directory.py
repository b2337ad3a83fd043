"""A task as a directory, with its source in the cache already: no registry is asked."""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

from controller.adapters.git_patch import GitPatches
from tests.world.tasks import PYTHON_DRIVER, PYTHON_RIGHT, PYTHON_WRONG, file, sample_bundle


def archive(members: dict[str, bytes], *, edit: Callable[[tarfile.TarInfo], None] | None = None) -> bytes:
    """A release archive; `edit` may change each entry's header."""
    output = io.BytesIO()
    with tarfile.open(fileobj=output, mode="w:gz") as tar:
        for name, data in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            if edit:
                edit(entry)
            tar.addfile(entry, io.BytesIO(data) if entry.isreg() else None)
    return output.getvalue()


RELEASE: Final = archive({"ordinals-1/ordinals.py": PYTHON_RIGHT.encode(), "ordinals-1/manual/a.txt": b"long"})


def write_task(parent: Path, name: str = "ordinals", *, visibility: str = "public", licence: str | None = None) -> Path:
    """`parent/<name>`, with its source under `parent/sources`."""
    directory = parent / name
    (directory / "verifier").mkdir(parents=True)
    right, wrong = {"ordinals.py": file(PYTHON_RIGHT)}, {"ordinals.py": file(PYTHON_WRONG)}
    (directory / "bug.patch").write_bytes(GitPatches().make_patch(right, wrong).data)
    (directory / "gold.patch").write_bytes(GitPatches().make_patch(wrong, right).data)
    (directory / "prompt.md").write_text("Repair it.\n")
    (directory / "verifier" / "driver.py").write_bytes(PYTHON_DRIVER)
    (directory / "verifier" / "cases.json").write_bytes(sample_bundle("python").verifier["cases.json"])
    digest = hashlib.sha256(RELEASE).hexdigest()
    said = f'licence = "{licence}"\n' if licence else ""
    (directory / "task.toml").write_text(
        f"""schema = "fairtrial.task/1"
id = "{name}"
title = "Ordinals"
stratum = "sample"
cluster = "ordinals"
visibility = "{visibility}"
language = "python"
soundness = "black-box"
verify_seconds = 20
protected = ["tests/**"]
{said}[source]
kind = "pypi"
name = "ordinals"
version = "1"
file = "ordinals-1.tar.gz"
sha256 = "{digest}"
drop = ["manual/**"]
"""
    )
    cache = parent / "sources"
    cache.mkdir(exist_ok=True)
    (cache / hashlib.sha256(digest.encode()).hexdigest()).write_bytes(RELEASE)
    return directory
