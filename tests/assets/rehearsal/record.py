"""Records what a real harness sends to the rehearsal model, trimmed, as the transcripts beside this file.

    python tests/assets/rehearsal/record.py OUT.json [PORT]

It serves `script.json` on the loopback interface until it is interrupted, and writes OUT.json when it ends. Point the
harness at http://127.0.0.1:PORT with the key `rehearsal:calc:<arm>:1:1`, in a repository that holds `calc.py`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Final

from aiohttp import web

from controller.adapters.rehearsal import app, parse_script
from controller.adapters.rehearsal.shell_tool import FINISH_MARKER

HERE: Final = Path(__file__).parent
DROPPED: Final = frozenset({"client_metadata", "metadata", "prompt_cache_key"})  # identifiers of an installation
PROSE: Final = frozenset({"description", "system", "instructions"})  # a vendor's own words, which are not ours to keep
LENGTH_KEPT: Final = 120


def trimmed(value: Any) -> Any:
    """The body without identifiers and without most of its prose: what remains decides how it is answered."""
    if isinstance(value, dict):
        return {
            name: "..." if name in PROSE and isinstance(part, str) else trimmed(part)
            for name, part in value.items()
            if name not in DROPPED
        }
    if isinstance(value, list):
        return [trimmed(part) for part in value]
    if isinstance(value, str) and len(value) > LENGTH_KEPT:
        kept = [marker for marker in (FINISH_MARKER, "exec_command") if marker in value[LENGTH_KEPT:]]
        return " […] ".join([value[:LENGTH_KEPT], *kept])
    return value


def main(out: Path, port: int) -> None:
    requests: list[dict[str, Any]] = []

    @web.middleware
    async def keep(request: web.Request, handler: Any) -> web.StreamResponse:
        if request.method == "POST":
            requests.append({"path": request.path_qs, "body": trimmed(json.loads(await request.read()))})
        response: web.StreamResponse = await handler(request)
        return response

    script = parse_script((HERE / "script.json").read_bytes(), origin="script.json")
    application = app({"calc": script}, "recording")
    application.middlewares.append(keep)
    web.run_app(application, host="127.0.0.1", port=port, print=None)
    lines = (json.dumps(request, ensure_ascii=False, separators=(",", ":")) for request in requests)
    out.write_text("[\n" + ",\n".join(lines) + "\n]\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 8080)
