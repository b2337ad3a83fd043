"""What a repository asks of a deposit, as files: Zenodo's metadata and an RO-Crate. Pure; nothing is sent.

The crate's root is a directory that holds the version's directory as it is and `ro-crate-metadata.json` beside it.
"""

from __future__ import annotations

import html
import json
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Annotated, Any, Final

from pydantic import Field, StringConstraints, ValidationError

from controller.domain.aggregate import Aggregate
from controller.domain.ids import sha256_digest
from controller.domain.instant import instant_text
from controller.domain.plan import RoundManifest
from controller.domain.record import Record, field_faults
from controller.domain.statement import Statement
from controller.errors import InvalidInput
from controller.evidence import bundle
from controller.evidence.approval import Approval
from controller.evidence.canonical import parse, parse_lines
from controller.evidence.envelope import Envelope, decode_base64

CRATE: Final = "ro-crate-metadata.json"
ZENODO: Final = "zenodo.json"
_CONTEXT: Final = ("https://w3id.org/ro/crate/1.1/context", {"sha256": "http://schema.org/sha256"})
_TYPES: Final = {
    ".html": "text/html",
    ".json": "application/json",
    ".jsonl": "application/jsonl",
    ".patch": "text/x-patch",
    ".txt": "text/plain",
}
# DataCite's relations, as Zenodo takes them.
_RELATIONS: Final = frozenset(
    {
        "cites", "compiles", "continues", "describes", "documents", "hasPart", "hasVersion", "isCitedBy",
        "isCompiledBy", "isContinuedBy", "isDerivedFrom", "isDescribedBy", "isDocumentedBy", "isIdenticalTo",
        "isNewVersionOf", "isObsoletedBy", "isPartOf", "isPreviousVersionOf", "isReferencedBy", "isRequiredBy",
        "isReviewedBy", "isSourceOf", "isSupplementTo", "isSupplementedBy", "isVersionOf", "obsoletes", "references",
        "requires", "reviews",
    }
)  # fmt: skip
Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]


class DepositTerms(Record):
    """What only the publisher can say."""

    creators: tuple[Text, ...] = Field(min_length=1)  # each as "Family, Given", or the name of an organization
    licence: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9.+-]{1,63}$")]  # an SPDX id
    related: tuple[tuple[str, Text], ...] = ()  # relation, identifier


def terms_of(creators: Sequence[str], licence: str, related: Sequence[str]) -> DepositTerms:
    """The terms as typed on a command line. Raises InvalidInput naming the option."""
    pairs = []
    for text in related:
        relation, _, identifier = text.partition("=")
        if relation not in _RELATIONS:
            raise InvalidInput(
                f"--related {text!r}: {relation!r} is no relation that Zenodo knows, such as isNewVersionOf"
            )
        pairs.append((relation, identifier))
    try:
        return DepositTerms(creators=tuple(creators), licence=licence, related=tuple(pairs))
    except ValidationError as error:
        raise InvalidInput(f"deposit: {field_faults(error)[0]}") from error


def deposit_files(
    manifest: RoundManifest, held: Mapping[str, bytes], version: int, terms: DepositTerms
) -> dict[str, bytes]:
    """Both files for one published version; the same bytes for the same version and terms."""
    about = _About(manifest, held, version, terms)
    return {ZENODO: _json({"metadata": about.zenodo()}), CRATE: _json(about.crate())}


class _About:
    """What both forms say of a version."""

    def __init__(self, manifest: RoundManifest, held: Mapping[str, bytes], version: int, terms: DepositTerms) -> None:
        self._held, self._version, self._terms = held, version, terms
        aggregate = parse(held[bundle.AGGREGATE], Aggregate, bundle.AGGREGATE)
        mark = " (rehearsal)" if manifest.kind == "rehearsal" else ""
        self._title = f"{manifest.title}{mark}"
        self._conclusion = aggregate.conclusion
        self._how = (
            f"A round of the protocol {manifest.protocol} under the manifest {aggregate.sources.manifest}. "
            "The bundle can be checked offline with `fairtrial check`. Patches remain under the licences of the "
            "repositories they change."
        )
        self._keywords = ["benchmark", "coding agents", "reproducibility", manifest.protocol, manifest.kind]
        self._date = _published_on(held)

    def zenodo(self) -> dict[str, Any]:
        """The `metadata` of a deposition."""
        return {
            "upload_type": "dataset",
            "title": self._title,
            "creators": [{"name": name} for name in self._terms.creators],
            "description": f"<p>{html.escape(self._conclusion)}</p>\n<p>{html.escape(self._how)}</p>",
            "keywords": self._keywords,
            "version": str(self._version),
            "publication_date": self._date,
            "access_right": "open",
            "license": self._terms.licence.lower(),
            "related_identifiers": [
                {"relation": relation, "identifier": identifier} for relation, identifier in self._terms.related
            ],
        }

    def crate(self) -> dict[str, Any]:
        """The metadata document of the crate."""
        licence = f"https://spdx.org/licenses/{self._terms.licence}"
        people = [
            {"@id": f"#creator-{number}", "@type": "Person", "name": name}
            for number, name in enumerate(self._terms.creators, start=1)
        ]
        files = [_file(f"v{self._version}/{name}", data) for name, data in sorted(self._held.items())]
        root = {
            "@id": "./",
            "@type": "Dataset",
            "name": self._title,
            "description": f"{self._conclusion} {self._how}",
            "datePublished": self._date,
            "license": {"@id": licence},
            "creator": [{"@id": person["@id"]} for person in people],
            "keywords": ", ".join(self._keywords),
            "version": str(self._version),
            "hasPart": [{"@id": file["@id"]} for file in files],
        }
        descriptor = {
            "@id": CRATE,
            "@type": "CreativeWork",
            "about": {"@id": "./"},
            "conformsTo": {"@id": "https://w3id.org/ro/crate/1.1"},
        }
        named = {"@id": licence, "@type": "CreativeWork", "name": self._terms.licence}
        return {"@context": list(_CONTEXT), "@graph": [descriptor, root, named, *people, *files]}


def _file(name: str, data: bytes) -> dict[str, str]:
    return {
        "@id": name,
        "@type": "File",
        "name": name.partition("/")[2],
        "contentSize": str(len(data)),
        "encodingFormat": _TYPES.get(PurePosixPath(name).suffix, "application/octet-stream"),
        "sha256": sha256_digest(data).removeprefix("sha256:"),
    }


def _published_on(held: Mapping[str, bytes]) -> str:
    """The day a person approved it; without an approval, the day of the log's last statement."""
    if bundle.APPROVAL in held:
        envelope = parse(held[bundle.APPROVAL], Envelope, bundle.APPROVAL)
        at = parse(decode_base64(envelope.payload, bundle.APPROVAL), Approval, bundle.APPROVAL).approved_at
    else:
        at = parse_lines(held[bundle.STATEMENTS], Statement, bundle.STATEMENTS)[-1].at
    return instant_text(at)[:10]


def _json(value: dict[str, Any]) -> bytes:
    return json.dumps(value, indent=2, ensure_ascii=False).encode() + b"\n"
