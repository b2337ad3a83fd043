"""Settings come from the environment, are checked, and suit the machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from controller.errors import InvalidInput
from controller.settings import fleet_size, read_settings

GIB = 2**30


@pytest.mark.parametrize(
    ("cpus", "memory", "machines"), [(2, 24 * GIB, 2), (8, 24 * GIB, 2), (1, 64 * GIB, 1), (4, 4 * GIB, 1)]
)
def test_one_machine_per_processor_as_far_as_memory_allows(cpus: int, memory: int, machines: int) -> None:
    assert fleet_size(cpus, memory) == machines


def test_the_environment_decides_and_paths_become_absolute() -> None:
    found = read_settings({"FAIRTRIAL_FLEET_SIZE": "7", "FAIRTRIAL_STATE_DIR": "here", "FAIRTRIAL_POOL": "podman"})
    assert (found.fleet_size, found.pool) == (7, "podman")
    assert found.state_dir == Path("here").absolute()
    assert found.images_dir.is_relative_to(found.state_dir)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("FLEET_SIZE", "many"),
        ("FLEET_SIZE", "0"),
        ("FLEET_SIZE", "9" * 5000),
        ("FLEET_SIZE", "\u00b2"),
        ("FLEET_SIZE", ""),
        ("POOL", "moon"),
        ("FREE_DISK_BYTES_MIN", "-1x"),
        ("SERVICE_LIFETIME_SECONDS", "0"),
        ("STATE_DIR", ""),
    ],
)
def test_a_bad_value_is_refused_by_name(name: str, value: str) -> None:
    with pytest.raises(InvalidInput, match=f"FAIRTRIAL_{name}"):
        read_settings({f"FAIRTRIAL_{name}": value})
