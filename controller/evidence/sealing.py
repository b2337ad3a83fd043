"""Seal a task's content for those who may open it, and open it again.

Every part has a key of its own, used for one encryption. That key is wrapped for each recipient: X25519 with an
ephemeral key, HKDF-SHA256, ChaCha20-Poly1305. Both encryptions authenticate the task's id, the part and the commitment,
so that no ciphertext passes for another one's. The manifest names the ciphertexts: who knows a recipient's public key
could encrypt something else for him, but not under that digest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeVar

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from controller.domain.ids import sha256_digest
from controller.domain.paths import tree_path_faults
from controller.domain.plan import SealedContent, TaskEntry
from controller.domain.record import Record
from controller.domain.sealed import (
    PARTS,
    SALT_BYTES,
    CuratorPart,
    Opening,
    Part,
    RecipientKey,
    RunnerPart,
    SealedTask,
    VerifierPart,
    WrappedKey,
)
from controller.domain.task import TaskBrief, TaskBundle
from controller.domain.tree import REGULAR, TreeFile, tree_digest
from controller.errors import BundleRejected, InvalidInput, SealedKeyMissing
from controller.evidence.canonical import canonical, dumps, parse
from controller.evidence.corpus import commitment
from controller.ports.entropy import Entropy
from controller.ports.opener import Opener

R = TypeVar("R", bound=Record)

KEY_BYTES: Final = 32
NONCE: Final = bytes(12)  # every key encrypts once, so that the nonce need not tell encryptions apart
RESTORE: Final = "Restore the sealed store from the curators' copy; what can't be proven to be the task is not used."


def check_recipients(recipients: Sequence[RecipientKey]) -> None:
    """Raises InvalidInput unless every part has a recipient and no key is for two parts."""
    absent = [part for part in PARTS if part not in {key.part for key in recipients}]
    if absent:
        raise InvalidInput(f"recipients: no key for {', '.join(absent)}", remedy="Give one public key for each part.")
    ids = [key.id for key in recipients]
    if len(set(ids)) < len(ids):
        raise InvalidInput("recipients: a key is given twice", remedy="Separate access needs a key for each part.")


def seal(
    bundle: TaskBundle, others: Mapping[str, bytes], recipients: Sequence[RecipientKey], entropy: Entropy
) -> tuple[SealedTask, dict[Part, bytes]]:
    """What may be published of the task, and its three ciphertexts. `others` are files that no machine needs.

    Raises InvalidInput for recipients that can't open every part, each by a key of its own.
    """
    check_recipients(recipients)
    salt = entropy.token_bytes(SALT_BYTES)
    digest = commitment(opening_of(bundle.entry), salt)
    plain: dict[Part, Record] = {
        "runner": RunnerPart(
            prompt=bundle.prompt,
            base=bundle.base,
            rehearsal_json=bundle.rehearsal_json,
            verify_seconds=bundle.verify_seconds,
        ),
        "verifier": VerifierPart(
            verifier=bundle.verifier, gold_patch=bundle.gold_patch, protected=bundle.protected
        ),
        "curator": CuratorPart(salt_hex=salt.hex(), files=dict(others)),
    }  # fmt: skip
    ciphertexts: dict[Part, bytes] = {}
    keys: dict[Part, tuple[WrappedKey, ...]] = {}
    for part in PARTS:
        bound = _bound(bundle.entry.id, part, digest)
        key = entropy.token_bytes(KEY_BYTES)
        ciphertexts[part] = ChaCha20Poly1305(key).encrypt(NONCE, canonical(plain[part]), bound)
        readers = [reader for reader in recipients if reader.part in (part, "curator")]
        keys[part] = tuple(_wrap(key, reader, bound, entropy) for reader in readers)
    content = SealedContent(
        commitment=digest,
        runner_digest=sha256_digest(ciphertexts["runner"]),
        verifier_digest=sha256_digest(ciphertexts["verifier"]),
    )
    task = SealedTask(
        entry=_sealed_entry(bundle.entry, content),
        curator_digest=sha256_digest(ciphertexts["curator"]),
        keys=keys,
        is_rehearsable=bundle.rehearsal_json is not None,
    )
    return task, ciphertexts


def opening_of(entry: TaskEntry) -> Opening:
    """The digests that a commitment to this task stands for. Raises InvalidInput for a task that is sealed already."""
    if entry.sealed is not None:
        raise InvalidInput(f"task {entry.id} is sealed already")
    return Opening.model_validate({name: getattr(entry, name) for name in Opening.model_fields})


def open_runner(task: SealedTask, ciphertext: bytes, opener: Opener) -> TaskBrief:
    """What a harness receives. Raises SealedKeyMissing, or BundleRejected for bytes that are not the frozen ones."""
    part = _opened(task, "runner", ciphertext, opener, RunnerPart)
    _check_names(task, part.base)
    return TaskBrief(
        entry=task.entry,
        prompt=part.prompt,
        base=part.base,
        rehearsal_json=part.rehearsal_json,
        verify_seconds=part.verify_seconds,
    )


def open_verifier(task: SealedTask, brief: TaskBrief, ciphertext: bytes, opener: Opener) -> TaskBundle:
    """The whole task. Raises SealedKeyMissing, or BundleRejected for bytes that are not the frozen ones."""
    part = _opened(task, "verifier", ciphertext, opener, VerifierPart)
    _check_names(task, part.verifier)
    return TaskBundle(
        entry=task.entry,
        prompt=brief.prompt,
        base=brief.base,
        rehearsal_json=brief.rehearsal_json,
        verify_seconds=brief.verify_seconds,
        verifier=part.verifier,
        gold_patch=part.gold_patch,
        protected=part.protected,
    )


def open_curator(task: SealedTask, ciphertext: bytes, opener: Opener) -> CuratorPart:
    """The salt and the remaining files. Raises SealedKeyMissing or BundleRejected."""
    part = _opened(task, "curator", ciphertext, opener, CuratorPart)
    _check_names(task, part.files)
    return part


def directory_of(bundle: TaskBundle, others: Mapping[str, bytes]) -> dict[str, bytes]:
    """The files of the task's directory, put together again from its parts."""
    files = {**others, "prompt.md": bundle.prompt.encode(), "gold.patch": bundle.gold_patch}
    files |= {f"verifier/{name}": data for name, data in bundle.verifier.items()}
    return files if bundle.rehearsal_json is None else {**files, "rehearsal.json": bundle.rehearsal_json.encode()}


