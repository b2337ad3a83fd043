"""What goes into the published log says nothing about this machine."""

from __future__ import annotations

import pytest

from controller.conductor.attempt import REASON_CHARS_MAX, without_paths


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("no space on /srv/data/state/pool/overlay.qcow2", "no space on overlay.qcow2"),
        ("socket '/tmp/fairtrial-0/ab/egress.sock': refused", "socket 'egress.sock': refused"),
        ("ratio 3/4 and a/b stay", "ratio 3/4 and a/b stay"),
        ("expected 200, found 403", "expected 200, found 403"),
    ],
)
def test_absolute_paths_are_cut_down(text: str, expected: str) -> None:
    assert without_paths(text) == expected


def test_a_reason_is_bounded() -> None:
    assert len(without_paths("x" * 10_000)) == REASON_CHARS_MAX
