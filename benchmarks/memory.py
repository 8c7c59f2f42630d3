"""What a function's memory size buys and costs: its share of a core as a cgroup limit, as Lambda sets one.

The price is Lambda's alone: gets with one cold start in a hundred, which is more than AWS sees on average
(https://aws.amazon.com/blogs/compute/aws-lambda-standardizes-billing-for-init-phase/). Times are orientation. A call of
DynamoDB takes 4 ms in the price and almost nothing in the times. A warm request computes too little to meet its limit:
its p99 is what other programs of the machine did meanwhile.
"""

import datetime as dt
import os
import statistics
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks import prices
from benchmarks.execution import MeasurementError, observe
from benchmarks.operations import GET, LIST_20, LIST_100
from benchmarks.packages import OURS, Package, build
from benchmarks.report import table

SIZES = (256, 512, 768, 1024, 1280, 1769)
COLD_RUNS = int(os.environ.get("COLD_RUNS", "100"))
WARM_UP, WARM = 20, 300
_COLD_SHARE = 0.01
_PERIOD_US = 20_000  # taken for Lambda's, which AWS does not document
# Longer than a period, so that each request finds what it may use in one, as after a pause on Lambda.
_PAUSE_SECONDS = 0.025
_HEAD = "MB|of a core|cold p50, ms|p99|get p50, ms|p99|list of 100 p50, ms|p99|dollars per million"


@contextmanager
def _limit(share: float) -> Iterator[list[str]]:
    """Give the command that runs another with that share of a core, by cgroups of version 2 or 1."""
    root = Path("/sys/fs/cgroup")
    quota = round(share * _PERIOD_US)
    # The weight is the highest there is: other programs of this machine shall not count.
    files = {"cpu.max": f"{quota} {_PERIOD_US}", "cpu.weight": "10000"}
    if not (root / "cgroup.controllers").exists():
        root /= "cpu"
        files = {
            "cpu.cfs_period_us": str(_PERIOD_US),
            "cpu.cfs_quota_us": str(quota),
            "cpu.shares": "262144",
        }
    group = root / f"benchmark-{os.getpid()}"
    try:
        group.mkdir()
        for name, value in files.items():
            (group / name).write_text(value)
    except OSError as error:
        raise MeasurementError(
            f"This needs root and cgroups that can be written to: {error}"
        ) from error
    try:
        yield ["sh", "-c", f'echo $$ > {group}/cgroup.procs; exec "$@"', "sh"]
    finally:
        group.rmdir()


def _row(package: Package, memory: int) -> list[str]:
    with _limit(memory / prices.WHOLE_CORE_MB) as wrapper:
        times = [
            [
                observe(package, LIST_20, 1, wrapper=wrapper).first_answer_ms
                for _ in range(COLD_RUNS)
            ]
        ]
        for operation in (GET, LIST_100):
            run = observe(package, operation, WARM_UP + WARM, wrapper=wrapper, pause=_PAUSE_SECONDS)
            times.append([us / 1000 for us in run.us[WARM_UP:]])
    cold, cold_99, *warm = (
        value for each in times for value in statistics.quantiles(each, n=100)[49::49]
    )
    seconds = (_COLD_SHARE * cold + (1 - _COLD_SHARE) * warm[0]) / 1000 + prices.STORE_SECONDS
    cells = [
        f"{memory:,}",
        f"{memory / prices.WHOLE_CORE_MB:.2f}",
        f"{cold:,.0f}",
        f"{cold_99:,.0f}",
    ]
    return [*cells, *(f"{value:,.1f}" for value in warm), f"{prices.compute(seconds, memory):.2f}"]


def report() -> str:
    """Measure each size, and write `MEMORY.md`."""
    package = build(OURS, "precompiled")
    rows = [_row(package, memory) for memory in SIZES]
    written = f"Written by `make bench MEMORY=1` on {dt.datetime.now(dt.UTC).date()}."
    return f"# Memory sizes\n\n{written}\n\n{__doc__}\n{table(_HEAD.split('|'), rows)}\n"
