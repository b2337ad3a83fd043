"""What every adapter promises, and what each one writes and reads."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from controller.domain.launch import LaunchContext
from controller.domain.outcome import SelfReport
from controller.errors import InvalidPlan
from controller.harnesses import HARNESSES, unknown_harness
from controller.ports.harness import HarnessAdapter

ASSETS = Path(__file__).parents[2] / "assets" / "rehearsal"
TOKEN = "rt_0123456789abcdef"
MINI_CONFIG = ".config/fairtrial/mini.yaml"


def context(prompt: str = "Fix add.", **settings: str) -> LaunchContext:
    return LaunchContext(
        prompt=prompt,
        base_url="http://127.0.0.1:8080",
        token=TOKEN,
        model="rehearsal-1",
        settings=settings,
        workspace="/workspace",
    )


every_harness = pytest.mark.parametrize("adapter", HARNESSES.values(), ids=HARNESSES.keys())


@every_harness
def test_a_contract_is_complete_and_keeps_the_token_in_the_environment(adapter: HarnessAdapter) -> None:
    contract = adapter.launch(context())
    assert adapter.image == f"harness-{adapter.name}"
    assert contract.argv[0].startswith("/opt/harness/bin/")
    assert contract.env["HOME"] == "/home/agent"
    assert list(contract.env.values()).count(TOKEN) == 1
    elsewhere = json.dumps([contract.argv, contract.files, contract.stdin])
    assert TOKEN not in elsewhere
    assert all(not path.startswith("/") and ".." not in path for path in (*contract.files, *contract.report_paths))


@every_harness
def test_the_prompt_is_never_an_argument(adapter: HarnessAdapter) -> None:
    prompt = "--help " + "x" * 200_000  # the kernel refuses arguments of this size
    contract = adapter.launch(context(prompt))
    assert all(len(argument) < 200 for argument in contract.argv)
    assert any(prompt in text for text in (contract.stdin, *contract.files.values()))


@every_harness
def test_equal_contexts_give_equal_contracts(adapter: HarnessAdapter) -> None:
    assert adapter.launch(context()) == adapter.launch(context())


@every_harness
def test_unknown_settings_are_refused_by_name(adapter: HarnessAdapter) -> None:
    with pytest.raises(InvalidPlan, match=r"settings\.verbosity: .* has no such setting"):
        adapter.check_settings({"verbosity": "high"})
    with pytest.raises(InvalidPlan):
        adapter.launch(context(verbosity="high"))


@every_harness
@pytest.mark.parametrize(
    "junk",
    [
        b"",
        b"\xff\xfe{",
        b"[" * 100_000,
        b'{"type": "turn.completed", "usage": {"input_tokens": -4, "output_tokens": "9"}}',
        b'{"type": "turn.completed", "usage": {"input_tokens": 9007199254740993, "output_tokens": true}}',
        b'{"type": "item.completed", "item": []}\n{"type": []}',
        b'{"type": "item.completed", "item": {"type": []}}\n{"type": "item.completed", "item": {"type": {}}}',
        b'{"info": {"model_stats": {"instance_cost": NaN, "api_calls": true}}, "messages": {"role": "assistant"}}',
        b'{"info": {"model_stats": {"instance_cost": 1e400}}, "messages": [{"role": "assistant", "tool_calls": 4}, 7]}',
        b'{"info": [], "messages": [{"role": "assistant", "extra": {"response": {"usage": {"prompt_tokens": 1.5}}}}]}',
    ],
)
def test_a_hostile_report_gives_an_empty_one(adapter: HarnessAdapter, junk: bytes) -> None:
    paths = adapter.launch(context()).report_paths
    report = adapter.self_report(dict.fromkeys(paths, junk), junk)
    assert report.model_copy(update={"tool_calls": None}) == SelfReport()
    assert report.tool_calls in (None, 0)


def test_an_unknown_harness_is_named_beside_the_known_ones() -> None:
    assert str(unknown_harness("codx")) == "harness 'codx' is not known; known harnesses: codex, mini-swe-agent"


# Codex CLI


def codex_config(**settings: str) -> dict[str, object]:
    return tomllib.loads(HARNESSES["codex"].launch(context(**settings)).files[".codex/config.toml"])


def test_codex_talks_to_the_meter_only_and_never_retries() -> None:
    config = codex_config()
    assert config["model_provider"] == "meter"
    assert config["model_providers"] == {
        "meter": {
            "name": "meter",
            "base_url": "http://127.0.0.1:8080/v1",
            "env_key": "FAIRTRIAL_METER_TOKEN",
            "wire_api": "responses",
            "request_max_retries": 0,
            "stream_max_retries": 0,
        }
    }
    assert HARNESSES["codex"].launch(context()).env["FAIRTRIAL_METER_TOKEN"] == TOKEN


def test_codex_uses_the_lanes_model_everywhere_and_no_hosted_tools() -> None:
    config = codex_config()
    assert (config["model"], config["review_model"]) == ("rehearsal-1", "rehearsal-1")
    assert config["web_search"] == "disabled"
    assert config["analytics"] == config["feedback"] == {"enabled": False}
    features = config["features"]
    assert isinstance(features, dict) and set(features.values()) == {False}
    assert {"plugins", "apps", "unbounded_connection_retries", "image_generation"} <= features.keys()


def test_codex_takes_a_reasoning_effort_and_checks_it() -> None:
    assert "model_reasoning_effort" not in codex_config()
    assert codex_config(reasoning_effort="high")["model_reasoning_effort"] == "high"
    with pytest.raises(InvalidPlan, match=r"settings\.reasoning_effort: 'huge' is not one of minimal, low"):
        codex_config(reasoning_effort="huge")


def test_codex_reads_the_prompt_from_standard_input() -> None:
    contract = HARNESSES["codex"].launch(context("Fix add."))
    assert (contract.argv[-1], contract.stdin) == ("-", "Fix add.")


def test_codexs_report_comes_from_its_event_log() -> None:
    log = b"Reading prompt from stdin...\n" + (ASSETS / "codex-0.171.0.log").read_bytes()
    report = HARNESSES["codex"].self_report({}, log)
    assert report == SelfReport(tokens_in=39_997, tokens_out=116, tool_calls=3)


# mini-swe-agent


def mini_config(prompt: str = "Fix add.", **settings: str) -> dict[str, dict[str, object]]:
    text = HARNESSES["mini-swe-agent"].launch(context(prompt, **settings)).files[MINI_CONFIG]
    config: dict[str, dict[str, object]] = yaml.safe_load(text)
    return config


def test_mini_swe_agent_talks_to_the_meter_only_and_never_retries() -> None:
    model = mini_config()["model"]
    assert model["model_name"] == "openai/rehearsal-1"
    assert model["model_kwargs"] == {
        "api_base": "http://127.0.0.1:8080/v1",
        "drop_params": True,
        "max_retries": 0,
        "num_retries": 0,
    }
    env = HARNESSES["mini-swe-agent"].launch(context()).env
    assert env["OPENAI_API_KEY"] == TOKEN
    assert env["MSWEA_MODEL_RETRY_STOP_AFTER_ATTEMPT"] == "1"
    assert env["LITELLM_LOCAL_MODEL_COST_MAP"] == "True"


def test_mini_swe_agent_can_use_its_own_client_in_place_of_litellm() -> None:
    model = mini_config(client="requests")["model"]
    assert model["model_class"] == "fairtrial_client.MeteredModel"
    assert model["model_name"] == context().model
    env = HARNESSES["mini-swe-agent"].launch(context(client="requests")).env
    assert env["OPENAI_BASE_URL"] == f"{context().base_url}/v1"
    assert mini_config(client="litellm") == mini_config()
    with pytest.raises(InvalidPlan, match=r"settings\.client"):
        mini_config(client="curl")


def test_mini_swe_agent_asks_nobody_and_has_no_limits_of_its_own() -> None:
    agent = mini_config()["agent"]
    assert agent == {"mode": "yolo", "confirm_exit": False, "cost_limit": 0, "step_limit": 0}
    assert {"--yolo", "--exit-immediately"} <= set(HARNESSES["mini-swe-agent"].launch(context()).argv)


def test_mini_swe_agent_takes_a_command_timeout() -> None:
    assert mini_config()["environment"] == {"cwd": "/workspace"}
    assert mini_config(command_timeout_seconds="120")["environment"] == {"cwd": "/workspace", "timeout": 120}


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # a busy machine is not a fault
@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_mini_swe_agents_configuration_carries_any_prompt_unchanged(prompt: str) -> None:
    assert mini_config(prompt)["run"]["task"] == prompt


def test_mini_swe_agents_report_comes_from_its_trajectory() -> None:
    adapter = HARNESSES["mini-swe-agent"]
    (path,) = adapter.launch(context()).report_paths
    trajectory = (ASSETS / "mini-swe-agent-2.4.6.trajectory.json").read_bytes()
    report = adapter.self_report({path: trajectory}, b"")
    assert report == SelfReport(tokens_in=3_920, tokens_out=115, turns=4, tool_calls=4)
    priced = trajectory.replace(b'"instance_cost": 0.0', b'"instance_cost": 0.0123400')
    assert adapter.self_report({path: priced}, b"").usd == "0.01234"
