"""The whole result as text."""

from __future__ import annotations

from controller.protocols.optimizer_matrix.estimates import Condition, OptimizerAnalysis

_MARKS = {True: "ok ", False: "NO ", None: " ? "}


def describe(found: OptimizerAnalysis) -> str:
    """The conclusion, every policy, every gate with its numbers, the ladder and what to keep in mind."""
    lines = [found.conclusion, ""]
    for policy in found.policies:
        held_out = policy.held_out
        lines.append(
            f"{policy.policy} ({policy.role}): {policy.verified} of {policy.runs} verified, "
            f"{policy.attempts} attempts, total cost {policy.costs.shown}; "
            f"held out: {held_out.verified} of {held_out.runs}, median cost {held_out.costs.median or 'unknown'}"
        )
    for gate in (found.frontier, found.funded, found.historical):
        lines += ["", f"{gate.name}: {'passes' if gate.passed else 'does not pass'}"]
        lines += [_line(condition) for condition in gate.conditions]
    lines += ["", "prompt-only, a diagnostic outside the funded target", *(_line(one) for one in found.prompt_only)]
    lines += [
        "",
        *(_line(Condition(name=f"{s.number} {s.name}", passed=s.shown, detail=s.detail)) for s in found.ladder),
    ]
    return "\n".join([*lines, "", *(f"- {text}" for text in found.limitations)])


def _line(condition: Condition) -> str:
    return f"{_MARKS[condition.passed]} {condition.name}: {condition.detail}"
