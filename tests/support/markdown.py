"""Take the fenced code blocks out of a Markdown file (https://spec.commonmark.org)."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_FENCE = re.compile(
    r"^```(?P<language>\w+) *(?P<mark>\S*)\n(?P<code>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


class Fence(NamedTuple):
    """A code block, and the word after its language."""

    name: str
    language: str
    mark: str
    code: str


def fences(path: Path) -> Iterator[Fence]:
    """Find the blocks that have a language."""
    text = path.read_text("utf-8")
    for match in _FENCE.finditer(text):
        yield Fence(
            f"{path.name}:{text.count(chr(10), 0, match.start()) + 1}", *match.groups()
        )
