"""Write RESULTS.md and the charts from results.json, in the environment of locks/charts.txt.

Usage: publish.py FOLDER
"""

import json
import sys
from pathlib import Path

import pandas as pd
from matplotlib import rcParams

TEXT = """\
# Results of the benchmark

On {date}, at commit {commit}: {machine};
CPython {python}, {openssl}; load {load}, which changes no count. What is measured, and how:
[README.md](README.md). All figures: [results.json](results.json).

## Million instructions

{instructions}

This service's divided by each:

{fewer}

## Milliseconds of processor time

{cpu_ms}

This service's divided by each:

{faster}

## Bill

Dollars a month by requests a second:

{bill}
"""
# No background, and a grey that can be read on white and on black; the same bytes each time.
rcParams.update(
    dict.fromkeys(
        ["text.color", "xtick.color", "ytick.color", "axes.edgecolor"], "#767676"
    )
    | {"svg.fonttype": "none", "svg.hashsalt": "benchmark", "savefig.transparent": True}
)

folder = Path(sys.argv[1])
results = json.loads(Path(__file__).with_name("results.json").read_text())
counts, times = (
    pd.DataFrame(results["rows"]).loc[figure].apply(pd.Series)
    for figure in ("instructions", "cpu_ms")
)
bill = pd.DataFrame(results["bill"])
totals = bill.sum()

speed = times.div(times.loc["tuned bare"]).T
shares = (bill / totals).T.set_axis(
    [f"{rate}: ${usd:,.0f}" for rate, usd in totals.items()]
)
for name, chart in {
    "speed": speed.loc[["cold start", "list of 20", "create", "get"]].plot.barh(
        title="Processor time (tuned bare = 1)", width=0.8, figsize=(7, 9)
    ),
    "bill": shares.plot.barh(stacked=True, title="What the monthly bill is made of"),
}.items():
    chart.invert_yaxis()
    chart.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    for bars in chart.containers * (name == "speed"):
        chart.bar_label(
            bars, fmt="%.2f", label_type="center", color="white", fontsize=7
        )
    chart.figure.savefig(
        folder / f"{name}.svg", bbox_inches="tight", metadata={"Date": None}
    )

bill.loc["**one stage**"] = totals
bill.loc["**and an idle second one**"] = totals + totals["0/s"]
tables = {
    "instructions": counts / 1e6,
    "fewer": counts.rdiv(counts.loc["this service"]),
    "cpu_ms": times,
    "faster": times.rdiv(times.loc["this service"]),
    "bill": bill,
}
shown = {name: each.to_markdown(floatfmt=",.2f") for name, each in tables.items()}
(folder / "RESULTS.md").write_text(TEXT.format(**results | shown))
