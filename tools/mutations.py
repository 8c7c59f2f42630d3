"""Print the mutants of a file as JSON lines; runs in `.tools/mutmut`, whose operators it uses.

Each is the file's text with one small change. mutmut's own runner changes functions without a
decorator alone, and none at module level; here every node that an operator takes is changed.
"""

# mypy: ignore-errors
# (libcst and mutmut are in an environment of their own.)
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import libcst
import yaml
from libcst.metadata import MetadataWrapper, PositionProvider
from mutmut.mutation.mutators import mutation_operators

# Read by people alone.
_PROSE = {"AlarmDescription", "AssertDescription", "Description", "Sid", "description"}


class _Visitor(libcst.CSTVisitor):
    METADATA_DEPENDENCIES = (PositionProvider,)

    def __init__(self) -> None:
        self.found: list[tuple[int, libcst.CSTNode, libcst.CSTNode]] = []

    def on_visit(self, node: libcst.CSTNode) -> bool:
        line = self.get_metadata(PositionProvider, node).start.line
        for kind, operator in mutation_operators:
            if isinstance(node, kind):
                self.found += [(line, node, changed) for changed in operator(node)]
        return not isinstance(
            node, libcst.Annotation | libcst.Import | libcst.ImportFrom
        )


def python(text: str) -> Iterator[tuple[int, str]]:
    """Change each operator, literal, argument and assignment of a module."""
    wrapper, visitor = MetadataWrapper(libcst.parse_module(text)), _Visitor()
    wrapper.visit(visitor)
    for line, node, changed in visitor.found:
        yield line, wrapper.module.deep_replace(node, changed).code


def scalars(text: str) -> Iterator[tuple[int, str]]:
    """Change each value of a YAML file that is not prose."""
    nodes = [yaml.compose(text, yaml.SafeLoader)]
    while nodes:
        node = nodes.pop()
        if isinstance(node, yaml.MappingNode):
            nodes += [value for key, value in node.value if key.value not in _PROSE]
        elif isinstance(node, yaml.SequenceNode):
            nodes += node.value
        else:
            begin, end = node.start_mark.index, node.end_mark.index
            changed = other(text[begin:end])
            yield node.start_mark.line + 1, text[:begin] + changed + text[end:]


def settings(text: str) -> Iterator[tuple[int, str]]:
    """Change each NAME=VALUE of samconfig.toml."""
    for value in re.finditer(r'(?<==)[^"= ]+(?=")', text):
        line = text.count("\n", 0, value.start()) + 1
        yield line, text[: value.start()] + other(value[0]) + text[value.end() :]


def other(value: str) -> str:
    """Return another value: ten times a number, the opposite, or a text with one more letter."""
    opposite = {"true": "false", "false": "true", "Allow": "Deny", "Deny": "Allow"}
    tag, quote, plain = re.fullmatch(
        r'(![\w!]+ )?(["\']?)(.*?)\2\n?', value, re.DOTALL
    ).groups("")
    number = str(int(plain) * 10 or 1) if plain.isdecimal() else f"{plain}x"
    plain = opposite.get(plain, number)
    return f"{tag}{quote}{plain}{quote}"


if __name__ == "__main__":
    file = Path(sys.argv[1])
    kinds = {".py": python, ".yaml": scalars, ".yml": scalars, ".toml": settings}
    for line, text in kinds[file.suffix](file.read_text("utf-8")):
        print(json.dumps([line, text]))
