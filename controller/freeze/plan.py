"""PLAN.yaml: what a person writes before a round, parsed strictly, with every problem named at once."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Annotated, Any, Final, Literal

from pydantic import Field, StringConstraints, ValidationError

from controller.domain.authorization import Caps
from controller.domain.ids import Slug
from controller.domain.limits import ArtifactLimits, SandboxLimits, SpendLimits
from controller.domain.plan import REHEARSAL_PROVIDER, Lane
from controller.domain.record import Record, field_path
from controller.errors import InvalidPlan
from controller.freeze.sections import CostIndexSection, OptimizerSection, RelativePath
from controller.freeze.yaml_strict import StrictYamlError, load_yaml

GENERATE: Final = "generate"  # as a seed: draw one at freeze
# The section that a plan of each protocol has, and no other plan; harness-round needs none.
SECTIONS: Final[Mapping[str, str]] = {"cost-index": "cost_index", "optimizer-matrix": "optimizer_matrix"}


class PlanArm(Record):
    """An arm as planned; harness version, image and dialect are added at freeze."""

    id: Slug
    title: str = Field(min_length=1, max_length=80)
    harness: Slug
    lane: Slug
    settings: dict[str, str] = Field(default_factory=dict)
    is_own: bool = False


class PlanLimits(Record):
    """Limits of a rehearsal; a measured round keeps the protocol's fixed values."""

    sandbox: SandboxLimits = SandboxLimits()
    spend: SpendLimits = SpendLimits()
    artifacts: ArtifactLimits = ArtifactLimits()


class RoundPlan(Record):
    """The whole file. Paths are relative to it."""

    round_id: Slug
    title: str = Field(min_length=1, max_length=200)
    protocol: Literal["harness-round", "cost-index", "optimizer-matrix"]
    kind: Literal["rehearsal", "measured"]
    seed: Annotated[str, StringConstraints(pattern=rf"^([0-9a-f]{{64}}|{GENERATE})$")]
    replicates: int = Field(ge=1, le=10)
    tasks: tuple[RelativePath, ...] = ()
    sealed: tuple[RelativePath, ...] = ()  # stores of sealed tasks, each as a whole
    arms: tuple[PlanArm, ...] = Field(min_length=2)
    lanes: tuple[Lane, ...] = Field(min_length=1)
    rate_card: RelativePath
    retail_policy: RelativePath | None = None
    exclusions: tuple[Annotated[str, StringConstraints(min_length=1, max_length=500)], ...] = ()
    approvers: RelativePath | None = None  # a file of public keys, in the form of a bundle's keys.json
    envelope: Caps | None = None  # default: every attempt that the retry rule allows, each with its ceilings
    limits: PlanLimits = PlanLimits()
    comparisons: Literal["all-pairs"] = "all-pairs"
    cost_index: CostIndexSection | None = None
    optimizer_matrix: OptimizerSection | None = None


def parse_plan(data: bytes, where: str) -> RoundPlan:
    """The plan in these bytes. `where` is the file's name in messages.

    Raises InvalidPlan with one line per problem, each naming file, field and rule.
    """
    try:
        raw, repeated = load_yaml(data)
    except StrictYamlError as error:
        raise InvalidPlan(f"{where}: {error}") from error
    found = [*repeated]
    plan: RoundPlan | None = None
    try:
        plan = RoundPlan.model_validate_json(json.dumps(raw))
    except (TypeError, ValueError, ValidationError) as error:
        found += _schema_problems(error)
    found += _cross_problems(raw) if isinstance(raw, dict) else []
    if found or plan is None:
        raise InvalidPlan("\n".join(f"{where}: {problem}" for problem in found))
    return plan


def _schema_problems(error: Exception) -> list[str]:
    if not isinstance(error, ValidationError):
        return [f"not a plain mapping of text, numbers and lists ({error})"]
    return [
        f"{field_path(item['loc']) or 'the file'}: {item['msg']}"
        + (f" (found {item['input']!r:.60})" if item["type"] != "missing" else "")
        for item in error.errors(include_url=False)
    ]


