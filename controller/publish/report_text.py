"""Text for a report's reader: untrusted strings made harmless to the eye, exact shares made readable."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Final

from controller.domain.exact import decimal_text
from controller.protocols.harness_round.decision import Decision
from controller.protocols.harness_round.show import shown

TEXT_MAX: Final = 600  # of one untrusted string; the whole stands in the dataset
# C0 and C1 controls, soft and zero-width characters, and everything that turns the direction of a line.
_UNSEEN: Final = re.compile(
    "[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]"
)


def plain(text: object) -> str:
    """Text as a reader may see it: unseen and direction-turning characters become U+FFFD, and a long one is cut."""
    visible = _UNSEEN.sub("\ufffd", str(text))
    return visible if len(visible) <= TEXT_MAX else f"{visible[:TEXT_MAX]}…"


def percent(share: str) -> str:
    """An exact share such as "2/3" as `66.7 %`."""
    return shown(Fraction(share), "share")


def letter(place: int) -> str:
    """A to Z, then AA, AB and so on."""
    return (letter(place // 26 - 1) if place >= 26 else "") + chr(ord("A") + place % 26)


def verdict(decision: Decision, keys: Mapping[str, str]) -> str:
    """The decision in few words, by the winner's letter; empty when there is no reliable difference."""
    if decision.winner is None:
        return ""
    how = {"success": "more successful", "cost": "cheaper per success", "time": "faster at p90"}[decision.rule]
    return f"{keys[decision.winner]} {how}"


def signed_points(share: Fraction) -> str:
    """A difference of shares in whole percentage points, as `+5` or `−5`."""
    return ("+" if share > 0 else "") + decimal_text(100 * share, 0).replace("-", "−")
