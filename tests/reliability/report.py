"""What a part of the suite has tried, how often, and what came of it."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

_EXAMPLES = 5


@dataclass(slots=True)
class Row:
    """One line of the table.

    Args:
        part: The part of the suite.
        tried: What was done to the service.
        runs: How often.
        losses: Acknowledged animals that are not there, or not as they were acknowledged.
        doubles: Animals that are there twice, ids that were given twice.
        leaks: Access without a right to it, data of another, secrets in logs.
        other: Everything else that must not happen: wrong responses, late responses, half an operation.
        remark: What else was counted.
        examples: The first failures, for the person who has to look.
    """

    part: str
    tried: str
    runs: int = 0
    losses: int = 0
    doubles: int = 0
    leaks: int = 0
    other: int = 0
    remark: str = ""
    examples: list[str] = field(default_factory=list)

    @property
    def failures(self) -> int:
        """How many failures there were, of whatever kind."""
        return self.losses + self.doubles + self.leaks + self.other

    def fail(self, kind: str, example: str) -> None:
        """Count a failure as `losses`, `doubles`, `leaks` or `other`."""
        setattr(self, kind, getattr(self, kind) + 1)
        if len(self.examples) < _EXAMPLES:
            self.examples.append(example)

    def check(self, holds: object, example: str, kind: str = "other") -> None:
        """Count a failure unless the condition holds."""
        if not holds:
            self.fail(kind, example)


_HEAD = ("Part", "Tried", "Runs", "Losses", "Doubles", "Leaks", "Other", "Remark")


def markdown(rows: Iterable[Row]) -> str:
    """Write the table in Markdown."""
    lines = ["| " + " | ".join(_HEAD) + " |", "|---|---|--:|--:|--:|--:|--:|---|"]
    lines += [
        f"| {row.part} | {row.tried} | {row.runs:,} | {row.losses} | {row.doubles} | {row.leaks} | {row.other} "
        f"| {row.remark} |"
        for row in rows
    ]
    return "\n".join(lines)


def replace_generated(document: str, table: str) -> str:
    """Put the table between the marks of a document."""
    begin, end = "<!-- table: begin -->", "<!-- table: end -->"
    pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
    if not pattern.search(document):
        raise ValueError(f"the document has no {begin} ... {end}")
    return pattern.sub(lambda _: f"{begin}\n{table}\n{end}", document)
