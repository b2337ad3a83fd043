"""The network policy file: strict, and the one source of Envoy's routes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from controller.adapters.egress_envoy import EgressProxy
from controller.adapters.flows import load_flows
from controller.domain.ids import sha256_digest
from controller.errors import InvalidInput
from controller.meter.admission import ROUTES
from controller.meter.admission.routes import MODEL_PLACE

SOURCE = Path(__file__).parents[3] / "policies" / "network" / "flows.toml"


def test_the_digest_names_the_bytes() -> None:
    assert load_flows(SOURCE).digest == sha256_digest(SOURCE.read_bytes())


def test_policy_and_meter_allow_the_same_forms() -> None:
    """Each form of the meter is let through by one flow, and no flow lets through what the meter has no form for."""
    flows = [flow for flow in load_flows(SOURCE).flows if flow.service == "meter"]

    def passing(method: str, path: str) -> list[str]:
        return [
            flow.name
            for flow in flows
            if flow.method == method and (path == flow.path or re.fullmatch(flow.path_pattern or "(?!)", path))
        ]

    found = [passing(route.method, route.path.replace(MODEL_PLACE, "gemini-3-pro")) for route in ROUTES]
    assert [len(names) for names in found] == [1] * len(ROUTES)
    assert {names[0] for names in found} == {flow.name for flow in flows}
    for model in ("", "a/b", "..", "a%2fb", "-a"):
        for call in ("generateContent", "streamGenerateContent", "countTokens", "batchGenerateContent"):
            assert passing("POST", f"/v1beta/models/{model}:{call}") == []


def test_routes_are_the_flows_then_the_answers_then_a_refusal(tmp_path: Path) -> None:
    flows = load_flows(SOURCE)
    proxy = EgressProxy(flows, listen=tmp_path / "a", meter=tmp_path / "m", results=tmp_path / "r")
    listener = proxy.config()["static_resources"]["listeners"][0]
    manager = listener["filter_chains"][0]["filters"][0]["typed_config"]
    (host,) = manager["route_config"]["virtual_hosts"]
    names = [route.get("name") for route in host["routes"]]
    assert names == [*(flow.name for flow in flows.flows), *(answer.name for answer in flows.answers), None]
    assert host["routes"][-1]["direct_response"]["status"] == 403
    assert not any("retry_policy" in route.get("route", {}) for route in host["routes"])
    addresses = {str(cluster["load_assignment"]) for cluster in proxy.config()["static_resources"]["clusters"]}
    assert all("pipe" in address and "socket_address" not in address for address in addresses)


@pytest.mark.parametrize(
    ("old", "new", "word"),
    [
        ('default = "deny"', 'default = "allow"', "default"),
        ('service = "results"', 'service = "internet"', "service"),
        ('method = "PUT"', 'method = "CONNECT"', "method"),
        ("stream_idle_seconds = 900", "stream_idle_seconds = 0", "stream_idle_seconds"),
        ('name = "probe"', 'name = "models"', "share a name"),
        ('path = "/v1/responses"', 'path = "/v1/messages"', "method and path"),
        ('path = "/v1/models"', 'path = "/v1/models?x"', "path"),
        ('path = "/v1/models"', 'path = "/v1/models"\npath_pattern = "/x"', "either"),
        ('path_pattern = "/results/', 'path_pattern = "(', "path_pattern"),
        ('schema = "fairtrial.flows/1"', 'schema = "fairtrial.flows/2"', "schema"),
        ("[limits]", "surprise = 1\n[limits]", "surprise"),
        ("[limits]", "[[[", "TOML"),
    ],
)
def test_a_wrong_policy_is_refused_by_name(tmp_path: Path, old: str, new: str, word: str) -> None:
    text = SOURCE.read_text()
    assert old in text
    path = tmp_path / "flows.toml"
    path.write_text(text.replace(old, new))
    with pytest.raises(InvalidInput, match=word) as refused:
        load_flows(path)
    assert str(path) in str(refused.value)


def test_an_absent_policy_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="can't be read"):
        load_flows(tmp_path / "flows.toml")