def opening_of_content(bundle: TaskBundle, others: Mapping[str, bytes]) -> Opening:
    """The digests as the content itself gives them: what the commitment must stand for."""
    return Opening(
        id=bundle.entry.id,
        task_digest=_files_digest(directory_of(bundle, others)),
        prompt_digest=sha256_digest(bundle.prompt.encode()),
        base_digest=tree_digest(bundle.base),
        verifier_digest=_files_digest(bundle.verifier),
        gold_digest=sha256_digest(bundle.gold_patch),
    )


def check_recipient(task: SealedTask, part: Part, opener: Opener) -> WrappedKey:
    """The wrapped key that is for this opener. Raises SealedKeyMissing without opening anything."""
    for wrapped in task.keys[part]:
        if wrapped.recipient == opener.key.id:
            return wrapped
    raise SealedKeyMissing(f"task {task.entry.id}: its {part} part is not sealed for {opener.key.id[:23]}...")


def _sealed_entry(entry: TaskEntry, content: SealedContent) -> TaskEntry:
    plain = dict.fromkeys(name for name in Opening.model_fields if name != "id")
    return TaskEntry.model_validate({**dict(entry), **plain, "sealed": content})


def _files_digest(files: Mapping[str, bytes]) -> str:
    return tree_digest({path: TreeFile(mode=REGULAR, data=data) for path, data in files.items()})


def _bound(task: str, part: Part, digest: str) -> bytes:
    return dumps({"schema": "fairtrial.sealed-part/1", "task": task, "part": part, "commitment": digest})


def _wrap(key: bytes, reader: RecipientKey, bound: bytes, entropy: Entropy) -> WrappedKey:
    ephemeral = X25519PrivateKey.from_private_bytes(entropy.token_bytes(KEY_BYTES))
    public = ephemeral.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    try:
        shared = ephemeral.exchange(X25519PublicKey.from_public_bytes(bytes.fromhex(reader.public_hex)))
    except ValueError as error:
        raise InvalidInput(f"recipients: {reader.id} is of small order, so anybody could open what it seals") from error
    wrapped = ChaCha20Poly1305(_wrapping_key(shared, public, reader)).encrypt(NONCE, key, bound)
    return WrappedKey(recipient=reader.id, ephemeral_hex=public.hex(), wrapped_hex=wrapped.hex())


def _wrapping_key(shared: bytes, ephemeral: bytes, reader: RecipientKey) -> bytes:
    salt = ephemeral + bytes.fromhex(reader.public_hex)
    return HKDF(algorithm=SHA256(), length=KEY_BYTES, salt=salt, info=b"fairtrial.sealed-key/1").derive(shared)


def _opened(task: SealedTask, part: Part, ciphertext: bytes, opener: Opener, kind: type[R]) -> R:
    where = f"task {task.entry.id}: its {part} part"
    wrapped = check_recipient(task, part, opener)
    if sha256_digest(ciphertext) != task.ciphertext_digest(part):
        raise BundleRejected(f"{where} is not the one that was sealed", remedy=RESTORE)
    bound = _bound(task.entry.id, part, task.commitment)
    ephemeral = bytes.fromhex(wrapped.ephemeral_hex)
    try:
        wrapping = _wrapping_key(opener.exchange(ephemeral), ephemeral, opener.key)
        key = ChaCha20Poly1305(wrapping).decrypt(NONCE, bytes.fromhex(wrapped.wrapped_hex), bound)
        plain = ChaCha20Poly1305(key).decrypt(NONCE, ciphertext, bound)
    except (InvalidTag, ValueError) as error:
        raise BundleRejected(f"{where} does not open: it was changed, or is another task's", remedy=RESTORE) from error
    return parse(plain, kind, where)


def _check_names(task: SealedTask, names: Mapping[str, object]) -> None:
    if faults := tree_path_faults(names):
        raise BundleRejected(f"task {task.entry.id}: {faults[0]}", remedy=RESTORE)
