"""The evidence ladder: which step the data reach. No step follows from a lower one, and none is claimed unseen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from controller.protocols.optimizer_matrix.estimates import EvidenceStep

SELECTION: Final = "public-random selection"


@dataclass(frozen=True, slots=True)
class Reached:
    """What the analysis knows that bears on the ladder."""

    measured: bool
    planted_kinds_complete: bool
    false_passes: int
    calibrated: bool  # some measured run outside the holdouts has proofs of its model and a known cost
    frozen_plan: bool  # given, and its digest is the one that the rows name
    selection: bool  # the plan names the publicly selected holdout
    whole_shape: bool
    held_out_gate: bool


def ladder(facts: Reached) -> tuple[EvidenceStep, ...]:
    """All seven steps, in order."""
    contract = facts.planted_kinds_complete and not facts.false_passes
    preliminary = facts.measured and facts.frozen_plan and facts.whole_shape and facts.held_out_gate
    lacking = [
        text
        for met, text in (
            (facts.measured, "a rehearsal is no actual run"),
            (facts.frozen_plan, "no frozen plan whose digest the rows name"),
            (facts.whole_shape, "not the frozen shape of 120 runs"),
            (facts.held_out_gate, "the held-out gate does not pass"),
        )
        if not met
    ]
    elsewhere = "a dataset cannot show it: "
    steps = (
        (
            "contract proof",
            contract,
            "no planted case passed" if contract else "planted cases of all four kinds, none passing",
        ),
        ("calibration", facts.measured and facts.calibrated, "measured runs with proven models and known costs"),
        ("diagnostic pilot", False, f"{elsewhere}it is a record of its own"),
        (
            SELECTION,
            facts.selection and facts.frozen_plan,
            "the frozen plan names the selected holdout",
        ),
        ("preliminary evidence", preliminary, "; ".join(lacking) or "complete matrix, held-out gate passed"),
        ("clean verification", False, f"{elsewhere}check the bundle on a clean machine"),
        ("grant claim", False, "only what steps 5 and 6 support"),
    )
    return tuple(
        EvidenceStep(number=number, name=name, shown=shown, detail=detail)
        for number, (name, shown, detail) in enumerate(steps, start=1)
    )


def step_reached(steps: tuple[EvidenceStep, ...]) -> int:
    """The highest step that the data show; 0 when they show none."""
    return max((step.number for step in steps if step.shown), default=0)
