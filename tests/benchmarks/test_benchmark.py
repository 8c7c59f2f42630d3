"""A cold start stays as fast as published, and what the benchmark publishes is right."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import bill
from benchmarks.cases import CASES
from benchmarks.packages import HERE, MeasurementError, check_openssl
from benchmarks.store import animal, size
from tests.support.processes import installed
from tests.support.stack import Template, load, parameters, role_statements
from tools import ROOT
from tools.packaging.translate import translate

RESULTS = json.loads((HERE / "results.json").read_text())
COLD = [row["instructions"]["cold start"] for row in RESULTS["rows"]]


@pytest.mark.slow
@pytest.mark.skipif(
    sys.version_info[:2] != (3, 13) or not shutil.which("valgrind"),
    reason="the benchmark needs 3.13 and valgrind",
)
def test_cold_start_takes_at_most_5_percent_more_than_published_and_logs_one_line() -> (
    None
):
    output = subprocess.check_output(
        ["make", "-s", "bench", "QUICK=1"], cwd=ROOT, text=True
    )

    *_, figures = output.splitlines()  # what is installed first is named
    ours, tuned = json.loads(figures)
    ratio = ours["instructions"]["cold start"] / tuned["instructions"]["cold start"]
    assert ratio <= 1.05 * COLD[0] / COLD[1]
    assert ours["log_lines"] == {"cold start": 1}


def test_published_bill_is_that_of_the_template() -> None:
    assert bill.bills(RESULTS["rows"][0]) == RESULTS["bill"]


@pytest.mark.slow
def test_published_tables_and_charts_are_those_of_the_results(tmp_path: Path) -> None:
    python = installed("charts") / "bin/python"

    subprocess.run([python, HERE / "publish.py", tmp_path], check=True)

    for file in tmp_path.iterdir():
        assert file.read_text() == (HERE / file.name).read_text()


@pytest.fixture(scope="module")
def stack() -> Template:
    return translate(parameters("production"))


def test_each_type_of_resource_is_free_or_has_a_line_in_the_bill(
    stack: Template,
) -> None:
    priced = {kind for each in bill.PRICES["prices"] for kind in each.get("types", [])}

    types = {resource["Type"] for resource in stack["Resources"].values()}

    assert types == priced | {*bill.PRICES["free"]}


def test_bill_of_500_requests_a_second_has_what_they_and_the_stack_use(
    stack: Template,
) -> None:
    of_each = {"get": 2, "list of 20": 2, "create": 2}
    ours = {"cpu_ms": of_each, "log_bytes": of_each, "body_bytes": of_each}

    assert bill.bill(stack, ours, 500) == {
        "API Gateway": 3737.58,  # 333 million at $3.50, 667 at $2.80, 296 at $2.38
        "Lambda": 369.80,  # $0.20 and 6.4 ms of 1 GB for each million calls
        "DynamoDB": 388.96,  # 0.9 read and 0.3 write units for each call, and storage
        "logs": 255.31,  # 2 bytes, and 392 of the access log
        "custom metrics": 6.60,
        "alarms": 2.60,  # 21 metrics at $0.10, and a composite
        "dashboard": 3.00,
        "firewall": 786.60,  # $9, and 1,296 million requests at $0.60
        "data transfer": 70.22,  # 602 bytes for each request
    }


def test_idle_stage_has_the_metrics_of_its_heartbeat_alone(stack: Template) -> None:
    assert bill.custom_metrics(stack, is_idle=True) == 6


def test_measured_animal_has_the_attributes_of_a_stored_one() -> None:
    of_records = {"expires", "fingerprint", "petId"}
    (allowed,) = [
        statement["Condition"]["ForAllValues:StringEquals"]["dynamodb:Attributes"]
        for _, statement in role_statements(load("template.yaml"))
        if statement["Sid"] == "AddAnimalsAndIdempotencyRecords"
    ]

    assert animal(1).keys() == {*allowed} - of_records


def test_page_of_100_animals_takes_4_read_units() -> None:
    read = sum(size(animal(number)) for number in range(1, 102))

    assert size({"id": {"N": "123"}, "name": {"S": "Zoë"}}) == 2 + 3 + 4 + 4
    assert 3 * 4096 < read <= 4 * 4096


def test_another_openssl_than_amazons_is_refused() -> None:
    with pytest.raises(MeasurementError, match="Amazon Linux 2023 has OpenSSL"):
        check_openssl("OpenSSL 3.0.19 27 Jan 2026")


@pytest.mark.parametrize(
    ("status", "first", "right"), [(200, 1, True), (500, 1, False), (200, 2, False)]
)
def test_only_a_right_list_is_measured(status: int, first: int, right: bool) -> None:
    body = json.dumps([{"id": number} for number in range(first, first + 20)])

    assert CASES[0].is_right({"statusCode": status, "body": body}) is right
