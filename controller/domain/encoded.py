"""Bytes inside JSON: base64 in its one canonical spelling."""

from __future__ import annotations

import base64
import binascii
from typing import Annotated

from pydantic import BeforeValidator, PlainSerializer, ValidationInfo


def _decoded(value: object, info: ValidationInfo) -> object:
    """Only JSON is decoded: a text where Python code should have given bytes stays a fault."""
    if info.mode != "json" or not isinstance(value, str):
        return value
    try:
        data = base64.b64decode(value.encode("ascii"), validate=True)
    except (binascii.Error, UnicodeEncodeError) as error:
        raise ValueError("not base64") from error
    if base64.b64encode(data).decode() != value:
        raise ValueError("not canonical base64")
    return data


def _encoded(value: bytes) -> str:
    return base64.b64encode(value).decode()


EncodedBytes = Annotated[bytes, BeforeValidator(_decoded), PlainSerializer(_encoded, when_used="json")]
