"""The figures as two pictures, each as SVG and PNG, that read on a light and on a dark page alike."""

from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from benchmarks.report import OPERATIONS, rows_of

_LABELS = {
    "ours": "this service",
    "empty": "empty handler",
    "bare": "bare boto3.client",
    "powertools": "Powertools resolver",
    "fastapi": "FastAPI + Mangum",
    "chalice": "Chalice",
    "flask": "Flask + apig-wsgi",
}
# Mid tones: each keeps a contrast of at least 3:1 (WCAG 2.2, 1.4.11) on white and on near-black.
_TEXT = "#737b84"
_OURS, _OTHERS, _FLOOR = "#e0701a", "#4a7fb5", "#8a929b"
_PLAIN_ALPHA = 0.45


def draw(figures: dict[str, Any], folder: Path) -> None:
    """Draw `cold` and `warm`.

    Args:
        figures: What `results.json` holds.
        folder: Where the pictures go.
    """
    style = {
        "font.size": 11,
        "text.color": _TEXT,
        "axes.labelcolor": _TEXT,
        "xtick.color": _TEXT,
        "ytick.color": _TEXT,
        "savefig.transparent": True,
        "svg.hashsalt": "benchmark",  # the same figures give the same file
    }
    with mpl.rc_context(style):
        _draw_cold(figures, folder)
        _draw_warm(figures, folder)


def _draw_cold(figures: dict[str, Any], folder: Path) -> None:
    precompiled, plain = rows_of(figures, "precompiled"), rows_of(figures, "plain")
    column, unit, label = _cold_column(precompiled)
    bare = precompiled["bare"][column]
    chart, axes = plt.subplots(figsize=(9, 4.6), layout="constrained")
    for place, name in enumerate(_LABELS):
        for rows, offset, alpha in ((precompiled, -0.2, 1.0), (plain, 0.2, _PLAIN_ALPHA)):
            value = rows[name][column]
            axes.barh(place + offset, value / unit, 0.36, color=_color(name), alpha=alpha)
            axes.text(value / unit, place + offset, f"  {value / bare:.2f}", va="center", fontsize=9)
    _finish(axes, f"Cold start: {label}\nsolid: bytecode shipped; pale: packed by 'sam build' alone; number: x bare")
    _save(chart, folder, "cold")


def _cold_column(rows: dict[str, Any]) -> tuple[str, float, str]:
    if rows["bare"]["cold_instructions"] is None:
        return "cold_ms", 1, "milliseconds (median)"
    return "cold_instructions", 1e6, "million instructions"


def _draw_warm(figures: dict[str, Any], folder: Path) -> None:
    rows = rows_of(figures, "precompiled")
    counted = rows["bare"]["warm_instructions"]["get"] is not None
    column, unit = ("warm_instructions", 1e6) if counted else ("warm_us", 1e3)
    chart, panels = plt.subplots(1, len(OPERATIONS), figsize=(13, 3.6), sharey=True, layout="constrained")
    for axes, (operation, title) in zip(panels, OPERATIONS.items(), strict=True):
        bare = rows["bare"][column][operation]
        for place, name in enumerate(_LABELS):
            value = rows[name][column][operation]
            axes.barh(place, value / unit, 0.7, color=_color(name))
            axes.text(value / unit, place, f" {value / bare:.2f}", va="center", fontsize=9)
        _finish(axes, title)
    what = "million instructions" if counted else "milliseconds (median)"
    chart.suptitle(f"Warm invocation: {what}; number: x bare", fontsize=12)
    _save(chart, folder, "warm")


def _finish(axes: Axes, title: str) -> None:
    axes.set_yticks(range(len(_LABELS)), list(_LABELS.values()))
    for label in axes.get_yticklabels()[:1]:  # panels beside the first have none
        label.set(color=_OURS, fontweight="bold")
    axes.set_title(title, loc="left", fontsize=11)
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    axes.set_axisbelow(True)
    axes.grid(axis="x", color=_TEXT, alpha=0.25, linewidth=0.7)
    axes.margins(x=0.16)
    if not axes.yaxis_inverted():
        axes.invert_yaxis()


def _color(name: str) -> str:
    return {"ours": _OURS, "empty": _FLOOR, "bare": _FLOOR}.get(name, _OTHERS)


def _save(chart: Any, folder: Path, name: str) -> None:
    chart.savefig(folder / f"{name}.svg", metadata={"Date": None})
    chart.savefig(folder / f"{name}.png", dpi=144)
    plt.close(chart)
