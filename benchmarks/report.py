"""The figures of `results.json` as Markdown: tables, and charts in the form that GitHub draws."""

import json
from collections.abc import Iterable
from typing import Any

from benchmarks.operations import OPERATIONS
from benchmarks.packages import VARIANTS

# Of each figure: its title, its key in a row, the unit that it is divided by, and its decimals.
_COLUMNS = (
    ("cold start, M instructions", "cold_instructions", 1e6, 0),
    ("get, new connection, M instructions", "reconnect_instructions", 1e6, 1),
    ("cold, ms", "cold_ms", 1, 0),
    ("peak MB", "peak_mb", 1, 0),
    ("zipped MB", "zipped_mb", 1, 1),
    ("unpacked MB", "unzipped_mb", 1, 1),
)
_TABLES = (
    ("Warm invocation, thousand instructions", "warm_instructions", 1e3, 0),
    ("Warm invocation, microseconds (orientation)", "warm_us", 1, 0),
    ("Dollars per million requests", "usd_per_million", 1, 2),
    ("Bytes that a request logs", "log_bytes", 1, 0),
)
_HEAD = """\
# Results of the benchmark

Written by `make bench` on {date}: {machine[processor]}, {machine[cores]} cores, {machine[memory_gb]} GB,
{machine[system]}; CPython {versions[python]}, boto3 {versions[boto3]}, {versions[valgrind]}.
What is measured, and how: [README.md](README.md). All figures: [results.json](results.json). In brackets: the ratio to
the bare handler, precompiled, which authenticates and logs nothing. Prices: {prices[region]}, {prices[date]}.

## Cold start, and a get after DynamoDB has closed the connection"""
_DYNAMODB = """\
## What one operation asks of DynamoDB

This service, API key known. A key that the execution environment has not looked up within the last minute costs one
request and one read unit more."""
_CHART = (
    '```mermaid\nxychart-beta horizontal\n  title "{}, M instructions"\n  x-axis {}\n  bar {}\n```'
)


def markdown(figures: dict[str, Any]) -> str:
    """Write `RESULTS.md`."""
    rows = [row for row in figures["rows"] if row["packaging"] == "precompiled"]
    bare = next(row for row in rows if row["variant"] == "bare")
    names = {variant: name for variant, (name, _) in VARIANTS.items()}
    titles = {operation.name: operation.title for operation in OPERATIONS}
    cells = [
        [
            names[row["variant"]],
            row["packaging"],
            *(cell for column in _COLUMNS for cell in _cells(row, bare, *column)),
        ]
        for row in figures["rows"]
    ]
    sections = [
        _HEAD.format(**figures),
        table(["", "packaging", *(title for title, *_ in _COLUMNS)], cells),
    ]
    cold, warm = ([row[key] for row in rows] for key in ("cold_instructions", "warm_instructions"))
    for title, counts in (("Cold start", cold), ("List of 20", [each["list_20"] for each in warm])):
        bars = [round(count / 1e6, 1) for count in counts]
        sections.append(_CHART.format(title, json.dumps([row["variant"] for row in rows]), bars))
    for each in _TABLES:
        cells = [[names[row["variant"]], *_cells(row, bare, *each)] for row in rows]
        sections += [f"## {each[0]}", table(["", *titles.values()], cells)]
    keys = ("animals", "requests", "read_units", "write_units")
    known = [row for row in figures["dynamodb"] if row["key"] == "key_known"]
    costs = [[titles[row["operation"]], *(f"{row[key]:,g}" for key in keys)] for row in known]
    sections += [
        _DYNAMODB,
        table(["operation", "animals", "requests", "read units", "write units"], costs),
    ]
    return "\n\n".join(sections) + "\n"


def _cells(
    row: dict[str, Any], bare: dict[str, Any], _title: str, key: str, unit: float, decimals: int
) -> list[str]:
    """Write a figure, or one for each operation, in brackets the ratio to the bare handler; `-`: not measured."""
    figures, wholes = (
        [*each.values()] if isinstance(each, dict) else [each] for each in (row[key], bare[key])
    )
    return [
        "-"
        if figure is None
        else f"{figure / unit:,.{decimals}f}" + (f" ({figure / whole:.2f})" if whole else "")
        for figure, whole in zip(figures, wholes, strict=True)
    ]


def table(head: list[str], rows: Iterable[list[str]]) -> str:
    """Write a table in Markdown, with numbers in all columns but the first."""
    rule = ["---", *("---:" for _ in head[1:])]
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, rule, *rows))
