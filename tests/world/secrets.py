"""25 made-up secrets in 16 renderings each: 400 texts that must not show what they hold.

The secrets are put together at run time, so that no scanner of repositories takes this file for a leak. Every rendering
comes with its own way back, written without the code that is tested.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import string
import urllib.parse
from collections.abc import Callable, Mapping
from dataclasses import dataclass

ALNUM = string.ascii_letters + string.digits


def letters(label: str, count: int, alphabet: str = ALNUM) -> str:
    """`count` characters that look random and are the same every time."""
    stream = hashlib.shake_128(label.encode()).digest(2 * count)
    return "".join(alphabet[int.from_bytes(stream[2 * i : 2 * i + 2], "big") % len(alphabet)] for i in range(count))


def fakes() -> Mapping[str, str]:
    """By issuer."""
    hexes, upper = "0123456789abcdef", string.ascii_uppercase + "234567"
    urlsafe = ALNUM + "-_"

    def make(name: str, prefix: str, count: int, alphabet: str = ALNUM, suffix: str = "") -> tuple[str, str]:
        return name, prefix + letters(name, count, alphabet) + suffix

    jwt = ".".join(("ey" + "J" + letters("jwt1", 30), "ey" + "J" + letters("jwt2", 60), letters("jwt3", 43, urlsafe)))
    rows = letters("pem", 64) + "\n" + letters("pem2", 48)
    pem = "-----BEGIN " + "PRIVATE KEY-----\n" + rows + "\n-----END " + "PRIVATE KEY-----"
    return dict(
        (
            make("openai", "sk-" + "proj-", 48),
            make("anthropic", "sk-" + "ant-api03-", 80, urlsafe),
            make("openrouter", "sk-" + "or-v1-", 64, hexes),
            make("google", "AI" + "za", 35, urlsafe),
            make("google-oauth", "ya" + "29.", 60, urlsafe),
            make("groq", "gs" + "k_", 52),
            make("xai", "xa" + "i-", 80),
            make("perplexity", "pp" + "lx-", 48),
            make("hugging-face", "h" + "f_", 34),
            make("replicate", "r" + "8_", 37),
            make("aws-id", "AK" + "IA", 16, upper),
            make("aws-secret", "", 40, ALNUM + "/+"),
            make("azure", "Account" + "Key=", 86, ALNUM + "/+", "=="),
            make("github", "gh" + "p_", 36),
            make("github-fine", "github" + "_pat_", 82, ALNUM + "_"),
            make("gitlab", "gl" + "pat-", 20, urlsafe),
            make("slack", "xo" + "xb-", 50, ALNUM),
            make("stripe", "sk" + "_live_", 24),
            make("npm", "np" + "m_", 36),
            make("pypi", "py" + "pi-AgEIcHlwaS5vcmc", 80, urlsafe),
            ("jwt", jwt),
            ("pem", pem),
            make("meter-token", "r" + "t_", 64, hexes),
            make("upload-token", "u" + "p_", 64, hexes),
            make("canary", "cana" + "ry_", 64, hexes),
        )
    )


@dataclass(frozen=True)
class Rendering:
    """How a hostile program may print a secret, and how its reader gets it back."""

    show: Callable[[str], str]
    read: Callable[[str], str]


def _escapes(text: str) -> str:
    """`\\xNN`, `\\uNNNN` and their like turned into the characters."""
    return re.sub(r"\\x(..)|\\u(....)", lambda m: chr(int(m.group(1) or m.group(2), 16)), text)


def _hex(text: str) -> str:
    runs = re.findall(r"(?:[0-9a-fA-F]{2}[: ]?){4,}", text)
    return " ".join(bytes.fromhex(re.sub("[: ]", "", run)).decode("latin-1") for run in runs)


def _base64(text: str) -> str:
    """Everything that any run of base64 letters can mean, at each alignment."""
    text = text.replace("-", "+").replace("_", "/").replace("\n", "")
    found = []
    for run in re.findall(r"[A-Za-z0-9+/]{8,}", text):
        for skip in range(4):
            piece = run[skip:]
            piece = piece[: len(piece) // 4 * 4]
            try:
                found.append(base64.b64decode(piece).decode("latin-1"))
            except binascii.Error:
                continue
    return " ".join(found)


def _chunks(text: str, size: int) -> list[str]:
    return [text[place : place + size] for place in range(0, len(text), size)]


def _b64(text: str, before: bytes = b"") -> str:
    return base64.b64encode(before + text.encode() + b"!").decode()


RENDERINGS: Mapping[str, Rendering] = {
    "plain": Rendering(lambda s: f"key={s}", lambda t: t),
    "diff": Rendering(lambda s: f'@@ -1 +1 @@\n+TOKEN = "{s}"\n', lambda t: t),
    "python-repr": Rendering(lambda s: repr({"k": s.encode() + b"\n"}), lambda t: t),
    "json-escapes": Rendering(lambda s: "".join(f"\\u{ord(c):04x}" for c in s), _escapes),
    "byte-escapes": Rendering(lambda s: "".join(f"\\x{ord(c):02x}" for c in s), _escapes),
    "percent": Rendering(lambda s: "".join(f"%{ord(c):02X}" for c in s), urllib.parse.unquote),
    "hex": Rendering(lambda s: s.encode().hex(), _hex),
    "hex-upper-colons": Rendering(lambda s: ":".join(f"{b:02X}" for b in s.encode()), _hex),
    "base64-0": Rendering(_b64, _base64),
    "base64-1": Rendering(lambda s: _b64(s, b"u"), _base64),
    "base64-2-urlsafe": Rendering(lambda s: _b64(s, b"u:").replace("+", "-").replace("/", "_"), _base64),
    "base64-wrapped": Rendering(lambda s: "\n".join(_chunks(_b64(s), 20)), _base64),
    "reversed": Rendering(lambda s: s[::-1], lambda t: t[::-1]),
    "colours": Rendering(
        lambda s: "".join(f"\x1b[3{i % 8}m{c}" for i, c in enumerate(_chunks(s, 3))),
        lambda t: re.sub("\x1b\\[[0-9;]*m", "", t),
    ),
    "zero-width": Rendering(lambda s: "\u200b".join(s), lambda t: t.replace("\u200b", "")),
    "spaced-over-lines": Rendering(
        lambda s: "\n".join("+ " + " ".join(row) for row in _chunks(s, 9)), lambda t: re.sub(r"[+\s]", "", t)
    ),
}
