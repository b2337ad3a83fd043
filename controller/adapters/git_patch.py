"""Patches made with git in a directory that only the controller has ever touched.

Objects go in through `git fast-import` on standard input and come out through `cat-file`, so no path of a harness is
ever opened, and no configuration, attribute, hook or filter of anyone takes part.
"""

from __future__ import annotations

import io
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from controller.domain.limits import ArtifactLimits
from controller.domain.paths import tree_path_faults
from controller.domain.tree import SYMLINK, Tree, TreeFile, changed_paths
from controller.errors import ControllerFault, InvalidInput, MissingProgram
from controller.ports.patches import Patch

GIT_SECONDS: Final = 120
GIT_MEMORY_BYTES: Final = 2**30  # a small binary patch can claim to make hundreds of megabytes
PATCH_BYTES_MAX: Final = 32 * 2**20
COMMIT_TIME: Final = 946_684_800  # 2000-01-01T00:00:00Z: a base has no history to tell
COMMIT_AUTHOR: Final = "Task <task@invalid>"
COMMIT_MESSAGE: Final = "Import the repository"

_ENV: Final = {
    "PATH": "/usr/bin:/bin:/usr/local/bin",
    "HOME": "/nonexistent",
    "LC_ALL": "C",
    "TZ": "UTC",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
}
_SETTINGS: Final = (
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.autocrlf=false",
    "core.fileMode=true",
    "core.symlinks=true",
    "core.attributesFile=/dev/null",
    "fastimport.unpackLimit=0",
    "gc.auto=0",
    "protocol.allow=never",
)
# The highest-ranking attribute file: whatever a tree's own .gitattributes say does not matter.
_ATTRIBUTES: Final = "* -text -ident -filter -working-tree-encoding !eol !diff !merge !whitespace\n"
_DIFF: Final = ("--binary", "--full-index", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color")


class GitPatches:
    """The `PatchTool` port. Every call works in a fresh directory and leaves nothing behind."""

    def __init__(self, *, limits: ArtifactLimits | None = None) -> None:
        self._limits = limits or ArtifactLimits()

    def make_patch(self, base: Tree, harvested: Tree) -> Patch:
        """The binary patch from base to harvested. Raises ControllerFault when git and the git-free walk disagree."""
        with _repository() as git:
            base_tree, result_tree = git.import_tree("base", base), git.import_tree("result", harvested)
            data = git.run("diff-tree", "-p", *_DIFF, base_tree, result_tree)
            listed = git.run("diff-tree", "-r", "-z", "--name-only", *_DIFF[2:], base_tree, result_tree)
        changed = tuple(sorted((name.decode() for name in listed.split(b"\0") if name), key=str.encode))
        if changed != changed_paths(base, harvested):
            raise ControllerFault("git and the walk of the trees name different changed paths")
        return Patch(data=data, changed=changed)

    def apply_check(self, base: Tree, patch: bytes) -> dict[str, TreeFile]:
        """The tree that results from a stranger's patch, whatever its text claims.

        Raises InvalidInput when it does not apply cleanly or gives a tree with unsafe paths, submodules or too much.
        """
        if len(patch) > PATCH_BYTES_MAX:
            raise InvalidInput(f"the patch has {len(patch)} bytes, more than {PATCH_BYTES_MAX}")
        with _repository() as git:
            git.run("read-tree", git.import_tree("base", base))
            if patch.strip():
                try:
                    git.run("apply", "--cached", "--whitespace=nowarn", "-", stdin=patch)
                except _GitFailed as error:
                    raise InvalidInput(f"the patch does not apply cleanly to the base: {error}") from error
            return self._read_tree(git, git.run("write-tree").decode().strip())

    def base_commit_tar(self, base: Tree) -> bytes:
        """A tar of the base with a `.git` of one commit without history, same bytes every time."""
        with _repository() as git:
            tree = git.import_tree("base", base)
            (git.directory / "refs" / "heads").mkdir(parents=True, exist_ok=True)
            commit = git.run("rev-parse", "refs/fairtrial/base").decode().strip()
            git.run("read-tree", tree)
            head = {
                "HEAD": b"ref: refs/heads/main\n",
                "config": b"[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n",
                "refs/heads/main": commit.encode() + b"\n",
                "index": (git.directory / "index").read_bytes(),
            }
            objects = git.directory / "objects"
            packs = {
                f"objects/{file.relative_to(objects).as_posix()}": file.read_bytes()
                for file in sorted(objects.rglob("*"))
                if file.is_file()
            }
        return _tar(base, {f".git/{name}": data for name, data in (head | packs).items()})

    def _read_tree(self, git: _Git, tree: str) -> dict[str, TreeFile]:
        entries = []
        total = 0
        for record in git.run("ls-tree", "-r", "-z", "-l", "--full-tree", tree).split(b"\0")[:-1]:
            meta, raw = record.split(b"\t", 1)
            mode, kind, oid, size = meta.decode().split()
            path = raw.decode(errors="surrogateescape")
            if kind != "blob":
                raise InvalidInput(f"the patch makes {path!r} a submodule")
            total += int(size)
            entries.append((path, mode, oid))
        if total > self._limits.tree_bytes_max or len(entries) > self._limits.tree_entries_max:
            raise InvalidInput(f"the patch makes a tree of {len(entries)} files and {total} bytes, over the limits")
        if faults := tree_path_faults(path for path, _, _ in entries):
            raise InvalidInput(f"the patch makes a path that is not allowed: {faults[0]}")
        blobs = git.read_blobs([oid for _, _, oid in entries])
        return {path: TreeFile(mode=mode, data=data) for (path, mode, _), data in zip(entries, blobs, strict=True)}


class _GitFailed(Exception):
    """What git said when it ended with an error."""


class _Git:
    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def run(self, *arguments: str, stdin: bytes = b"") -> bytes:
        settings = [part for setting in _SETTINGS for part in ("-c", setting)]
        argv = ["prlimit", f"--as={GIT_MEMORY_BYTES}", "--", "git", *settings, *arguments]
        try:
            done = subprocess.run(
                argv,
                input=stdin,
                capture_output=True,
                cwd=self.directory,
                env=_ENV | {"GIT_DIR": str(self.directory)},
                timeout=GIT_SECONDS,
                check=False,
            )
        except FileNotFoundError as error:
            raise MissingProgram(f"{error.filename} is not installed") from error
        except subprocess.TimeoutExpired as error:
            raise _GitFailed(f"git {arguments[0]} did not end within {GIT_SECONDS} s") from error
        if done.returncode != 0:
            raise _GitFailed(done.stderr.decode(errors="replace").strip()[-300:] or f"exit code {done.returncode}")
        return done.stdout

    def import_tree(self, name: str, tree: Tree) -> str:
        """Store a tree under refs/fairtrial/<name> and return the id of the tree object."""
        if faults := tree_path_faults(tree):
            raise ControllerFault(f"a tree with an unsafe path reached git: {faults[0]}")
        stream = io.BytesIO()
        message = COMMIT_MESSAGE.encode()
        stamp = f"{COMMIT_AUTHOR} {COMMIT_TIME} +0000"
        stream.write(f"commit refs/fairtrial/{name}\nauthor {stamp}\ncommitter {stamp}\n".encode())
        stream.write(b"data %d\n%s\n" % (len(message), message))
        for path in sorted(tree, key=str.encode):
            quoted = '"' + path.replace('"', '\\"') + '"'  # no backslash or control character passes tree_path_faults
            stream.write(f"M {tree[path].mode} inline {quoted}\n".encode())
            stream.write(b"data %d\n%s\n" % (len(tree[path].data), tree[path].data))
        stream.write(b"done\n")
        self.run("fast-import", "--quiet", "--force", "--done", "--date-format=raw", stdin=stream.getvalue())
        return self.run("rev-parse", f"refs/fairtrial/{name}^{{tree}}").decode().strip()

    def read_blobs(self, ids: list[str]) -> list[bytes]:
        """The contents of blobs, in order."""
        output = io.BytesIO(self.run("cat-file", "--batch", stdin="".join(f"{oid}\n" for oid in ids).encode()))
        blobs = []
        for oid in ids:
            header = output.readline().decode().split()
            if header[:2] != [oid, "blob"]:
                raise ControllerFault(f"git cat-file answered {header} for {oid}")
            blobs.append(output.read(int(header[2])))
            output.read(1)
        return blobs


@contextmanager
def _repository() -> Iterator[_Git]:
    with tempfile.TemporaryDirectory(prefix="fairtrial-git-") as name:
        git = _Git(Path(name))
        try:
            git.run("init", "--quiet", "--bare", "--template=", "--initial-branch=main", name)
            (git.directory / "info").mkdir(exist_ok=True)
            (git.directory / "info" / "attributes").write_text(_ATTRIBUTES)
            yield git
        except _GitFailed as error:
            raise ControllerFault(f"git failed in the controller's own directory: {error}") from error


def _tar(tree: Tree, extra: dict[str, bytes]) -> bytes:
    """Files and their directories in byte order, root's, dated like the commit."""
    files = {path: (file.mode, file.data) for path, file in tree.items()}
    files |= {path: ("100644", data) for path, data in extra.items()}
    directories = {"/".join(path.split("/")[:depth]) for path in files for depth in range(1, path.count("/") + 1)}
    directories |= {".git/refs", ".git/refs/heads", ".git/objects"} if extra else set()
    output = io.BytesIO()
    with tarfile.open(fileobj=output, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path in sorted(directories | files.keys(), key=str.encode):
            entry = tarfile.TarInfo(path)
            entry.mtime = COMMIT_TIME
            if path in directories:
                entry.type, entry.mode = tarfile.DIRTYPE, 0o755
                tar.addfile(entry)
            elif files[path][0] == SYMLINK:
                entry.type, entry.linkname = tarfile.SYMTYPE, files[path][1].decode()
                tar.addfile(entry)
            else:
                entry.size, entry.mode = len(files[path][1]), int(files[path][0][3:], 8)
                tar.addfile(entry, io.BytesIO(files[path][1]))
    return output.getvalue()
