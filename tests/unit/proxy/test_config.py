"""The file of provider keys: read at once or refused, and never repeated in a message."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import ValidationError

from controller.errors import InvalidInput
from controller.proxy.config import MeterConfig, read_keys

SECRET = "sk-secret"


def written(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    path.chmod(0o600)
    return path


def test_keys_are_read_by_name(tmp_path: Path) -> None:
    assert read_keys(written(tmp_path / "keys.json", f'{{"a": "{SECRET}"}}')) == {"a": SECRET}
    assert read_keys(None) == {}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[" * 100_000,
        f'["{SECRET}"]',
        f'{{"a": "{SECRET}", "a": "other"}}',
        f'{{"a": ["{SECRET}"]}}',
        f'{{"a": "{SECRET}\\n"}}',
        f'{{"a": "{SECRET}\\u00e9"}}',
        f'{{"a": "{SECRET}\\ud800"}}',
        f'{{"a": "{SECRET}", "b": ""}}',
        f'{{"a": "{SECRET}"}}'.encode("utf-16"),
    ],
)
def test_what_holds_no_keys_is_refused_without_showing_any(tmp_path: Path, text: str | bytes) -> None:
    with pytest.raises(InvalidInput, match="key file") as refused:
        read_keys(written(tmp_path / "keys.json", text))
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize(
    "make",
    [lambda p: os.mkfifo(p, 0o600), lambda p: p.symlink_to("/dev/zero"), lambda p: p.symlink_to(p), os.mkdir],
    ids=["fifo", "link to a device", "loop", "directory"],
)
def test_what_is_no_regular_file_is_refused_at_once(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "keys.json")
    with pytest.raises(InvalidInput, match="key file"):
        read_keys(tmp_path / "keys.json")


CONFIG = {
    "socket": "/run/meter.sock",
    "ledger": "/srv/ledger.sqlite",
    "rate_card": "/srv/card.json",
    "upstreams": {"a": "http://127.0.0.1:65535", "b": "https://api.example.com", "c": "unix:/run/u:99999"},
    "keys": "/srv/keys.json",
}


@pytest.mark.parametrize("name", ["socket", "ledger", "rate_card", "keys"])
@pytest.mark.parametrize("path", ["", "/a\0b", "\0"])
def test_what_no_path_can_be_is_refused_by_its_field(name: str, path: str) -> None:
    assert MeterConfig.model_validate(CONFIG).keys == CONFIG["keys"]
    with pytest.raises(ValidationError, match=name):
        MeterConfig.model_validate(CONFIG | {name: path})


@pytest.mark.parametrize("address", ["http://127.0.0.1:65536", "http://[::1]:99999", "https://api.example.com:70000"])
def test_a_port_that_no_host_has_is_refused(address: str) -> None:
    with pytest.raises(ValidationError, match="upstreams"):
        MeterConfig.model_validate(CONFIG | {"upstreams": {"a": address}})
