"""Where a demo's round lies, and the links that lead to it."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

from controller.settings import Settings

_NUMBERED: Final = re.compile(r"demo-([1-9][0-9]{0,5})")


def next_demo_directory(settings: Settings) -> Path:
    """The first unused `rounds/demo-<n>`; the round itself makes it."""
    settings.rounds_dir.mkdir(parents=True, exist_ok=True)
    taken = [_NUMBERED.fullmatch(path.name) for path in settings.rounds_dir.iterdir()]
    return settings.rounds_dir / f"demo-{max((int(m.group(1)) for m in taken if m), default=0) + 1}"


def point_latest(settings: Settings, round_dir: Path) -> None:
    """Let `rounds/latest` lead to the round."""
    _link(settings.rounds_dir / "latest", round_dir.name)


def point_bundle(round_dir: Path, release: Path) -> None:
    """Let `bundle` in the round's directory lead to the newest release."""
    _link(round_dir / "bundle", os.path.relpath(release, round_dir))


def _link(path: Path, target: str) -> None:
    """Replace the link in one step, so that a reader always finds one."""
    temporary = path.with_name(f".{path.name}.new")
    temporary.unlink(missing_ok=True)
    temporary.symlink_to(target)
    temporary.replace(path)
