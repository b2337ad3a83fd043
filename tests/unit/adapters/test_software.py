from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from controller.adapters.software import module_digest, software_digest
from controller.harnesses import HARNESSES
from controller.settings import PROJECT


def _package(root: Path) -> Path:
    for name, data in {"__init__.py": b"", "meter/app.py": b"x = 1\n", "guest/relay.py": b"y = 2\n"}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return root


def test_the_digest_is_what_the_guide_says(tmp_path: Path) -> None:
    names = {"__init__.py": b"", "meter/app.py": b"x = 1\n", "guest/relay.py": b"y = 2\n"}
    listed = {name: f"sha256:{hashlib.sha256(data).hexdigest()}" for name, data in names.items()}
    text = json.dumps(listed, sort_keys=True, separators=(",", ":"))
    assert software_digest(_package(tmp_path)) == f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def test_it_does_not_depend_on_the_place_nor_on_what_python_derives(tmp_path: Path) -> None:
    first, second = _package(tmp_path / "a"), _package(tmp_path / "b")
    (second / "meter" / "__pycache__").mkdir()
    (second / "meter" / "__pycache__" / "app.cpython-311.pyc").write_bytes(b"derived")
    assert software_digest(first) == software_digest(second)


@pytest.mark.parametrize("change", ["edit", "rename", "add", "remove"])
def test_every_change_of_a_file_is_another_build(tmp_path: Path, change: str) -> None:
    package = _package(tmp_path)
    before = software_digest(package)
    path = package / "meter" / "app.py"
    if change == "edit":
        path.write_bytes(b"x = 2\n")
    elif change == "rename":
        path.rename(package / "meter" / "apq.py")
    elif change == "add":
        (package / "rates.json").write_bytes(b"{}")
    else:
        path.unlink()
    assert software_digest(package) != before


def test_an_adapter_is_named_by_its_own_module() -> None:
    for name, module in (("codex", "codex.py"), ("mini-swe-agent", "mini_swe_agent.py")):
        data = (PROJECT / "controller" / "harnesses" / module).read_bytes()
        assert module_digest(HARNESSES[name]) == f"sha256:{hashlib.sha256(data).hexdigest()}"
