"""The metering proxy: the only holder of provider keys and the only way from a harness to a model.

It keeps the order that makes the account trustworthy: accept durably, mark as sent, forward untouched, read a copy to
the end whoever leaves, record exactly one final state.
"""

from __future__ import annotations

from controller.proxy.serve import serve

__all__ = ["serve"]
