"""What real harnesses sent, replayed: the model must answer each request with the step that the harness took next."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from controller.adapters.rehearsal import parse_script
from tests.unit.adapters.rehearsal.reading import KEY, Answer, client, read_anthropic, read_chat, read_responses

ASSETS = Path(__file__).parents[3] / "assets" / "rehearsal"
SCRIPT = parse_script((ASSETS / "script.json").read_bytes(), origin="script.json")
STEPS = SCRIPT.variants["pass"]
READERS = {"/v1/messages": read_anthropic, "/v1/chat/completions": read_chat, "/v1/responses": read_responses}
COMMAND_FIELDS = {"codex-0.171.0": "cmd", "mini-swe-agent-2.4.6": "command", "claude-code-2.1.328": "command"}
TRANSCRIPTS = [*COMMAND_FIELDS, "codex-0.171.0-code-mode"]


def transcript(name: str) -> list[dict[str, Any]]:
    requests = json.loads((ASSETS / f"{name}.json").read_bytes())
    assert len(requests) == len(STEPS)
    return list(requests)


async def replay(name: str) -> list[Answer]:
    answers = []
    async with client(SCRIPT) as http:
        for request in transcript(name):
            response = await http.post(request["path"], json={**request["body"], "stream": True}, headers=KEY)
            answers.append(READERS[request["path"].partition("?")[0]](await response.read()))
    return answers


@pytest.mark.parametrize("name", COMMAND_FIELDS)
async def test_each_recorded_request_is_answered_with_the_next_step(name: str) -> None:
    answers = await replay(name)
    assert [answer.text for answer in answers] == [step.say for step in STEPS]
    commands = [json.loads(answer.arguments)[COMMAND_FIELDS[name]] for answer in answers[:-1]]
    assert commands == [step.run for step in STEPS[:-1]]


@pytest.mark.parametrize("name", ["codex-0.171.0", "codex-0.171.0-code-mode", "claude-code-2.1.328"])
async def test_most_harnesses_end_on_a_plain_message(name: str) -> None:
    last = (await replay(name))[-1]
    assert (last.text, last.tool) == (STEPS[-1].say, None)


async def test_mini_swe_agent_ends_on_its_submit_command() -> None:
    last = (await replay("mini-swe-agent-2.4.6"))[-1]
    assert last.tool == "bash"
    assert json.loads(last.arguments) == {"command": "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"}


async def test_codex_in_code_mode_gets_programs_that_run_the_commands() -> None:
    answers = await replay("codex-0.171.0-code-mode")
    assert [answer.tool for answer in answers] == ["exec", "exec", "exec", None]
    for answer, step in zip(answers, STEPS[:-1], strict=False):
        assert json.dumps(step.run) in answer.arguments


async def test_a_harness_without_tools_gets_commands_in_the_fences_it_asks_for() -> None:
    system = "Give one command:\n```mswea_bash_command\nls\n```\nEnd with `echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT`."
    messages = [{"role": "system", "content": system}, {"role": "user", "content": "Fix it."}]
    texts = []
    async with client(SCRIPT) as http:
        for _ in STEPS:
            body = {"model": "rehearsal-1", "messages": messages, "stream": True}
            answer = read_chat(await (await http.post("/v1/chat/completions", json=body, headers=KEY)).read())
            texts.append(answer.text)
            messages += [{"role": "assistant", "content": answer.text}, {"role": "user", "content": "ok"}]
    assert texts[0] == f"{STEPS[0].say}\n\n```mswea_bash_command\ncat calc.py\n```"
    assert texts[-1].endswith("```mswea_bash_command\necho COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\n```")


async def test_an_aside_without_a_shell_does_not_advance_the_script() -> None:
    body = {"model": "rehearsal-1", "stream": True, "messages": [{"role": "user", "content": "Title this session."}]}
    async with client(SCRIPT) as http:
        answer = read_chat(await (await http.post("/v1/chat/completions", json=body, headers=KEY)).read())
    assert (answer.text, answer.tool) == ("Understood.", None)
