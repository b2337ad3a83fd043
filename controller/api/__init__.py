"""The result API: where a guest puts its named artifacts, once each, under a write-only token.

An acknowledgement means durable: file and directory are fsynced before it leaves. Nothing can be read or listed here.
"""

from __future__ import annotations

from controller.api.app import ResultsConfig, serve

__all__ = ["ResultsConfig", "serve"]
