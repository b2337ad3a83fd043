"""The meter's decisions, without its sockets.

Purpose: say what a request may do (`admission`, `headers`), what a response cost (`dialects`, `pricing`), and which one
final state an accepted request ends in (`rules`). Input: bytes of requests and responses, the lane, the rate card.
Output: an admission or a refusal; a final state with exact cost, a named zero-bill proof, or UNKNOWN.
Invariants: classes never overlap; a counter that is not understood prices nothing; unknown is not zero; nothing here
reads a clock, a socket or a file.
"""

from __future__ import annotations

from controller.meter.cases import run_case, run_cases
from controller.meter.pricing import Priced, price_usage

__all__ = ["Priced", "price_usage", "run_case", "run_cases"]
