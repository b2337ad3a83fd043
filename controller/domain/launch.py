"""How a harness is started inside its container: what an adapter decides and the run stage carries out."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from controller.domain.record import Record


class LaunchContext(Record):
    """What an adapter may use. The token is run-scoped and revoked when the attempt ends."""

    prompt: str
    base_url: str  # of the meter as seen from inside the container, without a trailing slash: http://127.0.0.1:8080
    token: str
    model: str
    settings: dict[str, str]
    workspace: str  # absolute path of the repository inside the container


class LaunchContract(Record):
    """Fixed before the attempt starts and published (without the token) with the manifest."""

    argv: tuple[str, ...]
    env: dict[str, str]
    files: dict[str, str]  # written into the clean home directory before the start, by path relative to it
    stdin: str = ""
    report_paths: tuple[str, ...] = ()  # files under the home directory that hold the harness's own account of itself


class Shim(Record):
    """Our own code between a harness and its provider, and what is known of its faithfulness."""

    name: str = Field(min_length=1)
    does: str = Field(min_length=1)
    status: Literal["qualified", "unqualified"]  # qualified: compared with a direct connection, and found equal
    basis: str = Field(min_length=1)  # where that was shown, or why it was not
