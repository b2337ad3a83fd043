"""What a Gemini request may do: paths, credentials, fields in both spellings."""

from __future__ import annotations

import json
from typing import Any

import pytest

from controller.meter.admission import (
    Admitted,
    Operation,
    Refused,
    admit,
    dialect_of_path,
    find_route,
    token_of,
    without_key,
)

ROOT = "/v1beta/models/m"
TEXT = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}


def admitted(body: object, *, call: str = "generateContent", model: str = "m") -> Admitted:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return admit(find_route("POST", f"/v1beta/models/{model}:{call}", ""), raw, model="m", dialect="gemini")


@pytest.mark.parametrize(
    ("path", "query", "operation"),
    [
        (f"{ROOT}:generateContent", "", Operation.INFER),
        (f"{ROOT}:generateContent", "key=t", Operation.INFER),
        (f"{ROOT}:streamGenerateContent", "alt=sse", Operation.INFER),
        (f"{ROOT}:streamGenerateContent", "", Operation.INFER),
        (f"{ROOT}:streamGenerateContent", "key=t&alt=sse", Operation.INFER),
        (f"{ROOT}:countTokens", "", Operation.COUNT_TOKENS),
    ],
)
def test_the_calls_have_routes_that_name_the_model(path: str, query: str, operation: Operation) -> None:
    route = find_route("POST", path, query)
    assert (route.operation, route.dialect, route.model, route.path) == (operation, "gemini", "m", path)


def test_the_models_are_listed_here() -> None:
    route = find_route("GET", "/v1beta/models", "pageSize=50&key=t")
    assert (route.operation, route.dialect) == (Operation.LIST_MODELS, "gemini")


@pytest.mark.parametrize(
    ("method", "path", "query", "status"),
    [
        ("POST", f"{ROOT}:embedContent", "", 404),
        ("POST", f"{ROOT}:batchGenerateContent", "", 404),
        ("POST", f"{ROOT}:generateContent/x", "", 404),
        ("POST", "/v1beta/models/a/b:generateContent", "", 404),
        ("POST", "/v1beta/models/%6d:generateContent", "", 404),
        ("POST", "/v1beta/models/:generateContent", "", 404),
        ("POST", "/v1beta/tunedModels/m:generateContent", "", 404),
        ("POST", "/v1beta/cachedContents", "", 404),
        ("GET", f"{ROOT}:generateContent", "", 404),
        ("POST", f"{ROOT}:generateContent", "alt=sse", 400),
        ("POST", f"{ROOT}:streamGenerateContent", "alt=json", 400),
        ("POST", f"{ROOT}:streamGenerateContent", "alt=sse&fields=candidates", 400),
        ("POST", f"{ROOT}:streamGenerateContent", "$alt=json%3Benum-encoding%3Dint", 400),
    ],
)
def test_other_forms_are_refused(method: str, path: str, query: str, status: int) -> None:
    with pytest.raises(Refused) as refused:
        find_route(method, path, query)
    assert refused.value.status == status and dialect_of_path(path) == "gemini"


@pytest.mark.parametrize(
    ("headers", "query"),
    [
        ([("x-goog-api-key", "t")], ""),
        ([], "key=t"),
        ([], "alt=sse&%6Bey=t"),
        ([("Authorization", "Bearer t"), ("X-Goog-Api-Key", "t")], "key=t&key=t"),
    ],
)
def test_the_token_may_come_in_the_query(headers: list[tuple[str, str]], query: str) -> None:
    assert token_of(headers, query) == "t"


@pytest.mark.parametrize(
    ("headers", "query"),
    [
        ([("x-goog-api-key", "a")], "key=b"),
        ([("authorization", "Bearer a")], "key=b"),
        ([("x-goog-api-key", "a"), ("x-api-key", "b")], ""),
        ([], "key=a&key=b"),
        ([], "key=a&%6bey=b"),
        ([], "key="),
        ([], ""),
    ],
)
def test_two_different_credentials_or_none_are_refused(headers: list[tuple[str, str]], query: str) -> None:
    with pytest.raises(Refused) as refused:
        token_of(headers, query)
    assert refused.value.status == 401


@pytest.mark.parametrize(
    ("query", "kept"),
    [
        ("", ""),
        ("key=t", ""),
        ("alt=sse", "alt=sse"),
        ("key=t&alt=sse", "alt=sse"),
        ("alt=sse&key=t", "alt=sse"),
        ("%6bey=t&alt=sse&k%65y=t&key", "alt=sse"),
        ("alt=s%73e&monkey=1", "alt=s%73e&monkey=1"),
    ],
)
def test_the_query_is_forwarded_without_the_token_and_otherwise_as_it_came(query: str, kept: str) -> None:
    assert without_key(query) == kept


@pytest.mark.parametrize(
    ("extra", "limit"),
    [
        ({}, None),
        ({"generationConfig": {"maxOutputTokens": 8, "candidateCount": 1, "responseModalities": ["TEXT"]}}, 8),
        ({"generation_config": {"max_output_tokens": 8, "thinkingConfig": {"thinkingBudget": 1}}}, 8),
        ({"tools": [{"functionDeclarations": [{"name": "bash", "parameters": {"type": "OBJECT"}}]}]}, None),
        ({"tools": [{"function_declarations": [], "googleSearch": None}], "tool_config": {}}, None),
        ({"systemInstruction": {"parts": []}, "safetySettings": [], "model": "models/m"}, None),
        ({"cachedContent": "", "serviceTier": "standard"}, None),
    ],
)
def test_ordinary_requests_pass_byte_for_byte(extra: dict[str, Any], limit: int | None) -> None:
    raw = json.dumps(TEXT | extra, indent=3).encode()
    assert admitted(raw) == admitted(raw, call="streamGenerateContent") == Admitted(raw, (), limit)


