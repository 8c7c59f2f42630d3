"""Checks limits and other promises in openapi.yaml.

test_descriptions.py compares the members of a new animal, and Spectral (`make check`) checks that
the examples are valid.
"""

from tests.contract import openapi
from tests.support import stack
from tools import ROOT

OPENAPI_TEXT = " ".join((ROOT / "openapi.yaml").read_text().split())


def test_page_has_20_animals_by_default_and_at_most_100() -> None:
    # The contract suite compares the maximum of the function with that of the document.
    assert openapi.SCHEMAS["Pets"]["maxItems"] == 100
    assert openapi.LIMIT["default"] == 20
    assert "| animals per page | 100 | 100 |" in OPENAPI_TEXT


def test_every_operation_requires_an_api_key() -> None:
    assert openapi.DOCUMENT["security"] == [{"bearerAuth": []}]
    assert "'security':" not in str(openapi.DOCUMENT["paths"])


def test_get_pet_is_marked_as_deprecated() -> None:
    assert openapi.DOCUMENT["paths"]["/pets/{petId}"]["get"]["deprecated"]


def test_ids_have_64_bits_and_ids_of_animals_are_positive() -> None:
    added, new_pet = [part["properties"] for part in openapi.SCHEMAS["Pet"]["allOf"]]
    assert added["id"]["format"] == new_pet["categoryId"]["format"] == "int64"
    assert added["id"]["minimum"] == 1


def test_schemas_allow_members_and_error_codes_added_later() -> None:
    pet, error = openapi.SCHEMAS["Pet"], openapi.SCHEMAS["Error"]
    assert "enum" not in error["properties"]["code"]
    assert "Properties" not in f"{pet}{error}"  # additionalProperties


def test_throttling_limits_of_both_stages_are_documented() -> None:
    stages = [stack.parameters(stage) for stage in ("production", "staging")]
    assert [stage["ThrottlingRate"] for stage in stages] == ["500", "50"]
    assert "for each operation, all clients together | 500 | 50 |" in OPENAPI_TEXT
    assert [stage["ThrottlingBurst"] for stage in stages] == ["1000", "100"]
    assert (
        "burst of requests for each operation, all clients together | 1,000 | 100 |"
        in OPENAPI_TEXT
    )


def test_rate_limits_of_the_firewall_are_documented() -> None:
    rules = stack.read_stage()["Resources"]["WebAcl"]["Properties"]["Rules"][:2]
    limits = [rule["Statement"]["RateBasedStatement"] for rule in rules]
    assert [limit["Limit"] for limit in limits] == [3000, 6000]
    assert [limit["EvaluationWindowSec"] for limit in limits] == [60, 60]
    assert "requests per minute from one address | 3,000 | no limit |" in OPENAPI_TEXT
    assert "requests per minute with one API key | 6,000 | no limit |" in OPENAPI_TEXT


def test_openapi_says_idempotency_keys_are_kept_for_24_hours() -> None:
    # test_dynamodb_client.py checks that the layer keeps them so long.
    assert (
        OPENAPI_TEXT.count("kept for ") == OPENAPI_TEXT.count("kept for 24 hours") == 2
    )
