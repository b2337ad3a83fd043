"""Make the conformance folder `tests/assets/bundles`: `python -m tests.world.bundle_corpus [DIRECTORY]`.

The same sources give the same bytes. What the folder is for stands in its README.
"""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from controller.adapters.files_durable import LocalFiles
from controller.conductor.recompute import RoundRecompute
from controller.domain.plan import LogicalRun, RoundManifest
from controller.evidence import bundle
from controller.evidence.approval import approval_name, approved_of, sign_approval
from controller.evidence.canonical import canonical
from controller.evidence.check import STEPS
from controller.publish import publish
from tests.world.bundle_defect_tables import APPROVALS, RESIGNED, SUMMED, UNSIGNED, others
from tests.world.bundle_defects import LATER, PERSON, RIVAL, SmallOrderSigner, signed_by
from tests.world.recorded_round import Protocol, RecordedRound, conducted, inputs, measured
from tests.world.tampering import SIGNER, TAMPERS, Files, Tamper, resigned

FOLDER: Final = Path(__file__).parents[1] / "assets" / "bundles"
TABLE, REMOVED = "expected.tsv", "removed.txt"
HEAD: Final = ("name", "over", "keys", "verdict", "step", "step name", "what is wrong")
MEASURED: Final = "harness-round-measured"


@dataclass(frozen=True)
class Case:
    """One bundle and what a checker must say of it. `step` is the first that refuses; None: accepted."""

    name: str
    over: str  # the good bundle it is a variant of, or itself
    pinned: bool  # the checker is given keys.json of the folder; else it takes the key inside
    step: int | None
    what: str

    @property
    def row(self) -> tuple[str, ...]:
        verdict = ("accepted", "", "") if self.step is None else ("refused", str(self.step), STEPS[self.step - 1][0])
        return (self.name, self.over, "pinned" if self.pinned else "inside", *verdict, self.what)


@dataclass(frozen=True)
class Corpus:
    """Good bundles and bad ones by name, and the cases in the order of the table."""

    good: Mapping[str, Files]
    bad: Mapping[str, Files]
    cases: tuple[Case, ...]

    def files(self, name: str) -> Files:
        return dict(self.good[name] if name in self.good else self.bad[name])


def corpus(directory: Path) -> Corpus:
    """Conduct the good rounds in the directory, and damage copies of what they publish."""
    good = _good(directory)
    bad: dict[str, Files] = {}
    cases = [Case(name, name, True, None, "nothing") for name in good]

    def add(name: str, over: str, step: int, what: str, files: Files) -> None:
        assert name not in bad, name
        assert files != good[over], name
        bad[name] = files
        cases.append(Case(name, over, True, step, what))

    base = "harness-round"
    for name, step, what, tamper in UNSIGNED:
        add(name, base, step, what, _tampered(good[base], tamper))
    for name, what, signer in (
        ("all-signed-by-another", "consistent, but the key inside is not the pinned one", RIVAL),
        ("small-order-key", "one signature fits every message under this key", SmallOrderSigner()),
    ):
        add(name, base, 1, what, signed_by(signer, good[base]))
        cases.append(Case(name, base, False, 1 if name == "small-order-key" else None, what))
    for label, step, finding, tamper in TAMPERS:
        add(_slug(label), base, step, f"{label} ({finding.strip()})", _resigned(good[base], tamper))
    for name, step, what, tamper in RESIGNED:
        add(name, base, step, what, _resigned(good[base], tamper))
    for name, step, what, tamper in SUMMED:
        add(name, base, step, what, resigned(_tampered(good[base], tamper)))
    for name, step, what, tamper in APPROVALS:
        add(name, MEASURED, step, what, _resigned(good[MEASURED], tamper))
    add("another-seed", base, 8, "the schedule is not the one that the frozen seed gives", _other_seed(directory))
    for name, over, step, what, tamper in others(good):
        add(name, over, step, what, _resigned(good[over], tamper))
    return Corpus(good, bad, tuple(cases))


