"""The list of models, answered here: a harness sees its lane's one model and nothing of the account."""

from __future__ import annotations

from typing import Any

from controller.ports.ledger import AttemptOpening


def model_listing(opening: AttemptOpening) -> dict[str, Any]:
    """The lane's one model, in Gemini's form or in one that clients of the other dialects can all read."""
    if opening.dialect == "gemini":
        named = {
            "name": f"models/{opening.model}",
            "displayName": opening.model,
            "supportedGenerationMethods": ["generateContent", "countTokens"],
        }
        return {"models": [named]}
    model = {
        "id": opening.model,
        "object": "model",
        "type": "model",
        "display_name": opening.model,
        "created": 0,
        "created_at": "1970-01-01T00:00:00Z",
        "owned_by": opening.provider,
    }
    return {
        "object": "list",
        "data": [model],
        "first_id": opening.model,
        "last_id": opening.model,
        "has_more": False,
    }
