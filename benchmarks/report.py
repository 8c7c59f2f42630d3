"""The figures of `results.json` as Markdown tables and pictures: one list of columns makes them all."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from benchmarks.operations import OPERATIONS
from benchmarks.packages import VARIANTS

Row = dict[str, Any]


@dataclass(frozen=True)
class Column:
    """A figure of every row: where it is, what it is divided by, its decimals, and which ratios follow it."""

    title: str
    path: tuple[str, ...]
    unit: float = 1
    decimals: int = 0
    ratio: bool = False
    net: bool = False

    def of(self, row: Row) -> float | None:
        """Find the figure in a row; None if it was not measured."""
        value: Any = row
        for key in self.path:
            value = value[key]
        return None if value is None else value / self.unit

    def cell(self, row: Row, bare: Row, empty: Row) -> str:
        """Write the figure, in brackets its ratio to the bare handler, and that without what the empty one takes."""
        value, whole, floor = self.of(row), self.of(bare), self.of(empty)
        if value is None:
            return "-"
        text = f"{value:,.{self.decimals}f}"
        if not self.ratio or whole is None or floor is None:
            return text
        ratios = [value / whole] + [(value - floor) / (whole - floor)] * (self.net and row is not empty)
        return f"{text} ({', '.join(f'{ratio:.2f}' for ratio in ratios)})"


@dataclass(frozen=True)
class Table:
    """A section of the report; `plain` tells whether the packages without bytecode have rows too."""

    title: str
    text: str
    columns: Sequence[Column]
    plain: bool = False


def _by_operation(
    key: str, unit: float = 1, decimals: int = 0, *, ratio: bool = True, net: bool = True
) -> list[Column]:
    return [Column(each.title, (key, each.name), unit, decimals, ratio, net) for each in OPERATIONS]


_COLD = Column("cold start, M instructions", ("cold_instructions",), 1e6, ratio=True)
_WARM = _by_operation("warm_instructions", 1e3)

TABLES = (
    Table(
        "Cold start, and a get on a new connection",
        "Cold: from the start of Lambda's runtime client to the answer, a list of 20 with the API key looked up. New\n"
        "connection: a get after DynamoDB has closed the connection. The ratio is to the bare handler, precompiled.\n"
        "Times are orientation: they differ from day to day by more than variants differ.",
        (
            _COLD,
            Column("get, new connection, M instructions", ("reconnect_instructions",), 1e6, 1, ratio=True),
            Column("cold, ms", ("cold_ms",)),
            Column("peak MB", ("peak_mb",)),
            Column("zipped MB", ("zipped_mb",), decimals=1),
            Column("unpacked MB", ("unzipped_mb",), decimals=1),
        ),
        plain=True,
    ),
    Table(
        "Warm invocation, instructions",
        "Thousands per invocation. First ratio: to the bare handler. Second: the same without what the empty handler\n"
        "takes, which is the runtime client. Packaging makes no difference once the code is loaded: from here on, all\n"
        "rows are the precompiled ones.",
        _WARM,
    ),
    Table(
        "Warm invocation, time",
        "Microseconds from handing the event over to taking the answer, and the same two ratios: orientation, as\n"
        "above. What the benchmark's own loopback and the kernel take is in here, the same for all.",
        _by_operation("warm_us"),
    ),
    Table(
        "Dollars per million requests",
        "API Gateway, Lambda, DynamoDB, logs, traces and transfer at the list prices of {prices[region]},\n"
        "{prices[date]} (prices.py). In brackets: the ratio to the bare handler, which authenticates and logs nothing.",
        _by_operation("usd_per_million", decimals=2, net=False),
    ),
    Table(
        "Bytes that a request logs",
        "What the function writes, measured; what Lambda and API Gateway add is in the prices above.",
        _by_operation("log_bytes", ratio=False),
    ),
)

_HEAD = """\
# Results of the benchmark