def write(found: Corpus, folder: Path) -> None:
    """The folder's files but its README; what was there of them before is gone."""
    for part in ("good", "bad"):
        shutil.rmtree(folder / part, ignore_errors=True)
    for name, data in contents(found).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def contents(found: Corpus) -> Files:
    """Every file of the folder but its README."""
    files = {bundle.KEYS: canonical(SIGNER.ring), TABLE: _table(found.cases)}
    for name, whole in found.good.items():
        files |= {f"good/{name}/{inner}": data for inner, data in whole.items()}
    over = {case.name: found.good[case.over] for case in found.cases}
    for name, whole in found.bad.items():
        files |= {f"bad/{name}/{inner}": data for inner, data in _overlay(over[name], whole).items()}
    return files


def table(folder: Path) -> tuple[Case, ...]:
    """The rows of the folder's table."""
    head, *rows = (folder / TABLE).read_text().splitlines()
    assert tuple(head.split("\t")) == HEAD
    split = (row.split("\t") for row in rows)
    return tuple(
        Case(name, over, keys == "pinned", int(step) if step else None, what)
        for name, over, keys, _, step, _, what in split
    )


def laid(folder: Path, case: Case) -> Files:
    """The case's bundle: what differs, laid over the good one as the README says."""
    files = _directory(folder / "good" / case.over)
    if case.name != case.over:
        files |= _directory(folder / "bad" / case.name)
        for name in files.pop(REMOVED, b"").decode().splitlines():
            del files[name]
    return files


def _directory(directory: Path) -> Files:
    return LocalFiles().read_directory(directory, bytes_max=bundle.BUNDLE_BYTES_MAX)


def _overlay(base: Files, whole: Files) -> Files:
    """The files that differ, and the names of those that are gone."""
    found = {name: data for name, data in whole.items() if base.get(name) != data}
    if gone := sorted(base.keys() - whole.keys()):
        found[REMOVED] = "".join(f"{name}\n" for name in gone).encode()
    return found


def _table(cases: tuple[Case, ...]) -> bytes:
    return "".join("\t".join(row) + "\n" for row in (HEAD, *(case.row for case in cases))).encode()


def _slug(label: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", label.lower()).strip("-")


def _tampered(base: Files, tamper: Tamper) -> Files:
    files = dict(base)
    tamper(files)
    return files


def _resigned(base: Files, tamper: Tamper) -> Files:
    """Tampered with, under new sums and a new index: nothing but the defect is wrong."""
    files = _tampered(base, tamper)
    files[bundle.SUMS] = bundle.sums(files)
    return resigned(files)


def _good(directory: Path) -> dict[str, Files]:
    small = conducted(directory / "harness-round")
    good = {"harness-round": _published(small)}
    repeats_of: dict[Protocol, int] = {"cost-index": 2, "optimizer-matrix": 1}
    for protocol, repeats in repeats_of.items():
        found = conducted(directory / protocol, given=inputs(protocol=protocol, replicates=repeats))
        good[protocol] = _published(found)
    found = measured(directory / MEASURED)
    shown = {name: (found.directory / name).read_bytes() for name in (bundle.MANIFEST, bundle.DATASET, bundle.ANALYSIS)}
    approved = approved_of("small", {**shown, bundle.REPORT: found.report.encode()})
    path = found.directory / approval_name(approved)
    path.parent.mkdir()
    path.write_bytes(sign_approval(approved, PERSON, LATER))
    good[MEASURED] = _published(found)
    return good


class SeedBlind(RoundRecompute):
    """What a publisher would use who does not look at the seed."""

    def schedule(self, manifest: RoundManifest) -> tuple[LogicalRun, ...]:
        return manifest.schedule


def _published(found: RecordedRound, recompute: RoundRecompute | None = None) -> Files:
    release = publish(
        found.directory,
        found.directory.with_name(f"{found.directory.name}-release"),
        found.records(),
        files=LocalFiles(),
        signer=SIGNER,
        recompute=recompute or RoundRecompute(),
    )
    return _directory(release.path)


def _other_seed(directory: Path) -> Files:
    """A round conducted in another order than its seed gives, with everything else in order."""
    given = inputs()
    schedule = tuple(reversed(given.schedule))
    found = conducted(directory / "other-seed", given=given.model_copy(update={"schedule": schedule}))
    return _published(found, SeedBlind())


def main() -> int:
    """Write the folder."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    with tempfile.TemporaryDirectory() as directory:
        found = corpus(Path(directory))
    write(found, folder)
    sys.stdout.write(f"{folder}: {len(found.good)} good bundles, {len(found.bad)} bad ones\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
