"""Limits, hours and codes in openapi.yaml, compared with template and layer.

What a new animal may be is the contract suite's to say; that examples are valid, and every
operation asks for the API key, is Spectral's (`make check`).
"""

import pytest
from animal_store import catalogue, errors

from tests.support import openapi, stack
from tools import ROOT

WORDS = " ".join((ROOT / "openapi.yaml").read_text().split())


def test_pages_have_their_bounds() -> None:
    # The contract suite compares the function's bounds with these.
    assert openapi.SCHEMAS["Pets"]["maxItems"] == 100
    assert openapi.LIMIT["maximum"] == 100
    assert "| animals per page | 100 | 100 |" in WORDS


def test_integers_are_of_64_bits_and_new_codes_may_come() -> None:
    pet, error = openapi.SCHEMAS["Pet"], openapi.SCHEMAS["Error"]
    assert str(pet).count("'format': 'int64'") == 2
    assert "enum" not in error["properties"]["code"]
    assert "Properties" not in f"{pet}{error}"  # new members may come


@pytest.mark.parametrize(
    ("row", "parameter"),
    [
        ("per second for each operation, all clients together", "ThrottlingRate"),
        ("operation, all clients together (burst)", "ThrottlingBurst"),
    ],
)
def test_limits_are_those_of_the_stages(row: str, parameter: str) -> None:
    production = int(stack.parameters("production")[parameter])
    staging = int(stack.parameters("staging")[parameter])
    assert f"{row} | {production:,} | {staging} |" in WORDS


@pytest.mark.parametrize(
    ("row", "rule"),
    [
        ("requests per minute with one API key", "requests-per-key"),
        ("requests per minute from one address", "requests-per-address"),
    ],
)
def test_limits_are_those_of_the_firewall(row: str, rule: str) -> None:
    web_acl = stack.staged()["Resources"]["WebAcl"]["Properties"]
    limits = {each["Name"]: each["Statement"] for each in web_acl["Rules"]}
    limit = limits[rule]["RateBasedStatement"]["Limit"]
    assert f"{row} | {limit:,} | no limit |" in WORDS


def test_idempotency_keys_are_kept_as_long_as_the_text_says() -> None:
    hours = catalogue._IDEMPOTENCY_SECONDS // 3600

    assert WORDS.count("kept for ") == WORDS.count(f"kept for {hours} hours") == 2


def test_documented_error_codes_match_the_layer() -> None:
    of_the_layer = {code: str(status) for code, status in errors.STATUS_OF_CODE.items()}
    # API Gateway answers 502 for a function that crashed: to clients the same as a failure that
    # the function reports.
    of_the_layer["internal_error"] = "500, 502"

    assert of_the_layer == openapi.CODES