OFF = [
    ({"tools": [{"googleSearch": {}}]}, "tools[0].googleSearch"),
    ({"tools": [{"google_search": {}}]}, "tools[0].googleSearch"),
    ({"tools": [{"functionDeclarations": []}, {"urlContext": {}}]}, "tools[1].urlContext"),
    ({"tools": [{"url_context": {}}]}, "tools[0].urlContext"),
    ({"tools": [{"codeExecution": {}}]}, "tools[0].codeExecution"),
    ({"tools": [{"code_execution": {}}]}, "tools[0].codeExecution"),
    ({"tools": [{"googleSearchRetrieval": {}}]}, "tools[0].googleSearchRetrieval"),
    ({"tools": [{"googleMaps": {}}]}, "tools[0].googleMaps"),
    ({"tools": [{"fileSearch": {}}]}, "tools[0].fileSearch"),
    ({"tools": [{"mcpServers": [{}]}]}, "tools[0].mcpServers"),
    ({"tools": [{"newTool": {}}]}, "tools[0].newTool"),
    ({"tools": {"googleSearch": {}}}, "tools: must be a list"),
    ({"cachedContent": "cachedContents/x"}, "cachedContent"),
    ({"cached_content": "cachedContents/x"}, "cachedContent"),
    ({"store": True}, "store"),
    ({"serviceTier": "flex"}, "serviceTier"),
    ({"service_tier": "priority"}, "serviceTier"),
    ({"model": "models/other"}, "model"),
    ({"generationConfig": {"candidateCount": 2}}, "generationConfig.candidateCount"),
    ({"generation_config": {"candidate_count": 2}}, "generationConfig.candidateCount"),
    ({"generationConfig": {"responseModalities": ["TEXT", "IMAGE"]}}, "generationConfig.responseModalities"),
    ({"generationConfig": {"response_modalities": ["AUDIO"]}}, "generationConfig.responseModalities"),
    ({"generationConfig": {"speechConfig": {"voiceConfig": {}}}}, "generationConfig.speechConfig"),
    ({"generationConfig": {"imageConfig": {"aspectRatio": "1:1"}}}, "generationConfig.imageConfig"),
    ({"generationConfig": {"continuationToken": "dA=="}}, "generationConfig.continuationToken"),
    ({"generationConfig": {"maxOutputTokens": 1.5}}, "generationConfig.maxOutputTokens"),
    ({"generationConfig": {"brandNew": 1}}, "generationConfig.brandNew"),
    ({"generationConfig": []}, "generationConfig: must be an object"),
    ({"generationConfig": {}, "generation_config": {"candidateCount": 2}}, "generationConfig: given twice"),
    ({"generationConfig": {"topK": 1, "top_k": 2}}, "generationConfig.topK: given twice"),
    ({"tools": [{"googleSearch": None, "google_search": {}}]}, "tools[0].googleSearch: given twice"),
    ({"continuationToken": "dA=="}, "continuationToken"),
    ({"brandNew": 1}, "brandNew"),
]


@pytest.mark.parametrize(("extra", "path"), OFF, ids=lambda value: str(value)[:60])
def test_a_feature_that_would_bend_the_comparison_is_refused_by_its_path(extra: dict[str, Any], path: str) -> None:
    with pytest.raises(Refused) as refused:
        admitted(TEXT | extra)
    assert refused.value.status == 400 and refused.value.reason.startswith(path)


def test_the_model_is_the_one_in_the_path() -> None:
    with pytest.raises(Refused, match="model: 'other' is not this attempt's model 'm'"):
        admitted(TEXT, model="other")


def test_counting_takes_the_contents_or_the_request_that_would_be_sent() -> None:
    inner = {"generateContentRequest": {"model": "models/m", **TEXT}}
    for body in (TEXT, inner):
        assert admitted(body, call="countTokens").output_tokens is None
    with pytest.raises(Refused, match=r"^generateContentRequest\.tools\[0\]\.googleSearch"):
        admitted({"generateContentRequest": {**TEXT, "tools": [{"googleSearch": {}}]}}, call="countTokens")
    with pytest.raises(Refused, match=r"^generateContentRequest\.model"):
        admitted({"generateContentRequest": {"model": "models/other", **TEXT}}, call="countTokens")
    with pytest.raises(Refused, match=r"^tools"):
        admitted(TEXT | {"tools": []}, call="countTokens")


@pytest.mark.parametrize("raw", [b'{"contents":[],"contents":[]}', b"[]", b'{"a":NaN}', b"", b"[" * 90_000])
def test_a_body_that_two_readers_could_read_differently_is_refused(raw: bytes) -> None:
    with pytest.raises(Refused) as refused:
        admitted(raw)
    assert refused.value.status == 400


@pytest.mark.parametrize("limit", [10**9 + 1, 10**18, 10**4_000])
@pytest.mark.parametrize("name", ["maxOutputTokens", "max_output_tokens"])
def test_a_limit_beyond_any_answer_is_refused(name: str, limit: int) -> None:
    with pytest.raises(Refused, match="maxOutputTokens: must be at most 1000000000 tokens") as refused:
        admitted(TEXT | {"generationConfig": {name: limit}})
    assert refused.value.status == 400
