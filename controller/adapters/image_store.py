"""Baked images on disk: found by name or digest, built from the recipes when these changed."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final

from controller.adapters import image_bake, image_harness
from controller.adapters.files_durable import file_digest
from controller.domain.ids import Digest, sha256_digest
from controller.domain.record import Record
from controller.errors import MissingImage
from controller.ports.pool import ImageRef

Progress = Callable[[str, int, int], None]
RUNNER, VERIFIER = "vm-runner", "vm-verifier"
MANIFEST: Final = "image.json"
PACKAGE_ROOT: Final = Path(__file__).resolve().parents[1]
RECIPES: Final = PACKAGE_ROOT.parent / "images"
_NO_RECIPE: Final = sha256_digest(b"")


class ImageManifest(Record):
    """What a baked image is made of. `files` maps each file's name to its SHA-256 digest."""

    name: str
    recipe_digest: Digest
    files: dict[str, Digest]
    size_bytes: int  # of the files on disk

    def digest(self) -> Digest:
        """The image's identity: its recipe and every byte that was produced."""
        canonical = json.dumps([self.name, self.recipe_digest, sorted(self.files.items())], separators=(",", ":"))
        return sha256_digest(canonical.encode())


class Harness(Record):
    """A harness root file system that was built, and what it was built from."""

    recipe_digest: Digest
    tar: str
    tar_digest: Digest


