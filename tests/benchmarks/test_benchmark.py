"""A cold start stays as fast as published, and what the benchmark publishes is right."""

import json
import shutil
import subprocess
import sys

import pytest

from benchmarks import bill, report
from benchmarks.fake_dynamodb import animal, read_units, size
from benchmarks.operations import LIST_20
from benchmarks.packages import MeasurementError, check_openssl
from tests.support.stack import Template, load, parameters, role_statements
from tools import ROOT
from tools.packaging.translate import translate

RESULTS = json.loads((ROOT / "benchmarks/results.json").read_text())
COLD = {row["variant"]: row["instructions"]["cold"] for row in RESULTS["rows"]}


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

    counted = json.loads(output)
    assert counted["ratio"] <= 1.05 * COLD["ours"] / COLD["bare-tuned"]
    assert counted["lines"] == 1


def test_published_tables_are_those_of_the_published_figures() -> None:
    assert (ROOT / "benchmarks/RESULTS.md").read_text() == report.markdown(RESULTS)


def test_deployment_document_has_the_bill_of_the_published_figures() -> None:
    assert bill.published() in (ROOT / "docs/deployment.md").read_text()


@pytest.fixture(scope="module")
def stack() -> Template:
    return translate(parameters("production"))


def test_each_type_of_resource_is_free_or_has_a_line_in_the_bill(
    stack: Template,
) -> None:
    priced = [
        kind for price in bill.PRICES["prices"] for kind in price.get("types", [])
    ]

    types = {resource["Type"] for resource in stack["Resources"].values()}

    assert types == {*priced, *bill.PRICES["free"]}


def test_bill_of_500_requests_a_second_has_what_they_and_the_stack_use(
    stack: Template,
) -> None:
    of_each = {"get": 2, "list_20": 2, "create": 2}
    figures = ("cpu_ms", "requests", "read_units", "log_bytes", "body_bytes")

    used = bill.quantities(stack, dict.fromkeys(figures, of_each), 500)

    assert bill.bill(used) == pytest.approx(
        {
            "API Gateway": 333 * 3.50 + 667 * 2.80 + 296 * 2.38,
            "Lambda": 432.01,  # $0.20 and 10 ms of 1 GB for each million calls
            "DynamoDB": 567.16,  # 2 read units for each call, 3 written for a tenth
            "logs": 255.31,  # 2 bytes, and 392 of the access log
            "custom metrics": 6.60,
            "alarms": 3.20,
            "dashboard": 3.00,
            "firewall": 5 + 4 + 1296 * 0.60,
            "data transfer": 70.22,
        },
        abs=0.01,
    )


def test_idle_stage_has_the_metrics_of_its_heartbeat_alone(stack: Template) -> None:
    assert bill.custom_metrics(stack, is_idle=True) == 6
    assert bill.custom_metrics(stack, is_idle=False) == 22


def test_measured_animal_has_the_attributes_of_a_stored_one() -> None:
    of_records = {"expires", "fingerprint", "petId"}
    (allowed,) = [
        statement["Condition"]["ForAllValues:StringEquals"]["dynamodb:Attributes"]
        for _, statement in role_statements(load("template.yaml"))
        if statement["Sid"] == "AddAnimalsAndIdempotencyRecords"
    ]

    assert animal(1).keys() == {*allowed} - of_records


def test_page_of_100_animals_takes_4_read_units() -> None:
    animals = [animal(number) for number in range(1, 102)]

    assert size({"id": {"N": "123"}, "name": {"S": "Zoë"}}) == 2 + 3 + 4 + 4
    assert read_units(animals, consistent=True) == 4
    assert read_units(animals[:21], consistent=True) == 1
    assert read_units(animals[:21], consistent=False) == 0.5


def test_another_openssl_than_amazons_is_refused() -> None:
    with pytest.raises(MeasurementError, match="Amazon Linux 2023 has OpenSSL"):
        check_openssl("OpenSSL 3.0.19 27 Jan 2026")


@pytest.mark.parametrize(
    ("status", "first", "right"), [(200, 1, True), (500, 1, False), (200, 2, False)]
)
def test_only_a_right_list_is_measured(status: int, first: int, right: bool) -> None:
    body = json.dumps([{"id": number} for number in range(first, first + 20)])

    assert LIST_20.is_right({"statusCode": status, "body": body}) is right
