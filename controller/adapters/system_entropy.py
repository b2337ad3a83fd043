"""The machine's own random generator."""

from __future__ import annotations

import secrets


class SystemEntropy:
    """The Entropy port over the operating system."""

    def token_bytes(self, count: int) -> bytes:
        """`count` unpredictable bytes."""
        return secrets.token_bytes(count)
