"""The stand-alone checker on a round of sealed tasks: commitments make up the corpus root, and patches stay out."""

from __future__ import annotations

from controller.adapters.files_durable import LocalFiles
from controller.domain.ids import sha256_digest
from controller.evidence import bundle
from controller.offline.check import examine
from controller.offline.signatures import read_keys
from tests.world.sealed_site import Site
from tests.world.signer import FixedSigner

SIGNER = FixedSigner()


def test_it_accepts_the_bundle_and_refuses_a_patch_of_a_sealed_task(closed: Site) -> None:
    files = LocalFiles().read_directory(closed.bundle, bytes_max=2**30)
    ring = read_keys(files[bundle.KEYS], "keys.json")
    report = examine(files, ring, is_pinned=True)
    assert report.passed, report
    assert b'"commitment":' in files[bundle.MANIFEST]
    del files[bundle.INDEX]
    patch = next((closed.round / "patches").iterdir())
    leaking = {**files, f"patches/{patch.name}": patch.read_bytes()}
    digest = sha256_digest(files[bundle.MANIFEST])
    built = bundle.build(leaking, SIGNER, round_id="small", manifest_digest=digest)
    refused = examine(built, ring, is_pinned=True).steps[5]
    assert (refused.passed, "belongs to no verdict on an open task" in refused.detail) == (False, True)
