"""The figures of `results.json` as Markdown."""

from collections.abc import Sequence
from typing import Any

from benchmarks.operations import OPERATIONS
from benchmarks.packages import TITLES

COLUMNS = {
    "cold": "cold start",
    "reconnect": "get, new connection",
    **{each.name: each.title for each in OPERATIONS},
}
_SIZES = {
    "zipped_mb": "zipped MB",
    "cold_log_lines": "lines that a cold start logs",
}
_TEXT = """\
# Results of the benchmark

On {date}: {machine};
CPython {python}, {openssl}, {valgrind}.
The machine was busy (load {load}), which changes no count. What is measured, and how:
[README.md](README.md). All figures: [results.json](results.json).

## Million instructions / milliseconds of processor time

{counts}
## This service divided by each: instructions / processor time

{ratios}
## Size

{sizes}"""


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Write a table whose columns but the first are numbers."""
    ruler = ["---"] + ["---:"] * (len(head) - 1)
    return "".join(f"| {' | '.join(cells)} |\n" for cells in (head, ruler, *rows))


def markdown(figures: dict[str, Any]) -> str:
    """Write `RESULTS.md`."""
    counts, ratios, sizes = [], [], []
    ours = figures["rows"][0]
    for row in figures["rows"]:
        name = TITLES[row["variant"]]
        cells, quotients = [name], [name]
        for column in COLUMNS:
            count, ms = row["instructions"][column], row["cpu_ms"][column]
            cells.append(f"{count / 1e6:,.1f} / {ms:,.1f}")
            fewer = ours["instructions"][column] / count
            quotients.append(f"{fewer:.2f} / {ours['cpu_ms'][column] / ms:.2f}")
        counts.append(cells)
        ratios.append(quotients)
        sizes.append([name, *(str(row[figure]) for figure in _SIZES)])
    head = ["", *COLUMNS.values()]
    return _TEXT.format(
        **figures,
        counts=table(head, counts),
        ratios=table(head, ratios[1:]),
        sizes=table(["", *_SIZES.values()], sizes),
    )
