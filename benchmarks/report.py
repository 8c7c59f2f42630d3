"""The figures of `results.json` as Markdown tables and pictures: one list of columns makes them all."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from xml.sax.saxutils import escape

from benchmarks.operations import OPERATIONS
from benchmarks.packages import VARIANTS

Row = dict[str, Any]


class Column(NamedTuple):
    """A figure of every row: where it is, its divisor and decimals; whether its ratio to the bare handler follows."""

    title: str
    path: tuple[str, ...]
    unit: float = 1
    decimals: int = 0
    ratio: bool = False

    def of(self, row: Row) -> float:
        """Find the figure in a row; 0 if it was not measured."""
        value: Any = row
        for key in self.path:
            value = value[key]
        return (value or 0) / self.unit

    def cell(self, row: Row, bare: Row) -> str:
        """Write the figure, in brackets its ratio to the bare handler."""
        if not self.of(row):
            return "-"
        return f"{self.of(row):,.{self.decimals}f}" + f" ({self.of(row) / self.of(bare):.2f})" * self.ratio


def _by_operation(key: str, unit: float = 1, decimals: int = 0, *, ratio: bool = True) -> list[Column]:
    return [Column(each.title, (key, each.name), unit, decimals, ratio) for each in OPERATIONS]


_COLD = Column("cold start, M instructions", ("cold_instructions",), 1e6, ratio=True)
_WARM = _by_operation("warm_instructions", 1e3)
_PACKAGE = [
    _COLD,
    Column("get, new connection, M instructions", ("reconnect_instructions",), 1e6, 1, ratio=True),
    Column("cold, ms", ("cold_ms",)),
    Column("peak MB", ("peak_mb",)),
    Column("zipped MB", ("zipped_mb",), decimals=1),
    Column("unpacked MB", ("unzipped_mb",), decimals=1),
]
_TABLES = {
    "Warm invocation, thousand instructions": _WARM,
    "Warm invocation, microseconds (orientation)": _by_operation("warm_us"),
    "Dollars per million requests": _by_operation("usd_per_million", decimals=2),
    "Bytes that a request logs": _by_operation("log_bytes", ratio=False),
}
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


def markdown(figures: Row) -> str:
    """Write `RESULTS.md`."""
    rows = [row for row in figures["rows"] if row["packaging"] == "precompiled"]
    bare = next(row for row in rows if row["variant"] == "bare")

    def section(columns: list[Column], rows: list[Row]) -> str:
        cells = [
            [VARIANTS[row["variant"]][0], row["packaging"], *(each.cell(row, bare) for each in columns)] for row in rows
        ]
        return table(["", "packaging", *(each.title for each in columns)], cells)

    sections = [_HEAD.format(**figures), section(_PACKAGE, figures["rows"])]
    for title, columns in _TABLES.items():
        sections += [f"## {title}", section(columns, rows)]
    titles = {operation.name: operation.title for operation in OPERATIONS}
    keys = ("animals", "requests", "read_units", "write_units")
    known = [row for row in figures["dynamodb"] if row["key"] == "key_known"]
    costs = [[titles[row["operation"]], *(f"{row[key]:,g}" for key in keys)] for row in known]
    sections += [_DYNAMODB, table(["operation", "animals", "requests", "read units", "write units"], costs)]
    return "\n\n".join(sections) + "\n"


def write(figures: Row, folder: Path) -> None:
    """Write `RESULTS.md`, `cold.svg` and `warm.svg`."""
    (folder / "RESULTS.md").write_text(markdown(figures))
    rows = {row["variant"]: row for row in figures["rows"] if row["packaging"] == "precompiled"}
    (folder / "cold.svg").write_text(_picture([_COLD], rows, 600))
    (folder / "warm.svg").write_text(_picture(_WARM, rows, 250))


def table(head: list[str], rows: Iterable[list[str]]) -> str:
    """Write a table in Markdown, with numbers in all columns but the first."""
    rule = ["---", *("---:" for _ in head[1:])]
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, rule, *rows))


def _picture(columns: Sequence[Column], rows: dict[str, Row], width: int) -> str:
    """Draw a bar for each variant, a panel for each column, with the ratio to the bare handler behind each bar."""
    left, line = 240, 26
    # Mid tones, which keep a contrast of at least 3:1 (WCAG 2.2, 1.4.11) on white and on near-black.
    colors = {"ours": "#e0701a", "empty": "#8a929b", "bare": "#8a929b"}
    size = f"{left + width * len(columns)} {line * (len(rows) + 1)}"
    style = 'font-family="sans-serif" font-size="13" fill="#737b84"'
    marks = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}" {style}>']
    for y, (variant, row) in enumerate(rows.items(), 1):
        label = escape(VARIANTS[variant][0].replace("*", "").replace("`", ""))
        marks.append(f'<text x="{left - 8}" y="{y * line + 14}" text-anchor="end">{label}</text>')
        for place, column in enumerate(columns):
            x, bar = left + place * width, (width - 70) * column.of(row) / max(map(column.of, rows.values()))
            rectangle = f'x="{x}" y="{y * line}" width="{bar:.1f}" height="18"'
            marks.append(f'<rect {rectangle} fill="{colors.get(variant, "#4a7fb5")}"/>')
            ratio = column.of(row) / column.of(rows["bare"])
            marks.append(f'<text x="{x + bar + 6:.1f}" y="{y * line + 14}">{ratio:.2f}</text>')
    for place, column in enumerate(columns):
        marks.append(f'<text x="{left + place * width}" y="16" font-weight="bold">{escape(column.title)}</text>')
    return "\n".join([*marks, "</svg>", ""])
