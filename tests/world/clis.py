"""The real command-line harnesses on this host: installed once from their lock, run in a home of their own."""

from __future__ import annotations

import fcntl
import hashlib
import json
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from controller.domain.launch import LaunchContext
from controller.domain.usage import Dialect
from controller.harnesses.codex import CodexCli
from tests.world.processes import MODEL

ROOT = Path(__file__).parents[2]
LOCK = ROOT / "tests" / "assets" / "clients"
CACHE = ROOT / ".state" / "test-clients"
INSTALL_SECONDS_MAX = 540.0
RUN_SECONDS_MAX = 120.0
PROMPT = "Look at calc.py and say what it holds."
RUNS = "cat calc.py"  # the one command of the scripted task
SCRIPT = {
    "schema": "fairtrial.rehearsal/1",
    "pass_percent": {"default": 100},
    "variants": {"pass": [{"say": "I look at the file.", "run": RUNS}, {"say": "It holds one line."}]},
}
FILE_TEXT = "answer = 42\n"


def installed_clients() -> Path:
    """The `node_modules` of the lock, installed on first use. Skips with the reason where that can't be done."""
    files = [LOCK / "package.json", LOCK / "package-lock.json"]
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
    home = CACHE / digest[:16]
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not home.exists():
            _install(files, home)
    return home / "node_modules"


def _install(files: list[Path], home: Path) -> None:
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed, so there are no real clients to run: `make setup` installs it")
    partial = home.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    for file in files:
        shutil.copy(file, partial)
    # No install script is run: each package brings its binary in a package for the platform, which the lock names too.
    command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", str(partial)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_SECONDS_MAX)
    if done.returncode:
        pytest.skip(f"npm could not install the locked clients (exit {done.returncode}): {done.stderr[-500:]}")
    partial.rename(home)


@dataclass(frozen=True)
class Done:
    """A finished run."""

    exit_code: int
    stdout: str
    stderr: str


@dataclass(frozen=True)
class Setting:
    """Where a client runs and whom it calls. `extra` is added to its environment."""

    base_url: str
    token: str
    directory: Path
    extra: Mapping[str, str]

    @property
    def home(self) -> Path:
        return self.directory / "home"

    @property
    def workspace(self) -> Path:
        return self.directory / "work"


@dataclass(frozen=True)
class Cli:
    """One harness as a program. `own_account` reads its self-report: tokens by class, as the meter names them."""

    name: str
    provider: str
    dialect: Dialect
    command: Callable[[Setting], tuple[list[str], dict[str, str], str]]
    own_account: Callable[[Done], dict[str, int]]

    def __str__(self) -> str:
        return self.name

    def run(self, base_url: str, token: str, directory: Path, **extra: str) -> Done:
        """Run the prompt to its end in a fresh home and a workspace with one file."""
        setting = Setting(base_url, token, directory, extra)
        setting.home.mkdir(parents=True)
        setting.workspace.mkdir()
        (setting.workspace / "calc.py").write_text(FILE_TEXT)
        argv, env, stdin = self.command(setting)
        done = subprocess.run(
            argv,
            input=stdin,
            env=env | extra,
            cwd=setting.workspace,
            capture_output=True,
            text=True,
            timeout=RUN_SECONDS_MAX,
        )
        return Done(done.returncode, done.stdout, done.stderr)


def _binary(pattern: str) -> str:
    found = sorted(installed_clients().glob(pattern))
    if not found:
        pytest.skip(f"the locked clients have no build for this platform: {pattern}")
    return str(found[0])


def _codex(setting: Setting) -> tuple[list[str], dict[str, str], str]:
    """The project's own adapter decides everything; only the places inside its container are this host's."""
    context = LaunchContext(
        prompt=PROMPT,
        base_url=setting.base_url,
        token=setting.token,
        model=MODEL,
        settings={},
        workspace=str(setting.workspace),
    )
    contract = CodexCli().launch(context)
    for name, text in contract.files.items():
        path = setting.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    env = {name: value.replace("/home/agent", str(setting.home)) for name, value in contract.env.items()}
    binary = _binary("@openai/codex-linux-*/vendor/*/bin/codex")
    return [binary, *contract.argv[1:]], env, contract.stdin


def _codex_account(done: Done) -> dict[str, int]:
    events = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    (usage,) = [event["usage"] for event in events if event["type"] == "turn.completed"]
    read, written = usage["cached_input_tokens"], usage["cache_write_input_tokens"]
    plain = usage["input_tokens"] - read - written
    return _without_zeros({"in": plain, "read": read, "w30m": written, "out": usage["output_tokens"]})


CLAUDE_SWITCHES = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK": "1",  # it would send each broken request a second time
    "CLAUDE_CODE_DISABLE_TERMINAL_TITLE": "1",
    "CLAUDE_CODE_DISABLE_FAST_MODE": "1",
    "CLAUDE_CODE_MAX_RETRIES": "0",
    "CLAUDE_CODE_SUBAGENT_MODEL": MODEL,
    "ANTHROPIC_MODEL": MODEL,
    "ANTHROPIC_DEFAULT_HAIKU_MODEL": MODEL,
    "ANTHROPIC_DEFAULT_SONNET_MODEL": MODEL,
    "ANTHROPIC_DEFAULT_OPUS_MODEL": MODEL,
    "DISABLE_AUTOUPDATER": "1",
    "DO_NOT_TRACK": "1",
}


def _claude(setting: Setting) -> tuple[list[str], dict[str, str], str]:
    env = {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": str(setting.home),
        "LANG": "C.UTF-8",
        "ANTHROPIC_BASE_URL": setting.base_url,
        "ANTHROPIC_AUTH_TOKEN": setting.token,
        **CLAUDE_SWITCHES,
    }
    binary = _binary("@anthropic-ai/claude-code-linux-*/claude")
    return [binary, "-p", PROMPT, "--output-format", "json", "--allowedTools", "Bash"], env, ""


def _claude_account(done: Done) -> dict[str, int]:
    usage: dict[str, Any] = json.loads(done.stdout)["usage"]
    writes = usage["cache_creation"]
    return _without_zeros(
        {
            "in": usage["input_tokens"],
            "read": usage["cache_read_input_tokens"],
            "w5m": writes["ephemeral_5m_input_tokens"],
            "w1h": writes["ephemeral_1h_input_tokens"],
            "out": usage["output_tokens"],
        }
    )


def _without_zeros(tokens: dict[str, int]) -> dict[str, int]:
    return {name: count for name, count in tokens.items() if count}


CODEX = Cli("codex", "openai", "openai_responses", _codex, _codex_account)
CLAUDE = Cli("claude-code", "anthropic", "anthropic", _claude, _claude_account)
CLIS = (CODEX, CLAUDE)
