from __future__ import annotations

import hashlib

import pytest

from controller.errors import BundleRejected
from controller.evidence import merkle

# The roots of the first eight trees over the inputs of the Certificate Transparency reference tests.
CT_LEAVES = [bytes.fromhex(h) for h in ("", "00", "10", "2021", "3031", "40414243", "5051525354555657")] + [
    bytes.fromhex("606162636465666768696a6b6c6d6e6f")
]
CT_ROOTS = [
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]
LEAVES = [bytes([n]) for n in range(64)]


def _recursive_root(leaves: list[bytes]) -> bytes:
    """The definition in RFC 6962, section 2.1."""
    if not leaves:
        return hashlib.sha256(b"").digest()
    if len(leaves) == 1:
        return hashlib.sha256(b"\0" + leaves[0]).digest()
    k = 1
    while k * 2 < len(leaves):
        k *= 2
    return hashlib.sha256(b"\1" + _recursive_root(leaves[:k]) + _recursive_root(leaves[k:])).digest()


def test_roots_of_the_reference_trees() -> None:
    assert [merkle.root(CT_LEAVES[: n + 1]).hex() for n in range(8)] == CT_ROOTS


def test_every_root_up_to_64_follows_the_definition() -> None:
    for size in range(65):
        assert merkle.root(LEAVES[:size]) == _recursive_root(LEAVES[:size])


def test_every_inclusion_proof_up_to_64_leads_to_the_root_and_only_for_its_leaf_and_index() -> None:
    for size in range(1, 65):
        leaves, root = LEAVES[:size], merkle.root(LEAVES[:size])
        for index in range(size):
            proof = merkle.inclusion_proof(leaves, index)
            merkle.check_inclusion(leaves[index], index, size, proof, root)
            other = (index + 1) % size
            if other != index:
                for leaf, place in ((leaves[other], index), (leaves[index], other)):
                    with pytest.raises(BundleRejected):
                        merkle.check_inclusion(leaf, place, size, proof, root)
            for wrong in (proof[:-1], (*proof, root)) if proof else ((root,),):
                with pytest.raises(BundleRejected):
                    merkle.check_inclusion(leaves[index], index, size, wrong, root)


def test_every_consistency_proof_up_to_64_holds_and_only_for_its_sizes_and_roots() -> None:
    roots = [merkle.root(LEAVES[:size]) for size in range(65)]
    for size in range(1, 65):
        for old in range(1, size + 1):
            proof = merkle.consistency_proof(LEAVES[:size], old)
            merkle.check_consistency(old, size, roots[old], roots[size], proof)
            with pytest.raises(BundleRejected):
                merkle.check_consistency(old, size, roots[old - 1], roots[size], proof)
            with pytest.raises(BundleRejected):
                merkle.check_consistency(old, size, roots[old], roots[size - 1], proof)
            with pytest.raises(BundleRejected):
                merkle.check_consistency(old, size, roots[old], roots[size], (*proof, roots[1]))


@pytest.mark.parametrize(("index", "size"), [(-1, 3), (3, 3), (0, 0)])
def test_leaves_outside_the_tree_are_refused(index: int, size: int) -> None:
    with pytest.raises(IndexError):
        merkle.inclusion_proof(LEAVES[:size], index)
    with pytest.raises(BundleRejected):
        merkle.check_inclusion(b"x", index, size, (), merkle.EMPTY_ROOT)


@pytest.mark.parametrize(("old", "size"), [(0, 3), (4, 3)])
def test_impossible_histories_are_refused(old: int, size: int) -> None:
    with pytest.raises(IndexError):
        merkle.consistency_proof(LEAVES[:size], old)
    with pytest.raises(BundleRejected):
        merkle.check_consistency(old, size, merkle.EMPTY_ROOT, merkle.EMPTY_ROOT, ())


def test_a_running_tree_has_the_root_of_its_leaves_and_goes_on_from_its_peaks() -> None:
    tree = merkle.RunningTree()
    for size in range(65):
        assert (tree.size, tree.root) == (size, _recursive_root(LEAVES[:size]))
        tree = merkle.RunningTree(tree.size, tree.peaks)
        if size < 64:
            tree.add(LEAVES[size])


@pytest.mark.parametrize(("size", "peaks"), [(0, b"x" * 32), (1, b""), (3, b"x" * 32), (2, b"x" * 31), (4, b"x" * 64)])
def test_peaks_that_do_not_fit_the_size_are_refused(size: int, peaks: bytes) -> None:
    with pytest.raises(ValueError, match="peaks"):
        merkle.RunningTree(size, peaks)


def test_roots_at_several_sizes_are_found_in_one_pass() -> None:
    assert merkle.roots_at(LEAVES, {0, 1, 7, 64, 65}) == {n: _recursive_root(LEAVES[:n]) for n in (0, 1, 7, 64)}
