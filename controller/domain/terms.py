"""The terms of every counted run that no protocol changes, each as a record that the manifest freezes.

Fields with one possible value say what the engine does and always did: a reader of a manifest need not know our code.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, Literal

from pydantic import Field

from controller.domain.ids import Digest, Slug
from controller.domain.limits import ATTEMPTS_PER_LOGICAL_RUN_MAX
from controller.domain.outcome import RETRYABLE, EndKind
from controller.domain.record import Record
from controller.domain.stops import StopEvent

WHY_CHARS_MIN: Final = 10  # of the reason of an amendment: a word explains nothing


class InvalidationCause(StrEnum):
    """Why an attempt makes its logical run measurement-invalid."""

    REQUEST_IN_FLIGHT = "request-in-flight"  # when its account was written
    REQUEST_UNKNOWN = "request-unknown"  # ended, with neither a usage record nor a zero-bill proof
    MODEL_OFF_LANE = "model-off-lane"  # another model answered
    USAGE_REPORT_REFUTES = "usage-report-refutes"  # the provider's report contradicts the account
    NOT_RETRIED = "not-retried"  # its cost became known when the try that was due could no longer be made


class LanePolicy(Record):
    """How a lane is kept to its one model: the meter forwards to these hosts and to no others."""

    fallback: Literal["off"] = "off"
    upstreams: dict[Slug, str] = Field(min_length=1)  # by provider
    request_off_lane: Literal["refused"] = "refused"
    answer_off_lane: Literal["unknown-cost"] = "unknown-cost"  # and the round stops


class CleanStart(Record):
    """What an attempt finds: a machine of its own, and nothing that any other run left."""

    machine: Literal["new"] = "new"
    home: Literal["empty"] = "empty"  # but for the files of the arm's launch contract
    repository: Literal["one-commit"] = "one-commit"  # without history
    sessions: Literal["none"] = "none"
    compiler_output: Literal["none"] = "none"
    caches: Literal["none"] = "none"


class Machines(Record):
    """The families of machine images, by their names among the manifest's images."""

    runner: Slug = "vm-runner"
    verifier: Slug = "vm-verifier"  # without a network
    destroyed: Literal["when the result is acknowledged"] = "when the result is acknowledged"


class RetryRule(Record):
    """Which ends of an attempt are tried again, and how often. A normal answer never is."""

    attempts_max: Literal[3] = ATTEMPTS_PER_LOGICAL_RUN_MAX
    retried: tuple[EndKind, ...] = tuple(sorted(RETRYABLE))


class Rubric(Record):
    """What a success is. Programs decide it; no person grades an output."""

    end: Literal["normal"] = "normal"
    gates: tuple[str, ...] = Field(min_length=1)  # of the verdict, in order; every one must pass
    settled: Literal["every attempt"] = "every attempt"  # whose requests must all have their usage or a zero-bill proof
    would_have_passed: Literal["recorded"] = "recorded"  # a patch that passes after another end, and is no success


class InvalidationRules(Record):
    """What makes a logical run measurement-invalid, in whichever of its attempts. It stays in the denominator."""

    causes: tuple[InvalidationCause, ...] = tuple(InvalidationCause)
    counts_as: Literal["no success"] = "no success"
    repaired_by: Literal["the provider's usage report"] = "the provider's usage report"  # never by a later attempt


class StopRules(Record):
    """The predeclared events that end a round early; who is winning is not among them."""

    excused_percent_max: int = Field(default=5, ge=0, le=100)  # infrastructure and provider errors, of all attempts
    # Attempts whose account did not settle. One costs its logical run; that many say that the meter itself fails.
    unreconciled_percent_max: int = Field(default=5, ge=0, le=100)
    attempts_before_share: int = Field(default=40, ge=1)
    events: tuple[StopEvent, ...] = tuple(StopEvent)


class Amendment(Record):
    """The manifest that this one takes the place of, and why. Each is a round of its own; they are never pooled."""

    round_id: Slug
    manifest_digest: Digest
    why: str = Field(min_length=WHY_CHARS_MIN, max_length=2_000)
