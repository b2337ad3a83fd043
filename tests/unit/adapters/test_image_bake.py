"""The initrd's bytes, and the shift of ownership into the runner's subordinate ids."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

from controller.adapters.image_bake import read_recipe, shift_ownership
from controller.adapters.image_initrd import build_initrd
from controller.adapters.image_store import RECIPES
from controller.errors import ImageRecipeFailed


def make_rootfs(root: Path) -> Path:
    modules = root / "usr/lib/modules/6.1.0-test"
    (modules / "drivers").mkdir(parents=True)
    for name in ("ring", "virtio-pci", "virtio_blk"):
        (modules / "drivers" / f"{name}.ko").write_bytes(name.encode())
    (modules / "modules.dep").write_text(
        "drivers/ring.ko:\ndrivers/virtio-pci.ko: drivers/ring.ko\ndrivers/virtio_blk.ko: drivers/ring.ko\n"
    )
    (modules / "modules.builtin").write_text("kernel/fs/ext4.ko\n")
    (root / "usr/bin").mkdir(parents=True)
    (root / "usr/bin/busybox").write_bytes(b"#!busybox")
    return root


def read_newc(archive: bytes) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    offset = 0
    while True:
        assert archive[offset : offset + 6] == b"070701"
        fields = [int(archive[offset + 6 + 8 * n : offset + 14 + 8 * n], 16) for n in range(13)]
        name = archive[offset + 110 : offset + 110 + fields[11] - 1].decode()
        start = (offset + 110 + fields[11] + 3) // 4 * 4
        if name == "TRAILER!!!":
            return files
        files[name] = archive[start : start + fields[6]]
        offset = (start + fields[6] + 3) // 4 * 4


def test_the_initrd_loads_dependencies_first_and_nothing_built_in(tmp_path: Path) -> None:
    built = build_initrd(make_rootfs(tmp_path), init=b"#!init", modules=["virtio_pci", "ext4", "virtio_blk"])
    files = read_newc(gzip.decompress(built))
    assert files["modules/order"] == b"ring.ko\nvirtio-pci.ko\nvirtio_blk.ko\n"
    assert (files["init"], files["modules/ring.ko"], files["bin/busybox"]) == (b"#!init", b"ring", b"#!busybox")
    assert built == build_initrd(tmp_path, init=b"#!init", modules=["virtio_pci", "ext4", "virtio_blk"])


def test_a_module_that_is_not_there_fails_the_recipe(tmp_path: Path) -> None:
    with pytest.raises(ImageRecipeFailed, match="no module zfs"):
        build_initrd(make_rootfs(tmp_path), init=b"", modules=["zfs"])


@pytest.mark.skipif(os.geteuid() != 0, reason="changing owners needs root")
def test_root_becomes_the_runner_and_others_its_subordinates(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "file").write_bytes(b"x")
    (tmp_path / "link").symlink_to("d")
    os.chown(tmp_path / "d" / "file", 1000, 33)
    (tmp_path / "d" / "file").chmod(0o4755)
    shift_ownership(tmp_path)
    owners = {name: (tmp_path / name).lstat() for name in (".", "d", "d/file", "link")}
    assert {name: (status.st_uid, status.st_gid) for name, status in owners.items()} == {
        ".": (1000, 1000),
        "d": (1000, 1000),
        "d/file": (100_999, 100_032),
        "link": (1000, 1000),
    }
    assert owners["d/file"].st_mode & 0o7777 == 0o4755


def test_the_recipe_of_this_repository_is_valid_and_faults_are_named(tmp_path: Path) -> None:
    assert "podman" in read_recipe(RECIPES / "vm" / "recipe.toml").packages
    bad = tmp_path / "recipe.toml"
    bad.write_text("packages = []\n")
    with pytest.raises(ImageRecipeFailed, match=r"recipe\.toml"):
        read_recipe(bad)
