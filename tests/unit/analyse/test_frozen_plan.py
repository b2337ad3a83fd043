"""The analysis follows the manifest, and a measured round leaves no choice in it."""

from __future__ import annotations

import json

import pytest

from controller.analyse.plan import plan_of_manifest
from controller.freeze.rules import FreezeInputs, manifest_of
from controller.protocols.harness_round.manifest import HarnessRoundManifest
from tests.world.recorded_round import START, inputs


def _manifest(given: FreezeInputs) -> HarnessRoundManifest:
    found = manifest_of(given, at=START)
    assert isinstance(found, HarnessRoundManifest)
    return found


def test_the_manifest_says_which_arms_are_ours() -> None:
    given = inputs()
    own = given.arms[1].model_copy(update={"is_own": True})
    manifest = _manifest(given.model_copy(update={"arms": (given.arms[0], own)}))
    plan = plan_of_manifest(manifest)
    assert plan.own_arms == (own.id,)
    assert plan.comparisons == manifest.analysis.comparisons


@pytest.mark.parametrize(
    ("field", "value"),
    [("resamples", 9_999), ("margin_points", 4), ("saving_percent", 9), ("metrics", {"success_rate": "successes"})],
)
def test_a_measured_round_keeps_the_method_of_the_protocol(field: str, value: object) -> None:
    fields = _manifest(inputs(replicates=3)).model_dump(mode="json") | {"kind": "measured"}
    HarnessRoundManifest.model_validate_json(json.dumps(fields))
    fields["analysis"][field] = value
    with pytest.raises(ValueError, match=rf"analysis\.{field}: fixed by the protocol"):
        HarnessRoundManifest.model_validate_json(json.dumps(fields))
