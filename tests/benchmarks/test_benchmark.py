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
from tests.support.stack import parameters
from tools import ROOT
from tools.packaging.translate import translate

RESULTS = json.loads((HERE / "results.json").read_text())


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
    measured = json.loads(figures)
    ratio, published = (
        rows["this service"]["instructions"]["cold start"]
        / rows["tuned bare"]["instructions"]["cold start"]
        for rows in (measured, RESULTS["rows"])
    )
    assert ratio <= 1.05 * published
    assert measured["this service"]["log_lines"] == {"cold start": 1}


@pytest.mark.slow
def test_published_tables_and_charts_are_those_of_the_results(tmp_path: Path) -> None:
    python = installed("charts") / "bin/python"

    subprocess.run([python, HERE / "publish.py", tmp_path], check=True)

    for file in tmp_path.iterdir():
        assert file.read_text() == (HERE / file.name).read_text()


def test_each_type_of_resource_is_free_or_has_a_line_in_the_bill() -> None:
    priced = {kind for each in bill.PRICES["prices"] for kind in each.get("types", [])}
    resources = translate(parameters("production"))["Resources"].values()

    assert {each["Type"] for each in resources} == priced | {*bill.PRICES["free"]}


def test_page_of_100_animals_takes_4_read_units() -> None:
    read = sum(size(animal(number)) for number in range(1, 102))

    assert size({"id": {"N": "123"}, "name": {"S": "Zoë"}}) == 2 + 3 + 4 + 4
    assert 3 * 4096 < read <= 4 * 4096


def test_another_openssl_than_amazons_is_refused() -> None:
    with pytest.raises(MeasurementError, match="Amazon Linux 2023 has OpenSSL"):
        check_openssl("OpenSSL 3.0.19 27 Jan 2026")


@pytest.mark.parametrize(
    ("status", "name", "right"),
    [(200, "number 1", True), (500, "number 1", False), (200, "number 2", False)],
)
def test_only_a_right_answer_is_measured(status: int, name: str, right: bool) -> None:
    pet = {"id": 1, "name": f"Animal {name}", "categoryId": 3, "status": "available"}
    answer = {"statusCode": status, "body": json.dumps(pet)}

    assert CASES[-1].is_right(answer) is right
