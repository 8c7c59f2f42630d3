"""Print the mutants of a Python file as JSON lines; runs in `.tools/mutmut`.

mutmut's own runner leaves out what is at module level, and functions with a decorator.
"""

# mypy: ignore-errors
# (libcst and mutmut are in an environment of their own.)
import json
import sys
from pathlib import Path

import libcst
from libcst.metadata import MetadataWrapper, PositionProvider
from mutmut.mutation.mutators import mutation_operators


class Mutations(libcst.CSTVisitor):
    """Prints a line number, and the module's text with one change in that line, again and again."""

    METADATA_DEPENDENCIES = (PositionProvider,)

    def __init__(self, module: libcst.Module) -> None:
        self.module = module

    def on_visit(self, node: libcst.CSTNode) -> bool:
        """Apply each operator to a node; go on with what is in it, unless it is a type."""
        for kind, operator in mutation_operators:
            if isinstance(node, kind):
                for changed in operator(node):
                    line = self.get_metadata(PositionProvider, node).start.line
                    text = self.module.deep_replace(node, changed).code
                    print(json.dumps([line, text]))
        return not isinstance(node, libcst.Annotation)


wrapper = MetadataWrapper(libcst.parse_module(Path(sys.argv[1]).read_text("utf-8")))
wrapper.visit(Mutations(wrapper.module))
