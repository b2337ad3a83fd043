"""The network policy as data: `policies/network/flows.toml`, parsed strictly."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, ValidationError, model_validator

from controller.adapters.strict_toml import strict_toml
from controller.domain.ids import Digest, Slug, sha256_digest
from controller.domain.record import Record, field_faults
from controller.errors import InvalidInput

Method = Literal["GET", "HEAD", "POST", "PUT"]
PATH_PATTERN = r"^/[A-Za-z0-9/._-]*$"


class Flow(Record):
    """One allowed request form and the service that receives it. Exactly one of path and path_pattern is given."""

    name: Slug
    service: Literal["meter", "results"]
    method: Method
    path: str | None = Field(default=None, pattern=PATH_PATTERN)
    path_pattern: str | None = Field(default=None, max_length=200)
    body_bytes_max: int = Field(ge=0, le=2**30)

    @model_validator(mode="after")
    def _one_path(self) -> Self:
        if (self.path is None) == (self.path_pattern is None):
            raise ValueError("give either path or path_pattern")
        if self.path_pattern is not None:
            re.compile(self.path_pattern)
        return self


class Answer(Record):
    """One request form that the egress proxy answers itself."""

    name: Slug
    method: Method
    path: str = Field(pattern=PATH_PATTERN)
    status: int = Field(ge=200, le=299)


class FlowLimits(Record):
    """Bounds of the egress proxy itself."""

    stream_idle_seconds: int = Field(ge=1, le=3600)
    headers_seconds: int = Field(ge=1, le=60)
    connect_seconds: int = Field(ge=1, le=60)
    header_bytes_max: int = Field(ge=8192, le=2**20)
    headers_max: int = Field(ge=10, le=1000)


class FlowsFile(Record):
    """The file's content. `default` can only be deny: there is no other policy to express."""

    schema_version: Literal["fairtrial.flows/1"] = Field(alias="schema")
    default: Literal["deny"]
    limits: FlowLimits
    flow: tuple[Flow, ...] = Field(min_length=1)
    answer: tuple[Answer, ...] = ()

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        entries: tuple[Flow | Answer, ...] = (*self.flow, *self.answer)
        names = [entry.name for entry in entries]
        forms = [(entry.method, entry.path) for entry in entries if entry.path is not None]
        if len(set(names)) != len(names) or len(set(forms)) != len(forms):
            raise ValueError("two entries share a name, or a method and path")
        return self


class Flows(Record):
    """The policy, the file's text that manifests hold, and the digest that names it: sha256 of the file's bytes."""

    text: str
    digest: Digest
    limits: FlowLimits
    flows: tuple[Flow, ...]
    answers: tuple[Answer, ...]


def load_flows(path: Path) -> Flows:
    """Parse the policy. Raises InvalidInput naming the file and every wrong field."""
    try:
        raw = path.read_bytes()
        document = strict_toml(raw)
    except OSError as error:
        raise InvalidInput(f"{path}: can't be read: {error.strerror}") from error
    except ValueError as error:
        raise InvalidInput(f"{path}: is not TOML: {error}") from None
    try:
        parsed = FlowsFile.model_validate(document)
    except ValidationError as error:
        raise InvalidInput(f"{path}: {'; '.join(field_faults(error))}") from None
    except re.error as error:
        raise InvalidInput(f"{path}: path_pattern: {error}") from None
    return Flows(
        text=raw.decode(), digest=sha256_digest(raw), limits=parsed.limits, flows=parsed.flow, answers=parsed.answer
    )
