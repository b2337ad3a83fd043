"""What credentials look like: a tripwire. A finding stops the release and edits nothing.

The forms are those that their issuers document. Each has a prefix or a mark of its own, so that code and prose pass.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

_PATTERNS: Final[Mapping[str, bytes]] = {
    "a run-scoped token or canary": rb"\b(?:rt|up|canary)_[0-9a-f]{64}",
    "a bearer credential": rb"(?i:\bbearer)\s+[A-Za-z0-9._~+/=-]{20,}",
    "a private key": rb"-----BEGIN [A-Z ]{0,20}PRIVATE KEY(?: BLOCK)?-----",
    "an age identity": rb"\bAGE-SECRET-KEY-1[0-9A-Z]{58}",
    "a provider key": rb"\bsk-[A-Za-z0-9_-]{20,}",
    "a Google API key": rb"\bAIza[0-9A-Za-z_-]{35}",
    "a Google access token": rb"\bya29\.[0-9A-Za-z_-]{20,}",
    "a Groq key": rb"\bgsk_[A-Za-z0-9]{40,}",
    "an xAI key": rb"\bxai-[A-Za-z0-9]{60,}",
    "a Perplexity key": rb"\bpplx-[A-Za-z0-9]{40,}",
    "a Hugging Face token": rb"\bhf_[A-Za-z0-9]{34}\b",
    "a Replicate token": rb"\br8_[A-Za-z0-9]{37}\b",
    "an AWS key id": rb"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}\b",
    "an Azure storage key": rb"\bAccountKey=[A-Za-z0-9+/]{86}==",
    "a GitHub token": rb"\bgh[pousr]_[A-Za-z0-9]{36}|\bgithub_pat_[A-Za-z0-9_]{60,}",
    "a GitLab token": rb"\bglpat-[A-Za-z0-9_-]{20}",
    "a Slack token": rb"\bxox[abeoprs]-[A-Za-z0-9-]{10,}|hooks\.slack\.com/(?:services|workflows)/[A-Za-z0-9+/]{40,}",
    "a Stripe key": rb"\b[rs]k_(?:live|test|prod)_[A-Za-z0-9]{16,}",
    "an npm token": rb"\bnpm_[A-Za-z0-9]{36}\b",
    "a PyPI token": rb"\bpypi-AgEIcHlwaS5vcmc[A-Za-z0-9_-]{50,}",
    "a SendGrid key": rb"\bSG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}",
    "a Twilio key": rb"\bSK[0-9a-f]{32}\b",
    "a DigitalOcean token": rb"\bdo[opr]_v1_[0-9a-f]{64}",
    "a Telegram bot token": rb"\b[0-9]{8,10}:AA[A-Za-z0-9_-]{33}\b",
    "a JSON web token": rb"\bey[A-Za-z0-9_-]{17,}\.ey[A-Za-z0-9_-]{17,}\.[A-Za-z0-9_-]{10,}",
}
_COMPILED: Final = {kind: re.compile(pattern) for kind, pattern in _PATTERNS.items()}


def credentials(data: bytes) -> Iterator[str]:
    """Every kind of credential that the bytes seem to hold."""
    return (kind for kind, pattern in _COMPILED.items() if pattern.search(data))
