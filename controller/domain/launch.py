"""How a harness is started inside its container: what an adapter decides and the run stage carries out."""

from __future__ import annotations

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