class ImageStore:
    """Images under one directory: `<name>/<recipe>/`, and `<name>/current` names the newest."""

    def __init__(self, root: Path, recipes: Path = RECIPES) -> None:
        self._root = root.absolute()
        self._recipes = recipes

    @property
    def log(self) -> Path:
        """Where the last bake wrote its output."""
        return self._root / "bake.log"

    def find(self, name: str) -> ImageRef | None:
        """The newest image of that name, or None when it was never baked."""
        directory = self._root / name / "current"
        return self._ref(directory.resolve()) if (directory / MANIFEST).is_file() else None

    def by_digest(self, digest: Digest) -> ImageRef:
        """The image with that digest, newest or not. Raises MissingImage."""
        for manifest in sorted(self._root.glob(f"*/*/{MANIFEST}")):
            if manifest.parent.name != "current" and (ref := self._ref(manifest.parent)).digest == digest:
                return ref
        raise MissingImage(f"{self._root}: no image has the digest {digest}")

    def list(self) -> tuple[ImageRef, ...]:
        """The newest image of every name."""
        names = sorted(path.name for path in self._root.glob("*") if (path / "current").exists())
        return tuple(ref for name in names if (ref := self.find(name)) is not None)

    def digests(self) -> dict[str, Digest]:
        """What a round freezes: every machine image by its digest, every harness by that of its root file system.

        A harness whose recipe changed since it was baked is left out, like one that never was.
        """
        found = {image.name: image.digest for image in self.list()}
        for name in self.harness_names():
            known = self._known_harness(name)
            if known is not None:
                found[name] = known.tar_digest
        return found

    def manifest(self, ref: ImageRef) -> ImageManifest:
        """The recipe digest, files and size of an image."""
        return ImageManifest.model_validate_json((ref.path / MANIFEST).read_bytes())

    def harness_names(self) -> tuple[str, ...]:
        """The harnesses that have a recipe, in byte order."""
        return image_harness.harness_names(self._recipes / "recipes")

    def harness_rootfs(self, name: str) -> Path:
        """The root file system of a harness as it was baked last. Raises MissingImage."""
        tar = self._harness_work() / name / "rootfs.tar"
        if not tar.is_file():
            raise MissingImage(f"{tar}: the harness image {name} is not baked")
        return tar

    def _harness_work(self) -> Path:
        toolbox = self._recipes / "recipes" / "toolbox.toml"
        return self._root / "harness" / _short(_files_digest([toolbox]))

    def build(self, progress: Progress = lambda step, done, total: None) -> tuple[ImageRef, ...]:
        """Bake what the recipes ask for and is not there yet; returns the images of both roles.

        Raises ImageRecipeFailed naming the log, MissingProgram or MachineUnsupported.
        """
        self._root.mkdir(parents=True, exist_ok=True)
        with _locked(self._root / "build.lock"):
            self.log.write_bytes(b"")
            harnesses = self.harness_names()
            total = len(harnesses) + 3
            progress("machine: root file system", 0, total)
            base = self._build_base()
            probe = base / image_bake.PROBE
            tars = {"probe": Harness(recipe_digest=_NO_RECIPE, tar=str(probe), tar_digest=file_digest(probe))}
            for number, name in enumerate(harnesses, start=1):
                progress(name, number, total)
                tars[name] = self._build_harness(name)
            progress(RUNNER, total - 2, total)
            runner = self._build_runner(base, tars)
            progress(VERIFIER, total - 1, total)
            verifier = self._build_verifier(base)
            progress("images", total, total)
            return runner, verifier

    def _build_base(self) -> Path:
        guest = [PACKAGE_ROOT / "guest" / name for name in image_bake.GUEST_PROGRAMS]
        recipe = _files_digest([*sorted((self._recipes / "vm").rglob("*")), *guest])
        directory = self._root / "base" / _short(recipe)
        if not (directory / MANIFEST).is_file():
            image_bake.check_machine()
            with _fresh(directory) as (work, out):
                image_bake.bake_base(work, out, recipes=self._recipes / "vm", guest=guest, log=self.log)
                _write_manifest(out, "base", recipe)
        return directory

    def _build_runner(self, base: Path, harnesses: dict[str, Harness]) -> ImageRef:
        inputs = [(base / MANIFEST).read_text(), *(f"{name} {h.tar_digest}" for name, h in sorted(harnesses.items()))]
        recipe = sha256_digest("\n".join(inputs).encode())
        directory = self._root / RUNNER / _short(recipe)
        if not (directory / MANIFEST).is_file():
            with _fresh(directory) as (work, out):
                _link_base(base, out)
                tars = {name: Path(harness.tar) for name, harness in harnesses.items()}
                image_bake.bake_harness_store(work, out, tars, log=self.log)
                _write_manifest(out, RUNNER, recipe)
        return self._make_current(RUNNER, directory)

    def _build_verifier(self, base: Path) -> ImageRef:
        recipe = sha256_digest((base / MANIFEST).read_bytes())
        directory = self._root / VERIFIER / _short(recipe)
        if not (directory / MANIFEST).is_file():
            with _fresh(directory) as (_, out):
                _link_base(base, out)
                _write_manifest(out, VERIFIER, recipe)
        return self._make_current(VERIFIER, directory)

    def _build_harness(self, name: str) -> Harness:
        recipes = self._recipes / "recipes"
        known = self._known_harness(name)
        if known is not None:
            return known
        recipe = _files_digest(image_harness.recipe_inputs(name, recipes))
        work = self._harness_work()
        stamp = work / f"{name}.json"
        image_bake.check_machine()
        stamp.unlink(missing_ok=True)
        tar = image_harness.build_harness_rootfs(name, recipes, work, lambda step, done, total: None, self.log)
        built = Harness(recipe_digest=recipe, tar=str(tar), tar_digest=file_digest(tar))
        stamp.write_text(built.model_dump_json(), encoding="utf-8")
        return built

    def _known_harness(self, name: str) -> Harness | None:
        """The harness as baked from its present recipe."""
        recipe = _files_digest(image_harness.recipe_inputs(name, self._recipes / "recipes"))
        with contextlib.suppress(OSError, ValueError):
            known = Harness.model_validate_json((self._harness_work() / f"{name}.json").read_bytes())
            if known.recipe_digest == recipe and Path(known.tar).is_file():
                return known
        return None

    def _make_current(self, name: str, directory: Path) -> ImageRef:
        link = self._root / name / f"current.{os.getpid()}"
        link.unlink(missing_ok=True)
        link.symlink_to(directory.name)
        link.replace(self._root / name / "current")
        return self._ref(directory)

    def _ref(self, directory: Path) -> ImageRef:
        manifest = ImageManifest.model_validate_json((directory / MANIFEST).read_bytes())
        return ImageRef(name=manifest.name, digest=manifest.digest(), path=directory)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def _fresh(directory: Path) -> Iterator[tuple[Path, Path]]:
    """Scratch space and an output directory that takes its final name only when everything in it is complete."""
    temporary = directory.with_name(f"{directory.name}.tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    work, out = temporary / "work", temporary / "out"
    work.mkdir(parents=True)
    out.mkdir()
    try:
        yield work, out
        shutil.rmtree(directory, ignore_errors=True)
        out.replace(directory)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _link_base(base: Path, out: Path) -> None:
    names = (image_bake.ROOTFS, image_bake.KERNEL, image_bake.INITRD, image_bake.CA_KEY, image_bake.HOST_KEY)
    for name in (*names, image_bake.PACKAGES):
        (out / name).hardlink_to(base / name)


def _write_manifest(out: Path, name: str, recipe: Digest) -> None:
    paths = sorted(path for path in out.iterdir() if path.name not in {image_bake.CA_KEY, MANIFEST})
    size = sum(path.stat().st_blocks * 512 for path in paths)
    manifest = ImageManifest(
        name=name, recipe_digest=recipe, files={path.name: file_digest(path) for path in paths}, size_bytes=size
    )
    (out / MANIFEST).write_text(manifest.model_dump_json(indent=2), encoding="utf-8")


def _files_digest(paths: Iterable[Path]) -> Digest:
    files = [path for path in paths if path.is_file() and path.suffix not in {".pyc", ".md"}]
    return sha256_digest(
        "\n".join(f"{path.name} {path.stat().st_mode & 0o111:o} {file_digest(path)}" for path in files).encode()
    )


def _short(digest: Digest) -> str:
    return digest.removeprefix("sha256:")[:16]
