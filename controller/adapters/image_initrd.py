"""A small initrd, written without outside programs: busybox, our init and the modules that reach the root disk."""

from __future__ import annotations

import gzip
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from controller.errors import ImageRecipeFailed

_DIRECTORIES: Final = ("bin", "dev", "modules", "proc", "root", "sys")


def build_initrd(rootfs: Path, *, init: bytes, modules: Sequence[str]) -> bytes:
    """Gzipped newc archive. `modules` are names without `.ko`; their dependencies are added in load order.

    Raises ImageRecipeFailed when the root file system lacks busybox or a named module.
    """
    kernel = kernel_version(rootfs)
    files = _module_files(rootfs / "usr/lib/modules" / kernel, modules)
    busybox = rootfs / "usr/bin/busybox"
    if not busybox.is_file():
        raise ImageRecipeFailed(f"{busybox}: the root file system has no static busybox")
    entries: list[tuple[str, int, bytes]] = [(name, stat.S_IFDIR | 0o755, b"") for name in _DIRECTORIES]
    entries.append(("bin/busybox", stat.S_IFREG | 0o755, busybox.read_bytes()))
    entries.append(("init", stat.S_IFREG | 0o755, init))
    entries.extend((f"modules/{file.name}", stat.S_IFREG | 0o644, file.read_bytes()) for file in files)
    order = "".join(f"{file.name}\n" for file in files).encode()
    entries.append(("modules/order", stat.S_IFREG | 0o644, order))
    return gzip.compress(b"".join(_newc(entries)), compresslevel=6, mtime=0)


def kernel_version(rootfs: Path) -> str:
    """The one kernel installed in the root file system. Raises ImageRecipeFailed unless there is exactly one."""
    versions = sorted(path.name for path in (rootfs / "usr/lib/modules").glob("*") if path.is_dir())
    if len(versions) != 1:
        raise ImageRecipeFailed(f"{rootfs}/usr/lib/modules: expected one kernel, found {versions}")
    return versions[0]


def _module_files(directory: Path, names: Sequence[str]) -> tuple[Path, ...]:
    depends: dict[str, list[str]] = {}
    paths: dict[str, str] = {}
    for line in (directory / "modules.dep").read_text(encoding="ascii").splitlines():
        path, _, rest = line.partition(":")
        depends[path] = rest.split()
        paths[_module_name(path)] = path
    builtin = {_module_name(line) for line in (directory / "modules.builtin").read_text(encoding="ascii").splitlines()}
    order: list[str] = []
    for name in names:
        if name in builtin:
            continue
        if name not in paths:
            raise ImageRecipeFailed(f"{directory}: no module {name}")
        # modules.dep lists what a module needs, nearest first, so the reverse is a load order.
        for path in [*reversed(depends[paths[name]]), paths[name]]:
            if path not in order:
                order.append(path)
    return tuple(directory / path for path in order)


def _module_name(path: str) -> str:
    return path.rsplit("/", 1)[-1].partition(".ko")[0].replace("-", "_")


def _newc(entries: Sequence[tuple[str, int, bytes]]) -> Iterator[bytes]:
    for number, (name, mode, data) in enumerate([*entries, ("TRAILER!!!", 0, b"")], start=1):
        encoded = name.encode() + b"\0"
        links = 1 if mode else 0
        fields = (number, mode, 0, 0, links, 0, len(data), 0, 0, 0, 0, len(encoded), 0)
        header = b"070701" + b"".join(b"%08X" % field for field in fields)
        yield header + encoded + b"\0" * (-(len(header) + len(encoded)) % 4)
        yield data + b"\0" * (-len(data) % 4)
