"""Takes the examples out of Markdown files, as they stand there."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

# An opening fence with its info string, what it encloses, and the closing fence:
# https://spec.commonmark.org/0.31.2/#fenced-code-blocks
_FENCE = re.compile(r"^```(?P<language>\w+)(?P<marks>[^\n]*)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Fence:
    """A fenced code block.

    Args:
        file: The name of the Markdown file.
        line: Of its opening fence.
        language: The first word after the fence.
        marks: The other words there.
        code: What it encloses.
    """

    file: str
    line: int
    language: str
    marks: frozenset[str]
    code: str


def fences(path: Path) -> Iterator[Fence]:
    """Find the fenced code blocks that have a language."""
    text = path.read_text("utf-8")
    for match in _FENCE.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        yield Fence(path.name, line, match["language"], frozenset(match["marks"].split()), match["code"])
