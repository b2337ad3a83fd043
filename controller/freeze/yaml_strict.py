"""YAML without its traps: no aliases (a few lines can be gigabytes), no repeated keys, no implicit dates or octals."""

from __future__ import annotations

import re
from typing import Any, Final

import yaml

YAML_BYTES_MAX: Final = 256 * 2**10  # the largest plan we know of is 12 KB
DEPTH_MAX: Final = 16  # a plan nests 4 deep; the parser's time grows with the square of the depth


class StrictYamlError(Exception):
    """The text is not one plain YAML document. The message gives line and column."""


class _Loader(yaml.SafeLoader):
    """A safe loader that collects repeated keys instead of keeping the last one in silence."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.repeated: list[str] = []
        self.depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise StrictYamlError(f"line {self.line + 1}: aliases are not allowed")
        if self.depth >= DEPTH_MAX:
            raise StrictYamlError(f"line {self.line + 1}: nested deeper than {DEPTH_MAX}")
        self.depth += 1
        try:
            return super().compose_node(parent, index)
        finally:
            self.depth -= 1

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = key_node.value
            if key in seen:
                self.repeated.append(f"line {key_node.start_mark.line + 1}: key {key!r} appears twice")
            seen.add(key)
        return super().construct_mapping(node, deep=True)


_INTEGER: Final = "tag:yaml.org,2002:int"
_REFUSED: Final = frozenset({"tag:yaml.org,2002:timestamp", _INTEGER})
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag not in _REFUSED]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
# YAML 1.1 reads 010 as eight and 1:30 as ninety; whoever writes them means something else.
_Loader.add_implicit_resolver(_INTEGER, re.compile(r"[-+]?(?:0|[1-9][0-9]*)$"), list("-+0123456789"))


def load_yaml(data: bytes) -> tuple[Any, tuple[str, ...]]:
    """The value of one YAML document, and every repeated key with its line.

    Raises StrictYamlError for bad syntax, aliases, tags, several documents, bad UTF-8 or more than 256 KiB.
    """
    if len(data) > YAML_BYTES_MAX:
        raise StrictYamlError(f"larger than {YAML_BYTES_MAX} bytes")
    try:
        loader = _Loader(data.decode("utf-8"))
        try:
            return loader.get_single_data(), tuple(loader.repeated)
        finally:
            loader.dispose()
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError, ValueError, TypeError) as error:
        raise StrictYamlError(" ".join(str(error).split())) from error
