from __future__ import annotations

from controller.adapters.rehearsal.conversation import Json, OfferedTool, ToolCall
from controller.adapters.rehearsal.shell_tool import fence_of, shell_call, wants_finish_command


def function(name: str, properties: Json, required: tuple[str, ...] = ()) -> OfferedTool:
    return OfferedTool(kind="function", name=name, schema={"properties": properties, "required": list(required)})


COMMAND = {"command": {"type": "string"}}


def test_codex_runs_commands_through_exec_command_and_asks_it_to_wait() -> None:
    tool = function("exec_command", {"cmd": {"type": "string"}, "yield_time_ms": {"type": "number"}}, ("cmd",))
    call = shell_call([function("write_stdin", {"chars": {}}), tool], "ls")
    assert call == ToolCall("function", "exec_command", {"cmd": "ls", "yield_time_ms": 30_000})


def test_a_command_given_as_a_list_runs_under_bash() -> None:
    call = shell_call([function("shell", {"command": {"type": "array"}})], "ls | wc")
    assert call == ToolCall("function", "shell", {"command": ["bash", "-lc", "ls | wc"]})


def test_other_required_fields_are_filled() -> None:
    properties = {**COMMAND, "description": {"type": "string"}, "background": {"type": "boolean"}}
    call = shell_call([function("Bash", properties, ("command", "description", "background"))], "ls")
    assert call is not None
    assert call.arguments == {"command": "ls", "description": "Take the next step", "background": False}


def test_the_providers_own_shell_tools_get_an_action() -> None:
    local = shell_call([OfferedTool("local_shell", "local_shell", {})], "ls")
    hosted = shell_call([OfferedTool("shell", "shell", {})], "ls")
    assert local == ToolCall(
        "local_shell", "local_shell", {"type": "exec", "command": ["bash", "-lc", "ls"], "env": {}}
    )
    assert hosted == ToolCall("shell", "shell", {"commands": ["ls"]})


def test_a_free_text_tool_gets_the_command_and_code_mode_a_program() -> None:
    plain = shell_call([OfferedTool("custom", "bash", {})], "ls 'a'")
    code = shell_call([OfferedTool("custom", "exec", {}, "Call tools.exec_command(...)")], "ls 'a'")
    assert plain == ToolCall("custom", "bash", "ls 'a'")
    assert code is not None and '"cmd": "ls \'a\'"' in code.text


def test_no_shell_means_no_call() -> None:
    assert shell_call([], "ls") is None
    assert shell_call([function("read_file", {"path": {}}), function("bash", {"path": {}})], "ls") is None
    assert shell_call([OfferedTool("function", "bash", {})], "ls") is None


def test_harnesses_without_tools_are_read_by_their_fences_and_their_last_command() -> None:
    texts = ["You can run commands.", "Answer with\n```mswea_bash_command\nls\n```"]
    assert fence_of(texts) == "mswea_bash_command"
    assert fence_of(["```bash\nls\n```"]) == "bash"
    assert fence_of(["```python\n1\n```"]) is None
    assert wants_finish_command(["finish with `echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT`"])
    assert not wants_finish_command(texts)
