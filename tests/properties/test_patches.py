"""For any two trees, applying the patch that was made gives the second tree, byte for byte."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from controller.adapters.git_patch import GitPatches
from controller.domain.paths import PathSet
from controller.domain.tree import EXECUTABLE, REGULAR, TreeFile, changed_paths

names = st.text(alphabet="aB.é-\"' _名", min_size=1, max_size=3)
paths = st.lists(names, min_size=1, max_size=3).map("/".join)
contents = st.one_of(st.binary(max_size=40), st.text(alphabet="ab\r\n\t $Id:", max_size=40).map(str.encode))
files = st.builds(TreeFile, mode=st.sampled_from([REGULAR, EXECUTABLE]), data=contents)


def safe(candidates: dict[str, TreeFile]) -> dict[str, TreeFile]:
    """The files whose paths can stand together."""
    seen = PathSet()
    return {path: file for path, file in candidates.items() if seen.add(path) is None}


trees = st.dictionaries(paths, files, max_size=5).map(safe)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(trees, trees)
def test_a_patch_leads_from_one_tree_to_the_other(base: dict[str, TreeFile], after: dict[str, TreeFile]) -> None:
    patch = GitPatches().make_patch(base, after)
    assert GitPatches().apply_check(base, patch.data) == after
    assert patch.changed == changed_paths(base, after)
