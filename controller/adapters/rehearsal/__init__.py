"""The rehearsal model: a scripted upstream that needs no key and no network.

Input: the scripts of the tasks and a chance seed. Output: a web application that speaks the Anthropic Messages, OpenAI
Chat Completions, OpenAI Responses and Gemini dialects and plays a task's script through whatever shell tool the harness
offers.

Invariants: the answer to a request is a pure function of its body, its key, the script and the seed (only reply ids
count requests); results made with it are marked and can't be published as measurements.
"""

from controller.adapters.rehearsal.script import RehearsalScript, parse_script
from controller.adapters.rehearsal.server import REHEARSAL_MODEL, app
from controller.adapters.rehearsal.service import RehearsalConfig, serve

__all__ = ["REHEARSAL_MODEL", "RehearsalConfig", "RehearsalScript", "app", "parse_script", "serve"]
