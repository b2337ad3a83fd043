"""What a request may do, decided before anything is accepted. Pure.

Input: method, path, query, headers and body as they came. Output: a route, the run token, and the bytes to forward with
every change made to them; or a refusal. A field that is not on the dialect's list is refused, never dropped.

Refusals are 400, 401, 403 or 404 in the dialect's own error form: harnesses retry 408, 409, 429 and 5xx, and a refusal
must not be retried.
"""

from __future__ import annotations

from controller.meter.admission.body import BODY_BYTES_MAX, Admitted, admit
from controller.meter.admission.credentials import token_of, without_key
from controller.meter.admission.refusals import Refused, refusal_body
from controller.meter.admission.routes import ROUTES, Operation, Route, dialect_of_path, find_route

__all__ = [
    "BODY_BYTES_MAX",
    "ROUTES",
    "Admitted",
    "Operation",
    "Refused",
    "Route",
    "admit",
    "dialect_of_path",
    "find_route",
    "refusal_body",
    "token_of",
    "without_key",
]
