"""The figures of `results.json` as Markdown."""

from typing import Any, NamedTuple

from benchmarks.operations import OPERATIONS
from benchmarks.packages import BARE, TITLES
from benchmarks.prices import GATEWAY, HTTP_API


class Figure(NamedTuple):
    """A figure of `results.json`, and how it is written."""

    title: str
    key: str
    unit: float = 1  # it is divided by this
    decimals: int = 0


_COLD = (
    Figure("cold start, M instructions", "cold_instructions", 1e6),
    Figure("get, new connection, M instructions", "reconnect_instructions", 1e6, 1),
    Figure("cold, ms (orientation)", "cold_ms"),
    Figure("peak MB", "peak_mb"),
    Figure("zipped MB", "zipped_mb", 1, 1),
    Figure("lines logged by a cold start", "cold_log_lines"),
)
_WARM = (
    Figure("Warm invocation, thousand instructions", "warm_instructions", 1e3),
    Figure("Warm invocation, microseconds (orientation)", "warm_us"),
    Figure("Dollars per million requests", "usd_per_million", 1, 2),
    Figure("Bytes that a request logs", "log_bytes"),
)
_HEAD = """\
# Results of the benchmark

Written by `make bench` on {date}: {machine};
CPython {versions[python]}, {openssl}, boto3 {versions[boto3]}, {versions[valgrind]}.
What is measured, and how: [README.md](README.md). All figures: [results.json](results.json).
In brackets the ratio to the bare handler that packages its SDK. The bare handlers neither
authenticate nor log. Prices: {prices[region]}, {prices[date]}; ${gateway:.2f} of each is the
gateway's share, a REST API; that of an HTTP API would be ${http_api:.2f}.

## Cold start, and a get after DynamoDB has closed the connection
"""


def markdown(figures: dict[str, Any]) -> str:
    """Write `RESULTS.md`."""
    rows = {row["variant"]: row for row in figures["rows"]}
    lines = [_HEAD.format(**figures, gateway=GATEWAY, http_api=HTTP_API)]
    lines += _table(rows, [(figure.title, figure, "") for figure in _COLD])
    for figure in _WARM:
        lines += ["", f"## {figure.title}", ""]
        lines += _table(rows, [(each.title, figure, each.name) for each in OPERATIONS])
    return "\n".join([*lines, ""])


def _table(rows: dict[str, Any], columns: list[tuple[str, Figure, str]]) -> list[str]:
    """Write figures, of an operation if it is named, with their ratios to the bare handler's."""
    table = [["", *(title for title, *_ in columns)], ["---"] + ["---:"] * len(columns)]
    for variant, name in TITLES.items():
        cells = [name]
        for _, figure, operation in columns:
            own, bare = rows[variant][figure.key], rows[BARE][figure.key]
            if operation:
                own, bare = own[operation], bare[operation]
            text = f"{own / figure.unit:,.{figure.decimals}f}"
            cells.append(f"{text} ({own / bare:.2f})" if bare else text)
        table.append(cells)
    return [f"| {' | '.join(cells)} |" for cells in table]
