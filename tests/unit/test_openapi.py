"""Compares limits and other promises in openapi.yaml with template and layer.

The contract suite compares the members of a new animal, and Spectral (`make check`) checks that
the examples are valid.
"""

from tests.contract import openapi
from tests.support import stack
from tools import ROOT

OPENAPI_TEXT = " ".join((ROOT / "openapi.yaml").read_text().split())


def test_page_has_20_animals_by_default_and_at_most_100() -> None:
    # The contract suite compares the bounds of the function with those of the document.
    assert openapi.SCHEMAS["Pets"]["maxItems"] == 100
    assert openapi.LIMIT["maximum"] == 100
    assert openapi.LIMIT["default"] == 20
    assert "| animals per page | 100 | 100 |" in OPENAPI_TEXT


def test_servers_are_this_machine_and_both_stages() -> None:
    assert [server["url"] for server in openapi.DOCUMENT["servers"]] == [
        "http://127.0.0.1:3000/v1",
        "https://{apiId}.execute-api.{region}.amazonaws.com/production/v1",
        "https://{apiId}.execute-api.{region}.amazonaws.com/staging/v1",
    ]


def test_every_operation_requires_an_api_key() -> None:
    assert openapi.DOCUMENT["security"] == [{"bearerAuth": []}]
    assert "'security':" not in str(openapi.DOCUMENT["paths"])


def test_get_pet_is_marked_as_deprecated() -> None:
    assert openapi.DOCUMENT["paths"]["/pets/{petId}"]["get"]["deprecated"]


def test_ids_have_64_bits_and_that_of_an_animal_is_positive() -> None:
    pet_id, new_pet = openapi.SCHEMAS["Pet"]["allOf"]
    assert pet_id["properties"]["id"]["format"] == "int64"
    assert pet_id["properties"]["id"]["minimum"] == 1
    assert new_pet["properties"]["categoryId"]["format"] == "int64"


def test_schemas_allow_later_members_and_error_codes() -> None:
    pet, error = openapi.SCHEMAS["Pet"], openapi.SCHEMAS["Error"]
    assert "enum" not in error["properties"]["code"]
    assert "Properties" not in f"{pet}{error}"  # additional and unevaluated ones


def test_throttling_limits_of_both_stages_are_documented() -> None:
    production, staging = stack.parameters("production"), stack.parameters("staging")
    assert (production["ThrottlingRate"], staging["ThrottlingRate"]) == ("500", "50")
    assert "for each operation, all clients together | 500 | 50 |" in OPENAPI_TEXT
    assert (production["ThrottlingBurst"], staging["ThrottlingBurst"]) == (
        "1000",
        "100",
    )
    assert "all clients together (burst) | 1,000 | 100 |" in OPENAPI_TEXT


def test_each_error_code_is_listed_with_its_status() -> None:
    assert openapi.CODES == {
        "invalid_request": "400",
        "unauthorized": "401",
        "not_found": "404",
        "payload_too_large": "413",
        "unsupported_media_type": "415",
        "idempotency_key_reused": "422",
        "too_many_requests": "429",
        "internal_error": "500, 502",
        "service_unavailable": "503",
        "timeout": "504",
    }


def test_rate_limits_of_the_firewall_are_documented() -> None:
    web_acl = stack.read_stage()["Resources"]["WebAcl"]["Properties"]
    per_address, per_key, _ = [rule["Statement"] for rule in web_acl["Rules"]]
    assert per_address["RateBasedStatement"]["Limit"] == 3000
    assert per_address["RateBasedStatement"]["EvaluationWindowSec"] == 60
    assert "requests per minute from one address | 3,000 | no limit |" in OPENAPI_TEXT
    assert per_key["RateBasedStatement"]["Limit"] == 6000
    assert per_key["RateBasedStatement"]["EvaluationWindowSec"] == 60
    assert "requests per minute with one API key | 6,000 | no limit |" in OPENAPI_TEXT


def test_idempotency_keys_are_kept_for_24_hours() -> None:
    # tests/unit/test_dynamodb_client.py expects this time of the layer.
    assert (
        OPENAPI_TEXT.count("kept for ") == OPENAPI_TEXT.count("kept for 24 hours") == 2
    )
