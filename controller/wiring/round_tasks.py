"""The tasks of a round: directories of public ones, stores of sealed ones."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from controller.adapters.opener_file import FileOpener
from controller.adapters.sealed_store import SealedStore
from controller.domain.plan import RoundManifest, TaskEntry
from controller.domain.sealed import Part, SealedTask
from controller.domain.task import TaskBrief, TaskBundle
from controller.errors import InvalidPlan, InvalidTask
from controller.evidence.sealing import check_recipient, open_runner, open_verifier
from controller.freeze.plan import RoundPlan
from controller.settings import Settings
from controller.wiring.tasks import load_bundle


class RoundTasks:
    """The TaskContents port. Making it proves that everything is as frozen and that this machine holds the keys.

    What harnesses receive is read at once; what judges a sealed task is opened anew for every verdict and not kept.
    Raises InvalidTask, SealedKeyMissing, BundleRejected.
    """

    def __init__(self, settings: Settings, manifest: RoundManifest, places: Mapping[str, Path]) -> None:
        self._settings = settings
        self._briefs: dict[str, TaskBrief] = {}
        self._bundles: dict[str, TaskBundle] = {}
        self._sealed: dict[str, tuple[SealedStore, SealedTask]] = {}
        for entry in manifest.tasks:
            if entry.id not in places:
                raise InvalidTask(f"task {entry.id}: this machine does not know where it lies")
            if entry.sealed is None:
                self._briefs[entry.id] = self._bundles[entry.id] = _public(settings, entry, places[entry.id])
            else:
                self._briefs[entry.id] = self._sealed_brief(entry, SealedStore(places[entry.id]))

    def brief(self, task: str) -> TaskBrief:
        return self._briefs[task]

    def bundle(self, task: str) -> TaskBundle:
        if task in self._bundles:
            return self._bundles[task]
        store, sealed = self._sealed[task]
        return open_verifier(sealed, self._briefs[task], store.ciphertext(task, "verifier"), self._opener("verifier"))

    def scripts(self) -> dict[str, str]:
        """What the scripted model plays, by task, for those that can be rehearsed."""
        found = {task: brief.rehearsal_json for task, brief in self._briefs.items()}
        return {task: script for task, script in found.items() if script is not None}

    def _sealed_brief(self, entry: TaskEntry, store: SealedStore) -> TaskBrief:
        sealed = store.task(entry.id)
        if sealed.entry != entry:
            raise _changed(entry, store.directory)
        check_recipient(sealed, "verifier", self._opener("verifier"))  # now, and not when an attempt has been paid for
        self._sealed[entry.id] = store, sealed
        return open_runner(sealed, store.ciphertext(entry.id, "runner"), self._opener("runner"))

    def _opener(self, part: Part) -> FileOpener:
        return FileOpener.open(self._settings.keys_dir / f"sealed-{part}.pem", part)


def sealed_tasks(plan: RoundPlan, plan_path: Path) -> list[tuple[SealedTask, SealedStore]]:
    """Every task of the stores that the plan names, without opening any; no key is needed.

    Raises InvalidPlan naming each task whose content was disclosed: who knows a task can't be ranked on it.
    """
    found: list[tuple[SealedTask, SealedStore]] = []
    known: list[str] = []
    for position, name in enumerate(plan.sealed):
        store = SealedStore((plan_path.parent / name).resolve())
        for task in store.tasks():
            found.append((task, store))
            if mark := store.mark(task.entry.id):
                known.append(
                    f"{plan_path.name}: sealed[{position}]: {task.entry.id} was disclosed after round {mark.round_id}, "
                    f"so it can't be ranked again"
                )
    if known:
        raise InvalidPlan("\n".join(known))
    return found


def _public(settings: Settings, entry: TaskEntry, directory: Path) -> TaskBundle:
    bundle = load_bundle(settings, directory)
    if bundle.entry != entry:
        raise _changed(entry, directory)
    return bundle


def _changed(entry: TaskEntry, place: Path) -> InvalidTask:
    return InvalidTask(
        f"task {entry.id} in {place} is not the one that was frozen",
        remedy="Restore the task's directory; a changed task is a new round.",
    )
