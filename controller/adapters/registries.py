"""The package registries this machine uses, by host name: every attempt proves that it can't reach them.

The names come from the machine's own clients, so that what is probed is what would work here.
"""

from __future__ import annotations

import re
import subprocess
from typing import Final
from urllib.parse import urlsplit

from controller.adapters.image_bake import host_sources
from controller.errors import FairtrialError

ASK_SECONDS: Final = 20.0
NAMES_MAX: Final = 8  # each name costs the guest one look-up
_URL: Final = re.compile(r"https?://[^\s\"'\]]+")
_HOST: Final = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?")
_CLIENTS: Final = (("npm", "config", "get", "registry"), ("python3", "-m", "pip", "config", "list"))


def registry_hosts() -> tuple[str, ...]:
    """Host names in byte order; what can't be asked is left out, since the fixed probes stand for it."""
    return host_names([*_archive_texts(), *(_answer(command) for command in _CLIENTS)])


def host_names(texts: list[str]) -> tuple[str, ...]:
    """The host of every web address in the texts, once each."""
    hosts = {(urlsplit(url).hostname or "").lower() for text in texts for url in _URL.findall(text)}
    return tuple(sorted(host for host in hosts if _HOST.fullmatch(host)))[:NAMES_MAX]


def _archive_texts() -> list[str]:
    try:
        return [path.read_text(errors="replace") for path in host_sources()[1]]
    except (FairtrialError, OSError):
        return []


def _answer(command: tuple[str, ...]) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=ASK_SECONDS, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""
