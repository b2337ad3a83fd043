"""Take out of an excerpt what names a place or a person: paths, users, hosts, addresses. Pure.

Paths are judged by a list of roots that are the same in every container; any other absolute path is replaced whole.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

# Where an attempt and its verification work inside their machines.
_NAMED_ROOTS: Final = {
    "/home/agent": "<home>",
    "/opt/harness": "<harness>",
    "/tmp": "<tmp>",  # noqa: S108  the name of a root in somebody's text
    "/var/lib/fairtrial/verify/repository": "<repository>",
    "/var/lib/fairtrial/verify": "<verifier>",
    "/workspace": "<workspace>",
}
_COMMON_ROOTS: Final = frozenset({"bin", "dev", "etc", "lib", "lib64", "proc", "sbin", "sys", "usr"})
_PATH: Final = re.compile(r"(?:\bfile://|(?<=-[A-Z])|(?<![\w./~%]))/(?:[\w.@%+~-]+/)*[\w.@%+~-]*[\w@%+~-]")
_HOME: Final = re.compile(r"(?<![\w/])~[\w-]*(?=/)")
_WINDOWS: Final = re.compile(r"(?<!\w)(?:[A-Za-z]:\\{1,4}|\\{2,4}[\w.-]+\\{1,4})[\w.@%+~$-]+(?:\\{1,4}[\w.@%+~$-]+)*")
_EMAIL: Final = re.compile(r"[\w.+-]+@[\w-]+(?:(?:\.[\w-]+)+|(?=:))")
_IPV4: Final = re.compile(r"(?<![\w.])(?:[0-9]{1,3}\.){3}[0-9]{1,3}(?![\w.])")
_IPV6: Final = re.compile(
    r"(?<![\w:.])[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7}(?:(?:[0-9]{1,3}\.){3}[0-9]{1,3})?(?![\w:]|\.[0-9])"
)
_IPV6_DIGITS_MIN: Final = 5  # fewer are an empty slice, a time or a namespace of some language
# Names that tell nobody from anybody; they stand in every text.
_GENERIC: Final = frozenset({"admin", "agent", "debian", "localhost", "root", "runner", "ubuntu", "user", "vagrant"})
NAME_CHARS_MIN: Final = 3


@dataclass(frozen=True)
class Names:
    """Users and hosts of the controller's machine."""

    users: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()


def rewrite(text: str, names: Names) -> str:
    """The text with `<path>`, `<email>`, `<ip>`, `<user>` and `<host>` in the places of such things."""
    text = _EMAIL.sub("<email>", text)
    text = _PATH.sub(_path, text)
    text = _HOME.sub("<home>", text)
    text = _WINDOWS.sub("<path>", text)
    text = _IPV6.sub(_address, text)
    text = _IPV4.sub(_address, text)
    text = _named(text, names.users, "<user>")
    return _named(text, names.hosts, "<host>")


def printable(text: str) -> str:
    """Printable ASCII with line breaks and tabs; anything else as an escape."""
    return "".join(c if " " <= c <= "~" or c in "\n\t" else c.encode("unicode_escape").decode() for c in text)


def _path(match: re.Match[str]) -> str:
    path = match.group().removeprefix("file://")
    for root, name in _NAMED_ROOTS.items():
        if path == root or path.startswith(f"{root}/"):
            return name + path[len(root) :]
    parts = path.split("/")[1:]
    if ".." not in parts and (len(parts) == 1 or parts[0] in _COMMON_ROOTS):
        return match.group()  # one component is a route or a root of the system, and tells no place
    return "<path>"


def _address(match: re.Match[str]) -> str:
    found = match.group()
    try:
        address = ipaddress.ip_address(found)
    except ValueError:
        return found
    if address.is_loopback or address.is_unspecified:
        return found
    if address.version == 6 and sum(char in "0123456789abcdefABCDEF" for char in found) < _IPV6_DIGITS_MIN:
        return found
    return "<ip>"


def _named(text: str, names: Iterable[str], label: str) -> str:
    for name in names:
        if len(name) >= NAME_CHARS_MIN and name.lower() not in _GENERIC:
            text = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", label, text, flags=re.IGNORECASE)
    return text