def _listed(raw: Mapping[str, Any], field: str) -> list[Any]:
    """The items of a list field; whatever is malformed was already reported by the schema."""
    value = raw.get(field)
    return value if isinstance(value, list) else []


def _rows(raw: Mapping[str, Any], field: str) -> list[tuple[str, dict[str, Any]]]:
    """The mappings in a list field with their places."""
    return [(f"{field}[{i}]", item) for i, item in enumerate(_listed(raw, field)) if isinstance(item, dict)]


def _cross_problems(raw: Mapping[str, Any]) -> Iterator[str]:
    """Rules between fields, on the raw values, so that they are reported beside the schema's own problems."""
    arms, lanes = _rows(raw, "arms"), _rows(raw, "lanes")
    for field, rows in (("arms", arms), ("lanes", lanes)):
        counts = Counter(str(row.get("id")) for _, row in rows)
        yield from (f"{field}: id {name!r} appears {count} times" for name, count in counts.items() if count > 1)
    lane_ids = {str(row.get("id")) for _, row in lanes}
    for place, arm in arms:
        if "lane" in arm and str(arm["lane"]) not in lane_ids:
            yield f"{place}.lane: there is no lane {arm['lane']!r}; known: {', '.join(sorted(lane_ids)) or 'none'}"
    for place, lane in lanes:
        if lane.get("observed_models") == []:
            yield f"{place}.observed_models: name at least one model the provider may answer as"
        yield from _provider_problems(raw.get("kind"), place, lane)
    if not raw.get("tasks") and not raw.get("sealed"):
        yield "tasks: name at least one directory here, or a store of sealed tasks under `sealed`"
    for place, path in _paths(raw):
        if isinstance(path, str) and PurePosixPath(path).is_absolute():
            yield f"{place}: {path!r} must be relative to the plan, so that the plan means the same everywhere"
    yield from _protocol_problems(raw)


def _paths(raw: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Every field that names a file or directories, with its place."""
    yield from ((name, raw.get(name)) for name in ("rate_card", "retail_policy", "approvers"))
    for field in ("tasks", "sealed"):
        yield from ((f"{field}[{i}]", path) for i, path in enumerate(_listed(raw, field)))
    section = raw.get("optimizer_matrix")
    if isinstance(section, dict):
        for field in ("calibration", "pilot"):
            yield from ((f"optimizer_matrix.{field}[{i}]", path) for i, path in enumerate(_listed(section, field)))


def _protocol_problems(raw: Mapping[str, Any]) -> Iterator[str]:
    protocol, measured = raw.get("protocol"), raw.get("kind") == "measured"
    for name, section in SECTIONS.items():
        if (raw.get(section) is not None) != (protocol == name):
            yield f"{section}: a plan of {name} has this section, and no other plan"
    if protocol == "harness-round":
        if measured and raw.get("limits"):
            yield "limits: a measured round keeps the protocol's fixed limits; leave the field out"
        if measured and raw.get("retail_policy") is None:
            yield "retail_policy: a measured round names the policy of its retail simulation"
    elif raw.get("comparisons") is not None:
        yield f"comparisons: {protocol} compares no pairs; leave the field out"
    if measured and protocol != "cost-index" and raw.get("replicates") != 3:
        yield "replicates: a measured round has exactly 3"
    if measured and raw.get("approvers") is None:
        yield "approvers: a measured round names the public keys of those who may approve its report"


def _provider_problems(kind: object, place: str, lane: Mapping[str, Any]) -> Iterator[str]:
    is_scripted = lane.get("provider") == REHEARSAL_PROVIDER
    if kind == "measured" and is_scripted:
        yield f"{place}.provider: the scripted model measures nothing; a measured round needs a real provider"
    if kind == "rehearsal" and not is_scripted:
        yield f"{place}.provider: a rehearsal uses the provider {REHEARSAL_PROVIDER!r} and no other"
