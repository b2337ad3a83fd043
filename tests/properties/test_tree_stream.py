"""Whatever the bytes, the parser answers with a tree or with TreeRejected; and writing then parsing changes nothing."""

from __future__ import annotations

import contextlib

from hypothesis import given, settings
from hypothesis import strategies as st

from controller.domain.limits import ArtifactLimits
from controller.domain.paths import PathSet
from controller.domain.tree import EXECUTABLE, REGULAR, TreeFile
from controller.domain.tree_stream import HarvestedTree, parse_tree_stream, write_tree_stream
from controller.errors import TreeRejected

LIMITS = ArtifactLimits(tree_bytes_max=1 << 16, tree_entries_max=64, file_bytes_max=1 << 12)

components = st.text(
    alphabet=st.characters(exclude_categories=["Cc", "Cs"], exclude_characters="/\\"), min_size=1, max_size=6
)
paths = st.lists(components, min_size=1, max_size=4).map("/".join)
files = st.builds(TreeFile, mode=st.sampled_from([REGULAR, EXECUTABLE]), data=st.binary(max_size=64))


def safe(candidates: dict[str, TreeFile]) -> dict[str, TreeFile]:
    """The files whose paths can stand together, in the order the parser meets them."""
    seen = PathSet()
    ordered = sorted(candidates.items(), key=lambda item: item[0].encode())
    return {path: file for path, file in ordered if seen.add(path) is None}


@given(st.dictionaries(paths, files, max_size=12).map(safe), st.booleans())
def test_what_is_written_is_read(tree: dict[str, TreeFile], truncated: bool) -> None:
    data = write_tree_stream(tree, truncated=truncated)
    assert parse_tree_stream(data, LIMITS) == HarvestedTree(tree=tree, truncated=truncated)


@given(st.binary(max_size=300))
def test_any_bytes_give_a_tree_or_one_typed_error(data: bytes) -> None:
    with contextlib.suppress(TreeRejected):
        parse_tree_stream(b'{"schema":"fairtrial.tree/1"}\n' + data, LIMITS)


@settings(max_examples=300)
@given(st.dictionaries(paths, files, min_size=1, max_size=4).map(safe).filter(bool), st.data())
def test_one_changed_byte_never_gives_the_same_tree_by_another_spelling(
    tree: dict[str, TreeFile], data: st.DataObject
) -> None:
    good = write_tree_stream(tree)
    place = data.draw(st.integers(0, len(good) - 1))
    byte = data.draw(st.integers(0, 255).filter(lambda value: value != good[place]))
    changed = good[:place] + bytes([byte]) + good[place + 1 :]
    try:
        parsed = parse_tree_stream(changed, LIMITS)
    except TreeRejected:
        return
    # Only a path, a mode or JSON's own freedom of spelling can change without a digest noticing; contents never do.
    assert sorted(file.data for file in parsed.tree.values()) == sorted(file.data for file in tree.values())
