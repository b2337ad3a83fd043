"""Everything one conducted round needs, passed as one value; there is no global state."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, get_args

from controller import run as run_stage
from controller import verify as verify_stage
from controller.conductor.checkpoints import Checkpoints
from controller.domain.ids import AttemptId
from controller.domain.keys import KeyRing
from controller.domain.outcome import Verdict
from controller.domain.plan import RoundManifest
from controller.domain.receipt import RunOrder
from controller.domain.task import TaskBundle
from controller.domain.tree_stream import HarvestedTree
from controller.ports.clock import Clock
from controller.ports.files import DurableFiles
from controller.ports.harness import HarnessAdapter
from controller.ports.journal import Journal
from controller.ports.ledger import Artifacts, Ledger
from controller.ports.patches import PatchTool
from controller.ports.pool import Pool, Sandbox
from controller.ports.tasks import TaskContents

Execute = Callable[[Sandbox, RunOrder], object]
TokenKind = Literal["rt", "up", "canary"]  # for the meter, for the result API, and for nothing
TOKEN_KINDS: Final[tuple[TokenKind, ...]] = get_args(TokenKind)
Verify = Callable[[Sandbox, TaskBundle, HarvestedTree | str, PatchTool], tuple[Verdict, bytes]]


@dataclass(frozen=True)
class World:
    """A frozen round, its task contents, and the ports that act on it. Tokens derive from the round's secret.

    `execute` and `verify` are the two stages that act inside machines; simulated rounds put their own in place.
    """

    round_dir: Path
    manifest: RoundManifest
    manifest_digest: str
    tasks: TaskContents
    harnesses: Mapping[str, HarnessAdapter]
    journal: Journal
    checkpoints: Checkpoints
    pool: Pool
    ledger: Ledger
    artifacts: Artifacts
    patches: PatchTool
    files: DurableFiles
    clock: Clock
    keys: KeyRing
    secret: bytes
    egress_socket: str
    owner: str
    epoch: int
    rate_card_in_use: Callable[[], str]  # digest of the card that the meter prices by, as it says itself
    probe_names: tuple[str, ...] = ()  # hosts that no attempt may resolve, besides those that are always tried
    execute: Execute = run_stage.execute
    verify: Verify = verify_stage.verify

    def token(self, kind: TokenKind, attempt: AttemptId, generation: int) -> str:
        """A run-scoped token of this round."""
        return derived_token(self.secret, self.manifest_digest, kind, attempt, generation)

    def without_names(self, text: str) -> str:
        """The text without the host names that only this machine's configuration knows: the log is published."""
        for name in self.probe_names:
            text = text.replace(name, "a package registry")
        return text


def derived_token(secret: bytes, manifest_digest: str, kind: TokenKind, attempt: AttemptId, generation: int) -> str:
    """A 256-bit run-scoped token: derived, so that it need not be stored anywhere but in the guest."""
    message = f"{kind}|{manifest_digest}|{attempt}|g{generation}".encode()
    return f"{kind}_{hmac.new(secret, message, hashlib.sha256).hexdigest()}"


def token_sha256(token: str) -> str:
    """What ledgers store instead of the token: 64 hex digits."""
    return hashlib.sha256(token.encode()).hexdigest()
