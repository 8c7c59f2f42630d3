"""The figures of `results.json` as Markdown."""

from collections.abc import Mapping
from typing import Any

from benchmarks.operations import OPERATIONS
from benchmarks.packages import BARE, BARE_ON_RUNTIME, TITLES
from benchmarks.prices import GATEWAY, HTTP_API

# Of each figure: its title, its key in a row, the unit that it is divided by, and its decimals.
_COLUMNS = (
    ("cold start, M instructions", "cold_instructions", 1e6, 0),
    ("get, new connection, M instructions", "reconnect_instructions", 1e6, 1),
    ("cold, ms", "cold_ms", 1, 0),
    ("peak MB", "peak_mb", 1, 0),
    ("zipped MB", "zipped_mb", 1, 1),
    ("lines logged by a cold start", "cold_log_lines", 1, 0),
)
_TABLES = (
    ("Warm invocation, thousand instructions", "warm_instructions", 1e3, 0),
    ("Warm invocation, microseconds (orientation)", "warm_us", 1, 0),
    ("Dollars per million requests", "usd_per_million", 1, 2),
    ("Bytes that a request logs", "log_bytes", 1, 0),
)
Column = tuple[str, Mapping[str, float], float, int]
"""A title, the figures by variant, the unit that they are divided by, and decimals."""

_HEAD = """\
# Results of the benchmark

Written by `make bench` on {date}: {machine};
CPython {versions[python]}, {openssl}, boto3 {versions[boto3]}, {versions[valgrind]}.
What is measured, and how: [README.md](README.md). All figures: [results.json](results.json).
In brackets two ratios: to the bare handler that packages its SDK, and to the bare handler on the
runtime's own boto3. Neither authenticates or logs. Prices: {prices[region]}, {prices[date]}.

## Cold start, and a get after DynamoDB has closed the connection"""


def markdown(figures: dict[str, Any]) -> str:
    """Write `RESULTS.md`."""
    rows = {row["variant"]: row for row in figures["rows"]}
    columns = []
    for title, key, unit, decimals in _COLUMNS:
        column = {variant: row[key] for variant, row in rows.items() if key in row}
        columns.append((title, column, unit, decimals))
    sections = [_HEAD.format(**figures), _table(columns)]
    for heading, key, unit, decimals in _TABLES:
        columns = []
        for operation in OPERATIONS:
            column = {}
            for variant, row in rows.items():
                if operation.name in row.get(key, {}):
                    column[variant] = row[key][operation.name]
            columns.append((operation.title, column, unit, decimals))
        sections += [f"## {heading}", _table(columns)]
        if key == "usd_per_million":
            sections.append(
                f"Of each, ${GATEWAY:.2f} is the gateway's share, a REST API; "
                f"that of an HTTP API would be ${HTTP_API:.2f}."
            )
    return "\n\n".join(sections) + "\n"


def _cell(
    figures: Mapping[str, float], variant: str, unit: float, decimals: int
) -> str:
    """Write the figure of a variant, with its ratios to both bare handlers."""
    if variant not in figures:
        return "not measured"
    own = figures[variant]
    ratios = []
    for bare in (BARE, BARE_ON_RUNTIME):
        ratios.append(f"{own / figures[bare]:.2f}" if figures.get(bare) else "-")  # noqa: PERF401
    return f"{own / unit:,.{decimals}f} ({', '.join(ratios)})"


def _table(columns: list[Column]) -> str:
    """Write a table with a row for each variant."""
    head = ["", *(title for title, *_ in columns)]
    lines = [head, ["---", *("---:" for _ in columns)]]
    for variant, name in TITLES.items():
        cells = [_cell(column, variant, *scale) for _, column, *scale in columns]
        lines.append([name, *cells])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
