from __future__ import annotations

import pytest

from controller.publish.patterns import credentials
from tests.world.secrets import fakes, letters

KINDS = {
    "openai": "a provider key",
    "anthropic": "a provider key",
    "openrouter": "a provider key",
    "google": "a Google API key",
    "google-oauth": "a Google access token",
    "groq": "a Groq key",
    "xai": "an xAI key",
    "perplexity": "a Perplexity key",
    "hugging-face": "a Hugging Face token",
    "replicate": "a Replicate token",
    "aws-id": "an AWS key id",
    "azure": "an Azure storage key",
    "github": "a GitHub token",
    "github-fine": "a GitHub token",
    "gitlab": "a GitLab token",
    "slack": "a Slack token",
    "stripe": "a Stripe key",
    "npm": "an npm token",
    "pypi": "a PyPI token",
    "jwt": "a JSON web token",
    "pem": "a private key",
    "meter-token": "a run-scoped token or canary",
    "upload-token": "a run-scoped token or canary",
    "canary": "a run-scoped token or canary",
}
OTHERS = {
    "a bearer credential": "Authorization: Bearer " + letters("bearer", 30),
    "a DigitalOcean token": "do" + "p_v1_" + letters("do", 64, "0123456789abcdef"),
    "a SendGrid key": "S" + "G." + letters("sg", 22) + "." + letters("sg2", 43),
    "a Twilio key": "S" + "K" + letters("twilio", 32, "0123456789abcdef"),
    "a Telegram bot token": "123456789:" + "AA" + letters("telegram", 33),
    "an age identity": "AGE-SECRET-" + "KEY-1" + letters("age", 58, "ABCDEFGHJKLMNPQRSTUVWXYZ0123456789"),
}


def test_every_made_up_secret_with_a_form_of_its_own_has_a_kind() -> None:
    assert fakes().keys() - KINDS.keys() == {"aws-secret"}, "forty letters without any mark are no pattern"


@pytest.mark.parametrize("name", KINDS)
def test_a_credential_is_seen_in_the_middle_of_a_line(name: str) -> None:
    assert KINDS[name] in [*credentials(f'+  key = "{fakes()[name]}",\n'.encode())]


@pytest.mark.parametrize("kind", OTHERS)
def test_forms_without_a_fake_are_seen_too(kind: str) -> None:
    assert [*credentials(OTHERS[kind].encode())] == [kind]


@pytest.mark.parametrize(
    "text",
    [
        "Bearer of news",
        "the task-sk-1",
        "rt_0123",
        "sk-short",
        "AKIA",
        "index 0123456789abcdef0123456789abcdef01234567..89abcdef0123456789abcdef0123456789abcdef 100644",
        "sha256:" + "0123456789abcdef" * 4,
        "hf_hub_download(repo_id, filename)",
        "-----BEGIN PUBLIC KEY-----",
        "-----BEGIN CERTIFICATE-----",
        "eye.eyes.eyebrows",
        "npm_config_registry=https://registry.invalid",
    ],
)
def test_ordinary_text_is_no_credential(text: str) -> None:
    assert not [*credentials(text.encode())]
