"""The accelerator is found once per boot of the host."""

from __future__ import annotations

from pathlib import Path

import pytest

from controller.adapters import qemu_accelerator
from controller.adapters.qemu_accelerator import AcceleratorProbe
from controller.adapters.qemu_process import Accelerator


def test_an_answer_of_this_boot_is_kept_and_one_of_another_boot_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    boot, cache = tmp_path / "boot_id", tmp_path / "state" / "accelerator.json"
    monkeypatch.setattr(qemu_accelerator, "BOOT_ID", boot)
    monkeypatch.setattr(qemu_accelerator, "KVM_DEVICE", tmp_path / "no-kvm")
    boot.write_text("boot-1\n")
    cache.parent.mkdir()
    kept = AcceleratorProbe(boot_id="boot-1", accelerator=Accelerator.KVM, reason="a kernel booted under KVM")
    cache.write_text(kept.model_dump_json())
    assert qemu_accelerator.accelerator(tmp_path / "kernel", cache) == kept
    boot.write_text("boot-2\n")
    found = qemu_accelerator.accelerator(tmp_path / "kernel", cache)
    assert (found.boot_id, found.accelerator) == ("boot-2", Accelerator.TCG)
    assert AcceleratorProbe.model_validate_json(cache.read_bytes()) == found
