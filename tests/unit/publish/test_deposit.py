"""Both forms of a deposit against what their standards require, from a published round."""

from __future__ import annotations

import json
from typing import Any

import pytest

from controller.conductor.recompute import RoundRecompute
from controller.domain.ids import sha256_digest
from controller.errors import InvalidInput
from controller.evidence import bundle
from controller.publish.deposit import CRATE, ZENODO, deposit_files, terms_of

TERMS = terms_of(
    ["Doe, Anna", "The <Lab>"], "CC-BY-4.0", ["isNewVersionOf=10.5281/zenodo.1", "cites=https://x.org/?a=b"]
)
Files = dict[str, bytes]


def made(held: Files, version: int = 3) -> tuple[dict[str, Any], dict[str, Any]]:
    files = deposit_files(RoundRecompute().manifest(held[bundle.MANIFEST]), held, version, TERMS)
    return json.loads(files[ZENODO]), json.loads(files[CRATE])


def test_zenodos_metadata_has_every_field_of_a_dataset(good_bundle: Files) -> None:
    found = made(good_bundle)[0]["metadata"]
    assert found["upload_type"] == "dataset"
    assert found["title"] == "A small round (rehearsal)"
    assert found["creators"] == [{"name": "Doe, Anna"}, {"name": "The <Lab>"}]
    assert (found["license"], found["access_right"], found["version"]) == ("cc-by-4.0", "open", "3")
    assert found["publication_date"] == "2026-09-21"
    assert found["related_identifiers"] == [
        {"relation": "isNewVersionOf", "identifier": "10.5281/zenodo.1"},
        {"relation": "cites", "identifier": "https://x.org/?a=b"},
    ]
    assert found["description"].startswith("<p>")
    assert "harness-round" in found["keywords"]
    assert all(isinstance(word, str) for word in found["keywords"])


def test_the_crate_has_the_structure_that_ro_crate_1_1_requires(good_bundle: Files) -> None:
    crate = made(good_bundle)[1]
    assert crate["@context"][0] == "https://w3id.org/ro/crate/1.1/context"
    entities = {entity["@id"]: entity for entity in crate["@graph"]}
    assert len(entities) == len(crate["@graph"]), "every @id is unique"
    assert all("@type" in entity for entity in entities.values())
    descriptor = entities["ro-crate-metadata.json"]
    assert descriptor["@type"] == "CreativeWork"
    assert (descriptor["about"], descriptor["conformsTo"]) == (
        {"@id": "./"},
        {"@id": "https://w3id.org/ro/crate/1.1"},
    )
    root = entities["./"]
    assert root["@type"] == "Dataset"
    assert {"name", "description", "datePublished", "license", "hasPart", "creator"} <= root.keys()
    references = [*root["hasPart"], *root["creator"], root["license"]]
    assert all(reference["@id"] in entities for reference in references), "nothing is referred to that is not described"
    assert [entities[person["@id"]]["name"] for person in root["creator"]] == ["Doe, Anna", "The <Lab>"]


def test_the_crate_lists_every_file_of_the_version_as_it_is(good_bundle: Files) -> None:
    graph = made(good_bundle)[1]["@graph"]
    files = {entity["@id"].removeprefix("v3/"): entity for entity in graph if entity["@type"] == "File"}
    assert files.keys() == good_bundle.keys()
    for name, data in good_bundle.items():
        assert files[name]["contentSize"] == str(len(data))
        assert "sha256:" + files[name]["sha256"] == sha256_digest(data)
        assert files[name]["encodingFormat"]


def test_the_same_version_and_terms_give_the_same_bytes(good_bundle: Files) -> None:
    manifest = RoundRecompute().manifest(good_bundle[bundle.MANIFEST])
    again = dict(reversed(list(good_bundle.items())))
    assert deposit_files(manifest, good_bundle, 1, TERMS) == deposit_files(manifest, again, 1, TERMS)


@pytest.mark.parametrize(
    ("creators", "licence", "related"),
    [
        ([], "CC-BY-4.0", []),
        ([" "], "CC-BY-4.0", []),
        (["Doe"], "", []),
        (["Doe"], "CC BY", []),
        (["Doe"], "https://x.org/l", []),
        (["Doe"], "CC-BY-4.0", ["10.5281/zenodo.1"]),
        (["Doe"], "CC-BY-4.0", ["likes=10.5281/zenodo.1"]),
        (["Doe"], "CC-BY-4.0", ["cites="]),
    ],
)
def test_terms_that_no_repository_takes_are_refused(creators: list[str], licence: str, related: list[str]) -> None:
    with pytest.raises(InvalidInput):
        terms_of(creators, licence, related)
