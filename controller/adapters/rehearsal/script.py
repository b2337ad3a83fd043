"""A task's rehearsal script: what the scripted model says and runs, turn by turn, in each of several variants.

The file is `rehearsal.json` in a task directory. A variant is a list of steps. Every step but the last runs one shell
command; the last one either says that the work is done or fails the way a provider fails:

    {"say": "Let me look.", "run": "sed -n 1,40p pkg/core.py"}   one turn: text, then one command
    {"say": "Done."}                                             the end, in whatever way the harness ends normally
    {"status": 529}                                              the provider answers with this error status
    {"say": "Let me", "truncate": true}                          the stream breaks off before its end

Any step may carry `sleep_ms`: how long the model thinks before it answers.

Commands run in the repository's root. Harnesses differ in the shell they use (mini-swe-agent: `sh`, Codex: the user's
login shell), so write them for POSIX `sh`, and let each end by itself within a few seconds.
"""

from __future__ import annotations

import hashlib
from typing import Annotated, Final, Literal, Self

from pydantic import Field, StringConstraints, ValidationError, model_validator

from controller.domain.ids import SLUG_PATTERN
from controller.domain.record import Record, field_faults
from controller.errors import InvalidTask

PASSING_VARIANT: Final = "pass"
DEFAULT_ARM: Final = "default"
STEPS_MAX: Final = 40  # a harness may spend 60 requests in an attempt; a script leaves it room
SLEEP_MS_MAX: Final = 60_000

Percent = Annotated[int, Field(ge=0, le=100)]
VariantName = Annotated[str, StringConstraints(pattern=SLUG_PATTERN)]


class Step(Record):
    """One turn of the scripted model. See the module's docstring for the four forms."""

    say: str = ""
    run: str | None = Field(default=None, min_length=1)
    status: Literal[400, 401, 403, 404, 413, 429, 500, 502, 503, 504, 529] | None = None
    truncate: bool = False
    sleep_ms: int = Field(default=0, ge=0, le=SLEEP_MS_MAX)

    @property
    def is_failure(self) -> bool:
        """True when the provider fails at this step, so that no later step can be reached."""
        return self.status is not None or self.truncate

    @model_validator(mode="after")
    def _check_form(self) -> Self:
        if self.status is not None and (self.say or self.run or self.truncate):
            raise ValueError("a step with `status` answers with that error and has no `say`, `run` or `truncate`")
        if self.truncate and self.run:
            raise ValueError("a step with `truncate` breaks off its text and has no `run`")
        if not (self.say or self.run or self.is_failure):
            raise ValueError("a step needs `say`, `run`, `status` or `truncate`")
        return self


class RehearsalScript(Record):
    """All variants of one task and how often each is played.

    `pass_percent` maps an arm to the chance of the variant `pass`, in percent; `default` holds for arms it does not
    name. The other variants share the rest by `weights` (1 for a variant that is not named there).
    """

    schema_version: Literal["fairtrial.rehearsal/1"] = Field(alias="schema")
    pass_percent: dict[str, Percent]
    variants: dict[VariantName, tuple[Step, ...]]
    weights: dict[VariantName, Annotated[int, Field(ge=0, le=1000)]] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check_variants(self) -> Self:
        if DEFAULT_ARM not in self.pass_percent:
            raise ValueError(f"pass_percent needs an entry `{DEFAULT_ARM}`")
        if PASSING_VARIANT not in self.variants:
            raise ValueError(f"variants needs an entry `{PASSING_VARIANT}`")
        if unknown := sorted(self.weights.keys() - self.variants.keys() | self.weights.keys() & {PASSING_VARIANT}):
            raise ValueError(f"weights names {', '.join(unknown)}: it may name only variants other than `pass`")
        if any(percent < 100 for percent in self.pass_percent.values()) and not self._weighted_others():
            raise ValueError("pass_percent is below 100, so another variant with a weight above 0 is needed")
        for name, steps in self.variants.items():
            _check_steps(name, steps)
        return self

    def _weighted_others(self) -> list[tuple[str, int]]:
        names = sorted(self.variants.keys() - {PASSING_VARIANT})
        return [(name, self.weights.get(name, 1)) for name in names if self.weights.get(name, 1) > 0]

    def choose_variant(self, *, chance_seed: str, task: str, arm: str, replicate: int, attempt: int) -> str:
        """The name of the variant that this attempt plays: a pure function of its arguments and the script."""
        label = f"fairtrial.rehearsal/1|{chance_seed}|{task}|{arm}|{replicate}|{attempt}"
        drawn = hashlib.sha256(label.encode()).digest()
        percent = self.pass_percent.get(arm, self.pass_percent[DEFAULT_ARM])
        if int.from_bytes(drawn[:8], "big") % 100 < percent:
            return PASSING_VARIANT
        others = self._weighted_others()
        place = int.from_bytes(drawn[8:16], "big") % sum(weight for _, weight in others)
        for name, weight in others:
            if place < weight:
                return name
            place -= weight
        raise AssertionError("the weights cover every place")


def _check_steps(name: str, steps: tuple[Step, ...]) -> None:
    if not 1 <= len(steps) <= STEPS_MAX:
        raise ValueError(f"variant {name}: 1 to {STEPS_MAX} steps, not {len(steps)}")
    for number, step in enumerate(steps[:-1], start=1):
        if step.run is None:
            raise ValueError(f"variant {name}, step {number}: only the last step may do without `run`")
    if steps[-1].run is not None:
        raise ValueError(f"variant {name}: the last step ends the attempt, so it has no `run`")


def parse_script(data: bytes, *, origin: str) -> RehearsalScript:
    """The script in `data`; `origin` is the file's name for messages.

    Raises InvalidTask naming every fault with its file and field.
    """
    try:
        return RehearsalScript.model_validate_json(data)
    except ValidationError as error:
        raise InvalidTask("\n".join(f"{origin}: {fault}" for fault in field_faults(error))) from error
