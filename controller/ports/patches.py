"""Patches as differences of trees, made with a git directory the controller owns."""

from __future__ import annotations

from typing import Protocol

from controller.domain.record import Record
from controller.domain.tree import Tree


class Patch(Record):
    """What an attempt changed. Judged by its trees; the text is for people and for `git apply`."""

    data: bytes
    changed: tuple[str, ...]


class PatchTool(Protocol):
    def make_patch(self, base: Tree, harvested: Tree) -> Patch:
        """The binary patch from base to harvested. Raises ControllerFault when git and the git-free walk disagree."""
        ...

    def apply_check(self, base: Tree, patch: bytes) -> Tree:
        """The tree that results from a stranger's patch. Raises InvalidInput when it does not apply cleanly."""
        ...

    def base_commit_tar(self, base: Tree) -> bytes:
        """A tar of the base with a `.git` of one commit without history, same bytes every time."""
        ...
