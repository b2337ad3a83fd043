"""Recipes of harness images: strict, pinned by hash, and free of registry addresses."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from controller.adapters.image_harness import harness_names, read_harness_recipe, recipe_inputs
from controller.adapters.image_store import RECIPES
from controller.errors import ImageRecipeFailed
from controller.harnesses import HARNESSES

RECIPE_DIR = RECIPES / "recipes"


def test_every_harness_has_a_recipe_of_its_version() -> None:
    assert {adapter.image for adapter in HARNESSES.values()} == set(harness_names(RECIPE_DIR))
    for adapter in HARNESSES.values():
        assert read_harness_recipe(RECIPE_DIR / f"{adapter.image}.toml").version == adapter.version


@pytest.mark.parametrize("name", harness_names(RECIPE_DIR))
def test_no_recipe_names_a_registry(name: str) -> None:
    for path in recipe_inputs(name, RECIPE_DIR):
        assert "://" not in path.read_text(encoding="utf-8")


def test_every_npm_package_is_pinned_by_sha512() -> None:
    lock = json.loads((RECIPE_DIR / "harness-codex" / "package-lock.json").read_text(encoding="utf-8"))
    packages = {path: entry for path, entry in lock["packages"].items() if path}
    assert packages
    assert all(entry["integrity"].startswith("sha512-") and "resolved" not in entry for entry in packages.values())


def test_every_wheel_is_pinned_by_sha256() -> None:
    lock = (RECIPE_DIR / "harness-mini-swe-agent" / "requirements.lock").read_text(encoding="utf-8")
    entries = re.split(r"\n(?=\S)", lock.strip())
    assert len(entries) > 50
    for entry in entries:
        assert re.fullmatch(r"[a-z0-9.-]+==\S+( \\\n    --hash=sha256:[0-9a-f]{64})+", entry), entry


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (("kind =", "sort ="), "sort"),
        (("codex/bin/codex", "../codex"), "programs.codex"),
        (('"codex/bin"', '"/etc"'), "keep"),
        (("[programs]", "[[programs]]"), "programs"),
    ],
)
def test_a_faulty_recipe_names_its_file_and_field(tmp_path: Path, change: tuple[str, str], field: str) -> None:
    text = (RECIPE_DIR / "harness-codex.toml").read_text(encoding="utf-8")
    path = tmp_path / "harness-x.toml"
    path.write_text(text.replace(*change), encoding="utf-8")
    with pytest.raises(ImageRecipeFailed, match=f"harness-x.toml(.|\n)*{field}"):
        read_harness_recipe(path)
