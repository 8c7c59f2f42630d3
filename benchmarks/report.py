"""The figures as Markdown tables."""

from pathlib import Path
from typing import Any

TITLES = {
    "ours": "**this service**",
    "empty": "empty handler",
    "bare": "bare: one handler, `boto3.client`",
    "powertools": "Powertools resolver",
    "fastapi": "FastAPI + Mangum",
    "chalice": "Chalice",
    "flask": "Flask + apig-wsgi",
}
OPERATIONS = {
    "list_20": "list of 20",
    "list_100": "list of 100",
    "list_filtered": "filtered list of 20",
    "create": "create",
    "get": "get",
}

Row = dict[str, Any]

_WRITTEN = """\
Written by `make bench` on {date}: {machine}; {versions}.
What is measured, and how: [README.md](README.md). All figures: [results.json](results.json)."""

_COLD = """\
From the start of Lambda's runtime client to the answer: a list of 20, the API key looked up.
The ratio is to the bare handler, precompiled. In brackets: the quartiles."""

_WARM_INSTRUCTIONS = """\
Thousands per invocation. First ratio: to the bare handler. Second: the same without what the empty handler takes, which
is the runtime client. Packaging makes no difference once the code is loaded; these rows are the precompiled ones."""

_WARM_TIME = """\
Microseconds from handing the event over to taking the answer, and the same two ratios. The empty handler's time is the
runtime client's and this benchmark's own loopback. A request of DynamoDB adds the kernel's work and the answer of the
benchmark's server, the same for all, which instructions leave out."""

_DYNAMODB = """\
This service, API key known. A key that the execution environment has not looked up within the last minute costs one
request and one read unit more."""


def rows_of(figures: dict[str, Any], packaging: str) -> dict[str, Row]:
    """Pick the rows of one packaging, by variant."""
    return {row["variant"]: row for row in figures["rows"] if row["packaging"] == packaging}


def write_table(figures: dict[str, Any], path: Path) -> None:
    """Write the tables of a run.

    Args:
        figures: What `results.json` holds.
        path: The Markdown file.
    """
    machine, versions = figures["machine"], figures["versions"]
    precompiled = rows_of(figures, "precompiled")
    cold_head = ["", "packaging", "million instructions", "ratio", "ms", "peak MB", "zipped MB", "unpacked MB"]
    sections = [
        "# Results of the benchmark",
        _WRITTEN.format(
            date=figures["date"],
            machine="{processor}, {cores} cores, {memory_gb} GB, {system}".format(**machine),
            versions="CPython {python}, boto3 {boto3}, {valgrind}".format(**versions),
        ),
        "## Cold start",
        _COLD,
        _table(cold_head, [_cold(row, precompiled["bare"]) for row in figures["rows"]]),
        "## Warm invocation, instructions",
        _WARM_INSTRUCTIONS,
        _warm_table(precompiled, "warm_instructions", 1e3),
        "## Warm invocation, time",
        _WARM_TIME,
        _warm_table(precompiled, "warm_us", 1),
        "## What one operation asks of DynamoDB",
        _DYNAMODB,
        _table(["operation", "animals", "requests", "read units", "write units"], _costs(figures["dynamodb"])),
    ]
    path.write_text("\n\n".join(sections) + "\n")


def _table(head: list[str], rows: list[list[str]]) -> str:
    rule = ["---", *("---:" for _ in head[1:])]
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, rule, *rows))


def _cold(row: Row, bare: Row) -> list[str]:
    first, third = row["cold_ms_quartiles"]
    return [
        TITLES[row["variant"]],
        row["packaging"],
        _number(row["cold_instructions"], 1e6),
        _ratio(row["cold_instructions"], bare["cold_instructions"]),
        f"{row['cold_ms']:.0f} ({first:.0f} to {third:.0f})",
        f"{row['peak_mb']:.0f}",
        f"{row['zipped_mb']:.1f}",
        f"{row['unzipped_mb']:.1f}",
    ]


def _warm_table(rows: dict[str, Row], column: str, unit: float) -> str:
    return _table(
        ["", *OPERATIONS.values()],
        [
            [TITLES[name], *(_warm_cell(rows, row, column, operation, unit) for operation in OPERATIONS)]
            for name, row in rows.items()
        ],
    )


def _warm_cell(rows: dict[str, Row], row: Row, column: str, operation: str, unit: float) -> str:
    value, bare, empty = (each[column][operation] for each in (row, rows["bare"], rows["empty"]))
    if value is None:
        return "-"
    net = "" if row is rows["empty"] else f", {_ratio(value - empty, bare - empty)}"
    return f"{_number(value, unit)} ({_ratio(value, bare)}{net})"


def _costs(costs: list[Row]) -> list[list[str]]:
    return [
        [OPERATIONS[row["operation"]], f"{row['animals']:,}", *(f"{row[name]:g}" for name in _COST_COLUMNS)]
        for row in costs
        if row["key"] == "key_known"
    ]


_COST_COLUMNS = ("requests", "read_units", "write_units")


def _number(value: float | None, unit: float) -> str:
    return "-" if value is None else f"{value / unit:,.0f}"


def _ratio(value: float | None, bare: float | None) -> str:
    return "-" if value is None or not bare else f"{value / bare:.2f}"
