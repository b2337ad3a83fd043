"""Timestamp requests and responses of a round. They travel by the operator's hand."""

from __future__ import annotations

from pathlib import Path

from controller.adapters.timestamp_openssl import RESPONSE_BYTES_MAX, OpensslTimestamps, timestamp_request
from controller.conductor.checkpoints import CHECKPOINT_BYTES_MAX, checkpoint_paths
from controller.domain.instant import instant_text
from controller.errors import BadSignature
from controller.evidence.bundle import stamp_name
from controller.settings import Settings
from controller.wiring.inputs import read_input
from controller.wiring.rounds import checkpoints_of, read_round
from controller.wiring.tools import local_files


def write_request(settings: Settings, round_dir: Path) -> Path:
    """Sign the round's log and write a request for a timestamp over the signed state; the request's file."""
    found = read_round(round_dir)
    try:
        checkpoint = checkpoints_of(settings, found).sign()
    finally:
        found.journal.close()
    request = timestamp_request(read_input(checkpoint, bytes_max=CHECKPOINT_BYTES_MAX))
    path = found.directory / "timestamps" / f"{checkpoint.stem}.tsq"
    local_files().create_file(path, request)
    return path


def attach_response(round_dir: Path, response: Path, certificates: Path) -> tuple[Path, str]:
    """Keep an authority's response; its file in the round, and the time it states.

    Raises BadSignature when the authority did not sign it, or signed it for none of the round's requests.
    """
    directory, authority = round_dir.resolve(), OpensslTimestamps(certificates)
    data = read_input(response, bytes_max=RESPONSE_BYTES_MAX)
    fault = "no request was written; begin with `fairtrial timestamp request`"
    for size, checkpoint in reversed(checkpoint_paths(directory).items()):
        if not (directory / "timestamps" / f"{size}.tsq").is_file():
            continue
        try:
            at = authority.time_of(data, read_input(checkpoint, bytes_max=CHECKPOINT_BYTES_MAX))
        except BadSignature as error:
            fault = str(error)
            continue
        path = directory / stamp_name(size)
        local_files().create_file(path, data)
        return path, instant_text(at)
    raise BadSignature(f"{response}: {fault}")
