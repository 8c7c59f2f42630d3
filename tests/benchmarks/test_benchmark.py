"""A cold start stays as fast as published, and what the benchmark publishes is right."""

import json
import shutil
import subprocess
import sys

import pytest

from benchmarks import report
from benchmarks.execution import Run
from benchmarks.operations import CREATE, LIST_20
from benchmarks.packages import MeasurementError, check_openssl
from benchmarks.prices import GATEWAY, HTTP_API, usd_per_million
from tools import ROOT

RESULTS = json.loads((ROOT / "benchmarks/results.json").read_text())
ROWS = {row["variant"]: row for row in RESULTS["rows"]}
OURS, BARE = ROWS["ours"], ROWS["bare"]
LIST_M = f"{OURS['warm_instructions']['list_20'] / 1e6:.1f}"
CONNECTION_M = (OURS["reconnect_instructions"] - OURS["warm_instructions"]["get"]) / 1e6
RELEASE = RESULTS["openssl"].split()[1]


@pytest.mark.slow
@pytest.mark.skipif(
    sys.version_info[:2] != (3, 13) or not shutil.which("valgrind"),
    reason="the benchmark needs 3.13 and valgrind",
)
def test_cold_start_takes_at_most_5_percent_more_than_published_and_logs_one_line() -> (
    None
):
    published = OURS["cold_instructions"] / BARE["cold_instructions"]

    output = subprocess.check_output(
        ["make", "-s", "bench", "QUICK=1"], cwd=ROOT, text=True
    )

    counted = json.loads(output)
    assert counted["ratio"] <= 1.05 * published
    assert counted["lines"] == 1


@pytest.mark.parametrize(
    ("document", "sentence"),
    [
        ("benchmarks/README.md", f"was not seen): {RELEASE}, from the wheel"),
        ("docs/decisions.md", f"{CONNECTION_M:.1f} M that a new connection adds"),
        ("docs/decisions.md", f"${GATEWAY:.2f} of what a million requests cost"),
        ("docs/decisions.md", f"an HTTP API would be\n  [${HTTP_API:.2f}]"),
        ("docs/deployment.md", f"API Gateway takes ${GATEWAY:.2f} per million"),
        ("docs/scale.md", f"a list of 20, million instructions | {LIST_M} |"),
    ],
)
def test_documents_quote_the_published_figures(document: str, sentence: str) -> None:
    assert sentence in (ROOT / document).read_text()


def test_table_of_the_heartbeat_is_what_the_simulation_prints() -> None:
    printed = subprocess.check_output(
        [sys.executable, "-m", "benchmarks.heartbeat"], cwd=ROOT, text=True
    )

    assert printed in (ROOT / "benchmarks/README.md").read_text()


def test_published_tables_are_those_of_the_published_figures() -> None:
    assert (ROOT / "benchmarks/RESULTS.md").read_text() == report.markdown(RESULTS)


@pytest.mark.parametrize("version", ["OpenSSL 3.0.19 27 Jan 2026", "LibreSSL 3.5.0"])
def test_another_openssl_than_amazons_is_refused(version: str) -> None:
    assert check_openssl("OpenSSL 3.5.9 29 Sep 2026") == RESULTS["openssl"]

    with pytest.raises(MeasurementError, match="Amazon Linux 2023 has OpenSSL"):
        check_openssl(version)


def test_price_is_the_sum_of_what_a_request_uses() -> None:
    run = Run(requests=1, log_bytes=580, body_bytes=400)

    # 3.50 gateway, 0.20 Lambda and 0.076 of its time, 0.125 DynamoDB, 0.25 traces, 0.50 of logs,
    # 0.09 transfer
    assert usd_per_million(run, LIST_20, 3_300_000) == pytest.approx(4.74, abs=0.01)
    assert usd_per_million(run, CREATE, 3_300_000) == pytest.approx(6.49, abs=0.01)


def body(ids: list[int]) -> str:
    return json.dumps([{"id": number, "name": "Rex"} for number in ids])


@pytest.mark.parametrize(
    ("status", "body", "right"),
    [
        (200, body([*range(1, 21)]), True),
        (500, body([*range(1, 21)]), False),
        (200, body([*range(2, 22)]), False),
    ],
)
def test_only_a_right_list_is_measured(status: int, body: str, right: bool) -> None:
    assert LIST_20.is_right({"statusCode": status, "body": body}) is right
