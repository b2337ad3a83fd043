"""mini-swe-agent's own client over requests, sent to the meter.

The harness has two clients for this dialect: litellm, which takes a base address, and one over requests, whose address
is a constant. An arm that asks for the second (`settings: {client: requests}`) gets it with the address replaced and
nothing else: litellm needs minutes to import on an emulated processor.
"""

import os

from minisweagent.models.openrouter_model import OpenRouterModel


class MeteredModel(OpenRouterModel):
    """The client as shipped, with the meter's address and the run-scoped token."""

    def __init__(self, **settings):
        super().__init__(**settings)
        self._api_url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
        self._api_key = os.environ["OPENAI_API_KEY"]
