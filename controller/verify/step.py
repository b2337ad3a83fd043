"""Take the decided parts to the verifier machine and bring the judge's report back."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path
from typing import Final

from controller import guest
from controller.domain.ids import sha256_digest
from controller.domain.outcome import Verdict
from controller.domain.record import Record
from controller.domain.task import TaskBundle
from controller.domain.tree import SYMLINK, Tree, tree_digest
from controller.domain.tree_stream import HarvestedTree
from controller.errors import InvalidTask, SandboxLost
from controller.ports.patches import PatchTool
from controller.ports.pool import Sandbox
from controller.verify import rules

JUDGE_MARGIN_SECONDS: Final = 300  # unpacking, applying and starting interpreters under emulation
REPORT_BYTES_MAX: Final = 2**20

# Nothing of the environment, of site packages or of byte code that the patch may hold reaches the interpreter.
PYTHON: Final = ("/usr/bin/python3", "-I", "-S", "-B", "-X", "pycache_prefix=/nonexistent", "-X", "utf8")
NODE: Final = ("/usr/bin/node", "--no-deprecation")
RUNNERS: Final = {"python": (PYTHON, "subject.py", "driver.py"), "node": (NODE, "subject.mjs", "driver.mjs")}

_RUN: Final = (
    'rm -rf -- "$1" && mkdir -p -- "$1" && tar --extract --same-permissions --directory="$1" && '
    'exec /usr/bin/python3 -I -S -B "$1/sealed/judge.py" "$1/sealed/order.json"'
)
# A git directory made by hand saves starting git once. Its attribute file outranks any that the patch may hold.
_GIT_DIRECTORY: Final = {
    "HEAD": b"ref: refs/heads/main\n",
    "config": b"[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n",
    "info/attributes": b"* -text -ident -filter -working-tree-encoding !eol !diff !merge !whitespace\n",
}


class JudgeSite(Record):
    """Where the judge works inside the machine, and as whom the subject runs: a user that owns nothing else there."""

    directory: str = "/var/lib/fairtrial/verify"
    uid: int = 64100
    gid: int = 64100
    memory_bytes: int | None = 2**30  # of all the subject's processes; None where control groups can't be made


def verify(
    sandbox: Sandbox,
    bundle: TaskBundle,
    harvested: HarvestedTree | str,
    patches: PatchTool,
    *,
    site: JudgeSite | None = None,
) -> tuple[Verdict, bytes]:
    """The verdict on one harvested tree, and its patch (empty when there is no tree to compare).

    `harvested` may be a text that says why the tree can't be read. Raises SandboxLost when the machine fails.
    """
    gates = rules.tree_gates(bundle, harvested)
    if isinstance(harvested, str) or harvested.truncated:
        return rules.verdict_of(bundle, (*gates, *rules.not_reached(rules.GATES[5:])), None, None), b""
    after = rules.source_tree(bundle.base, harvested.tree)
    patch = patches.make_patch(bundle.base, after)
    output = None
    if all(gate.passed for gate in gates):
        cases = count_cases(bundle)
        report, raw = run_judge(sandbox, bundle, site or JudgeSite(), patch=patch.data, after=after)
        gates = (*gates, *rules.machine_gates(report, cases))
        output = rules.output_of(report, raw, cases)
    else:
        gates = (*gates, *rules.not_reached(rules.GATES[5:]))
    return rules.verdict_of(bundle, gates, patch, sha256_digest(patch.data), output), patch.data


def run_judge(
    sandbox: Sandbox, bundle: TaskBundle, site: JudgeSite, *, patch: bytes | None, after: Tree
) -> tuple[rules.JudgeReport, bytes]:
    """Run the hidden verifier on the base with the patch, or on the bare base when `patch` is None.

    The judge's report, and the bytes it printed.
    """
    load = _load(bundle, site, patch=patch, expected_digest=tree_digest(after))
    limit = float(bundle.verify_seconds + JUDGE_MARGIN_SECONDS)
    argv = ["/bin/sh", "-c", _RUN, "sh", site.directory]
    judged = sandbox.exec(argv, stdin=load, timeout_seconds=limit, output_bytes_max=REPORT_BYTES_MAX)
    if judged.exit_code != 0 or judged.truncated:
        raise SandboxLost(f"the judge ended with code {judged.exit_code}: {judged.stderr[-300:]!r}")
    return rules.parse_report(judged.stdout), judged.stdout


def count_cases(bundle: TaskBundle) -> int:
    """How many hidden cases the task has. Raises InvalidTask when its case file is not of the known form."""
    origin = f"task {bundle.entry.id}: verifier/cases.json"
    try:
        cases = json.loads(bundle.verifier["cases.json"])["cases"]
        ids = [case["id"] for case in cases]
        well_formed = all(case.keys() == {"id", "input", "expected"} for case in cases) and len(set(ids)) == len(ids)
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise InvalidTask(f"{origin}: not a list of cases with id, input and expected ({error})") from error
    if not well_formed or not ids:
        raise InvalidTask(f"{origin}: needs cases, each with exactly id, input and expected, and a distinct id")
    return len(ids)


def _load(bundle: TaskBundle, site: JudgeSite, *, patch: bytes | None, expected_digest: str) -> bytes:
    """One archive with everything the judge needs: `sealed/` is root's alone, the rest may be read by the subject."""
    command, runner, driver = RUNNERS[bundle.entry.language]
    root, sealed = site.directory, f"{site.directory}/sealed"
    order = {
        "repository": f"{root}/repository",
        "git_dir": f"{sealed}/git",
        "patch": None if patch is None else f"{sealed}/patch.diff",
        "tree_digest": expected_digest,
        "subject": [*command, f"{root}/hidden/{runner}", f"{root}/repository", f"{root}/hidden/{driver}"],
        "cases": f"{sealed}/cases.json",
        "inputs": f"{sealed}/inputs.jsonl",
        "home": f"{root}/home",
        "uid": site.uid,
        "gid": site.gid,
        "memory_bytes": site.memory_bytes,
        "seconds": bundle.verify_seconds,
    }
    source = Path(guest.__path__[0])
    archive = _Archive()
    archive.directory("sealed", 0o700)
    archive.file("sealed/order.json", json.dumps(order).encode())
    archive.file("sealed/judge.py", (source / "judge.py").read_bytes())
    archive.file("sealed/cases.json", bundle.verifier["cases.json"])
    if patch is not None:
        archive.file("sealed/patch.diff", patch)
    for directory in ("sealed/git", "sealed/git/info", "sealed/git/objects", "sealed/git/refs"):
        archive.directory(directory, 0o700)
    for name, data in _GIT_DIRECTORY.items():
        archive.file(f"sealed/git/{name}", data)
    archive.directory("hidden", 0o755)
    archive.file(f"hidden/{runner}", (source / runner).read_bytes())
    for name, data in sorted(bundle.verifier.items()):
        if name != "cases.json":
            archive.file(f"hidden/{name}", data)
    archive.tree("repository", bundle.base)
    return archive.close()