Written by `make bench` on {date}: {machine[processor]}, {machine[cores]} cores, {machine[memory_gb]} GB,
{machine[system]}; CPython {versions[python]}, boto3 {versions[boto3]}, valgrind {versions[valgrind]}.
What is measured, and how: [README.md](README.md). All figures: [results.json](results.json)."""

_DYNAMODB = """\
## What one operation asks of DynamoDB

This service, API key known. A key that the execution environment has not looked up within the last minute costs one
request and one read unit more."""


def write(figures: Row, folder: Path) -> None:
    """Write `RESULTS.md`, `cold.svg` and `warm.svg`."""
    rows = [row for row in figures["rows"] if row["packaging"] == "precompiled"]
    named = {row["variant"]: row for row in rows}
    sections = [_HEAD.format(**figures)]
    for table in TABLES:
        head = ["", *(["packaging"] if table.plain else []), *(column.title for column in table.columns)]
        body = [
            [VARIANTS[row["variant"]][0]]
            + ([row["packaging"]] if table.plain else [])
            + [column.cell(row, named["bare"], named["empty"]) for column in table.columns]
            for row in (figures["rows"] if table.plain else rows)
        ]
        sections += [f"## {table.title}", table.text.format(**figures), _markdown(head, body)]
    titles = {operation.name: operation.title for operation in OPERATIONS}
    costs = [
        [
            titles[row["operation"]],
            *(f"{row[name]:,g}" for name in ("animals", "requests", "read_units", "write_units")),
        ]
        for row in figures["dynamodb"]
        if row["key"] == "key_known"
    ]
    head = ["operation", "animals", "requests", "read units", "write units"]
    sections += [_DYNAMODB, _markdown(head, costs)]
    (folder / "RESULTS.md").write_text("\n\n".join(sections) + "\n")
    (folder / "cold.svg").write_text(_picture([_COLD], named, 600))
    (folder / "warm.svg").write_text(_picture(_WARM, named, 250))


def write_memory(table: list[list[str]], text: str, file: Path) -> None:
    """Write the comparison of memory sizes."""
    written = f"Written by `make bench MEMORY=1` on {dt.datetime.now(dt.UTC).date()}."
    file.write_text(f"# Memory sizes\n\n{written}\n\n{text}\n{_markdown(table[0], table[1:])}\n")


def _markdown(head: list[str], rows: list[list[str]]) -> str:
    rule = ["---", *("---:" for _ in head[1:])]
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, rule, *rows))


def _picture(columns: Sequence[Column], rows: dict[str, Row], width: int) -> str:
    """Draw a bar for each variant, a panel for each column, with the ratio to the bare handler behind each bar.

    In mid tones, which keep a contrast of at least 3:1 (WCAG 2.2, 1.4.11) on white and on near-black.
    """
    text, left, line = "#737b84", 240, 26
    colors = {"ours": "#e0701a", "empty": "#8a929b", "bare": "#8a929b"}
    marks = []
    for panel, column in enumerate(columns):
        x = left + panel * width
        values = {name: column.of(row) or 0 for name, row in rows.items()}
        scale = (width - 70) / (max(values.values()) or 1)
        marks.append(f'<text x="{x}" y="16" font-weight="bold">{escape(column.title)}</text>')
        for place, (name, value) in enumerate(values.items(), 1):
            y, end = place * line, x + value * scale
            marks.append(
                f'<rect x="{x}" y="{y}" width="{value * scale:.1f}" height="18" fill="{colors.get(name, "#4a7fb5")}"/>'
                f'<text x="{end + 6:.1f}" y="{y + 14}">{value / (values["bare"] or 1):.2f}</text>'
            )
            if panel == 0:
                label = escape(VARIANTS[name][0].replace("*", "").replace("`", ""))
                marks.append(f'<text x="{left - 8}" y="{y + 14}" text-anchor="end">{label}</text>')
    size = f"{left + width * len(columns)} {line * (len(rows) + 1)}"
    font = f'font-family="sans-serif" font-size="13" fill="{text}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}" {font}>\n' + "\n".join([*marks, "</svg>", ""])
