"""The RFC 6962 Merkle tree: roots, inclusion proofs and consistency proofs.

An inclusion proof does not bind the size of the tree; size and root must be signed together (see `note`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from typing import Final

from controller.errors import BundleRejected

EMPTY_ROOT: Final = hashlib.sha256(b"").digest()


def leaf_hash(data: bytes) -> bytes:
    return hashlib.sha256(b"\x00" + data).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\x01" + left + right).digest()


def root(leaves: Sequence[bytes]) -> bytes:
    """The root over the leaf data, 32 bytes."""
    return root_of_hashes([leaf_hash(leaf) for leaf in leaves])


class RunningTree:
    """The root of a log that only grows, kept as the roots of its perfect subtrees, the largest first."""

    def __init__(self, size: int = 0, peaks: bytes = b"") -> None:
        """A tree of `size` leaves from what `peaks` returned. Raises ValueError when the two don't fit."""
        if len(peaks) != 32 * size.bit_count():
            raise ValueError(f"{len(peaks)} bytes can't be the peaks of {size} leaves")
        self.size = size
        self._peaks = [peaks[at : at + 32] for at in range(0, len(peaks), 32)]

    def add(self, leaf: bytes) -> None:
        """Append one leaf."""
        node, size = leaf_hash(leaf), self.size
        while size % 2:
            node, size = node_hash(self._peaks.pop(), node), size // 2
        self._peaks.append(node)
        self.size += 1

    @property
    def peaks(self) -> bytes:
        """Everything that is needed to go on."""
        return b"".join(self._peaks)

    @property
    def root(self) -> bytes:
        """The same as `root` over all leaves."""
        if not self._peaks:
            return EMPTY_ROOT
        value = self._peaks[-1]
        for peak in reversed(self._peaks[:-1]):
            value = node_hash(peak, value)
        return value


def roots_at(leaves: Sequence[bytes], sizes: Collection[int]) -> dict[int, bytes]:
    """The roots over the first leaves, for each of the sizes that the log has reached, in one pass."""
    tree, found = RunningTree(), {0: EMPTY_ROOT} if 0 in sizes else {}
    for leaf in leaves:
        tree.add(leaf)
        if tree.size in sizes:
            found[tree.size] = tree.root
    return found


def inclusion_proof(leaves: Sequence[bytes], index: int) -> tuple[bytes, ...]:
    """The sibling hashes from leaf `index` up. Raises IndexError when there is no such leaf."""
    if not 0 <= index < len(leaves):
        raise IndexError(f"leaf {index} of {len(leaves)}")
    return tuple(_path([leaf_hash(leaf) for leaf in leaves], index))


def consistency_proof(leaves: Sequence[bytes], old_size: int) -> tuple[bytes, ...]:
    """Proof that the first `old_size` leaves are a prefix. Raises IndexError outside 1..len(leaves)."""
    if not 1 <= old_size <= len(leaves):
        raise IndexError(f"old size {old_size} of {len(leaves)}")
    return tuple(_subproof([leaf_hash(leaf) for leaf in leaves], old_size, whole=True))


def check_inclusion(leaf: bytes, index: int, size: int, proof: Sequence[bytes], expected_root: bytes) -> None:
    """Raises BundleRejected unless the proof leads from the leaf to the root (RFC 9162, 2.1.3.2)."""
    if not 0 <= index < size:
        raise BundleRejected(f"inclusion proof: leaf {index} lies outside a tree of {size}")
    node, last, value = index, size - 1, leaf_hash(leaf)
    for sibling in proof:
        if last == 0:
            raise BundleRejected("inclusion proof is longer than the tree is high")
        if node % 2 or node == last:
            value = node_hash(sibling, value)
            while node % 2 == 0 and node:
                node, last = node // 2, last // 2
        else:
            value = node_hash(value, sibling)
        node, last = node // 2, last // 2
    if last or value != expected_root:
        raise BundleRejected(f"inclusion proof of leaf {index} does not lead to the root")


def check_consistency(old_size: int, size: int, old_root: bytes, new_root: bytes, proof: Sequence[bytes]) -> None:
    """Raises BundleRejected unless the old tree is a prefix of the new one (RFC 9162, 2.1.4.2)."""
    if not 1 <= old_size <= size:
        raise BundleRejected(f"consistency proof: {old_size} leaves can't precede {size}")
    if old_size == size:
        if proof or old_root != new_root:
            raise BundleRejected("trees of one size have different roots, or a proof that should be empty")
        return
    path = list(proof)
    if old_size & (old_size - 1) == 0:
        path.insert(0, old_root)
    node, last = old_size - 1, size - 1
    while node % 2:
        node, last = node // 2, last // 2
    if not path:
        raise BundleRejected("consistency proof is empty")
    old = new = path[0]
    for step in path[1:]:
        if last == 0:
            raise BundleRejected("consistency proof is longer than the tree is high")
        if node % 2 or node == last:
            old, new = node_hash(step, old), node_hash(step, new)
            while node % 2 == 0 and node:
                node, last = node // 2, last // 2
        else:
            new = node_hash(new, step)
        node, last = node // 2, last // 2
    if last or old != old_root or new != new_root:
        raise BundleRejected(f"{old_size} leaves are not a prefix of the {size} under the new root")


def _split(size: int) -> int:
    """The largest power of two below the size."""
    return 1 << ((size - 1).bit_length() - 1)


def root_of_hashes(hashes: Sequence[bytes]) -> bytes:
    """The root over leaf hashes, where leaf data may not be known. Level by level, without the definition's depth."""
    if not hashes:
        return EMPTY_ROOT
    level = list(hashes)
    while len(level) > 1:
        pairs = [node_hash(level[i], level[i + 1]) for i in range(0, len(level) - 1, 2)]
        level = pairs + level[len(pairs) * 2 :]
    return level[0]


def _path(hashes: Sequence[bytes], index: int) -> list[bytes]:
    if len(hashes) == 1:
        return []
    k = _split(len(hashes))
    if index < k:
        return [*_path(hashes[:k], index), root_of_hashes(hashes[k:])]
    return [*_path(hashes[k:], index - k), root_of_hashes(hashes[:k])]


def _subproof(hashes: Sequence[bytes], old_size: int, *, whole: bool) -> list[bytes]:
    if old_size == len(hashes):
        return [] if whole else [root_of_hashes(hashes)]
    k = _split(len(hashes))
    if old_size <= k:
        return [*_subproof(hashes[:k], old_size, whole=whole), root_of_hashes(hashes[k:])]
    return [*_subproof(hashes[k:], old_size - k, whole=False), root_of_hashes(hashes[:k])]