class _Archive:
    """A tar in memory with root's ownership and no times, so that equal orders are equal bytes."""

    def __init__(self) -> None:
        self._bytes = io.BytesIO()
        self._tar = tarfile.open(fileobj=self._bytes, mode="w", format=tarfile.PAX_FORMAT)  # noqa: SIM115
        self._made: set[str] = set()

    def directory(self, name: str, mode: int) -> None:
        if name not in self._made:
            self._made.add(name)
            entry = tarfile.TarInfo(name)
            entry.type, entry.mode = tarfile.DIRTYPE, mode
            self._tar.addfile(entry)

    def file(self, name: str, data: bytes, *, mode: int = 0o644) -> None:
        entry = tarfile.TarInfo(name)
        entry.size, entry.mode = len(data), mode
        self._tar.addfile(entry, io.BytesIO(data))

    def tree(self, root: str, tree: Tree) -> None:
        self.directory(root, 0o755)
        for path in sorted(tree):
            parts = path.split("/")
            for depth in range(1, len(parts)):
                self.directory("/".join([root, *parts[:depth]]), 0o755)
            if tree[path].mode == SYMLINK:
                entry = tarfile.TarInfo(f"{root}/{path}")
                entry.type, entry.linkname = tarfile.SYMTYPE, tree[path].data.decode()
                self._tar.addfile(entry)
            else:
                self.file(f"{root}/{path}", tree[path].data, mode=int(tree[path].mode[3:], 8))

    def close(self) -> bytes:
        self._tar.close()
        return self._bytes.getvalue()
