"""What a request says, and in which words it is refused; which bodies and parameters are refused is in the contract."""

import base64
import gzip
import json
from typing import Any

import pytest
from animal_store.auth import Caller
from animal_store.errors import InvalidRequest, PayloadTooLarge, UnsupportedMediaType
from animal_store.models import NewPet
from animal_store.request import Request, collection_url
from animal_store.validators import NEW_PET
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.conftest import Call

CALLER = Caller("0" * 64, "unit tests")
REX = '{"name": "Rex", "categoryId": 3, "status": "sold"}'
NAME = "name: must have"
INTEGER = "categoryId: must be an integer."
STATUS = "status: must be one of 'available', 'pending' or 'sold'."
HOST = "a1.execute-api.eu-central-1.amazonaws.com"
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda values: st.lists(values) | st.dictionaries(st.text(), values),
    max_leaves=5,
)


def request(folder: str = "create_pet", **differences: Any) -> Request:
    return Request(Call(folder, **differences).event(), CALLER)


def read_body(body: str | None) -> NewPet:
    return request(body=body).body(NEW_PET)


def encoded(body: bytes, **headers: list[str]) -> Request:
    event = Call("create_pet", body=base64.b64encode(body).decode(), headers=headers).event()
    return Request(event | {"isBase64Encoded": True}, CALLER)


# -- the body ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (None, "The body is required."),
        ("", "The body is required."),
        ("{}", "name: is required. categoryId: is required."),
        ('{"name": 1, "categoryId": 1}', "name: must be a string."),
        ('{"name": "", "categoryId": 1}', f"{NAME} at least 1 character(s)."),
        (json.dumps({"name": "x" * 257, "categoryId": 1}), f"{NAME} at most 256 characters."),
        ('{"name": " \\t\\n\\u3000", "categoryId": 1}', f"{NAME} a character that is not white space."),
        ('{"name": "\\ud800", "categoryId": 1}', "name: must be valid Unicode, without lone surrogates."),
        ('{"name": "Rex", "categoryId": "1"}', INTEGER),
        ('{"name": "Rex", "categoryId": 1.0}', INTEGER),
        ('{"name": "Rex", "categoryId": 9223372036854775808}', "categoryId: must be at most 9223372036854775807."),
        ('{"name": "Rex", "categoryId": -9223372036854775809}', "categoryId: must be at least -9223372036854775808."),
        ('{"name": "Rex", "categoryId": 1, "status": "lost"}', STATUS),
        ('{"name": "", "categoryId": "1", "status": 0}', f"{NAME} at least 1 character(s). {INTEGER} {STATUS}"),
        ("[]", "The body must be a JSON object."),
        ("{", "The body is not valid JSON."),
        ("\ufeff" + REX, "The body is not valid JSON."),
        ('{"a":' * 3000, "The body is not valid JSON."),
        ('{"name": "Rex", "categoryId": 1, "x": {"y": 1, "y": 1}}', "The body has an object with duplicate members."),
    ],
)
def test_refusal_names_the_member_and_what_is_wrong_with_it(body: str | None, message: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        read_body(body)

    assert str(raised.value) == message


@given(body=st.one_of(st.text(), JSON.map(json.dumps)))
@settings(deadline=None)
def test_no_text_and_no_json_without_the_members_makes_it_fail_otherwise(body: str) -> None:
    with pytest.raises(InvalidRequest):
        read_body(body)


def test_body_in_base64_is_decoded() -> None:
    assert encoded(REX.replace("Rex", "R\u00e9x").encode()).body(NEW_PET)["name"] == "R\u00e9x"


@pytest.mark.parametrize("codings", [["gzip"], [""], ["identity", "gzip"], ["gzip, identity"], ["x"]])
def test_compressed_body_is_refused_with_a_hint(codings: list[str]) -> None:
    with pytest.raises(UnsupportedMediaType, match=r"^The body must not be compressed: send it without Content-"):
        encoded(gzip.compress(REX.encode()), **{"Content-Encoding": codings}).body(NEW_PET)


@pytest.mark.parametrize("coding", ["identity", " Identity "])
def test_body_that_is_declared_to_be_as_it_is_is_taken(coding: str) -> None:
    assert request(body=REX, headers={"Content-Encoding": [coding]}).body(NEW_PET)["name"] == "Rex"


def test_largest_animal_fits() -> None:
    body = json.dumps({"name": "\U0001f600" * 256, "categoryId": -(2**63), "status": "available"}, indent=8)

    assert read_body(body)["name"] == "\U0001f600" * 256


@pytest.mark.parametrize("character", [" ", "\u00e9", "\U0001f600"])
def test_body_of_16_kb_is_read_and_a_larger_one_is_not_even_parsed(character: str) -> None:
    rest = 16 * 1024 - len(REX) - len(',"x":""')
    largest = REX[:-1] + f',"x":"{character * (rest // len(character.encode()))}"}}'

    assert read_body(largest)["name"] == encoded(largest.encode()).body(NEW_PET)["name"] == "Rex"
    for body in (largest + "    ", "[" * 16 * 1024 + "[", "\ud800" * 6000):
        with pytest.raises(PayloadTooLarge):
            read_body(body)
    with pytest.raises(PayloadTooLarge):
        encoded(largest.encode() + b"    ").body(NEW_PET)


# -- parameters and headers --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("value", "key"), [('""a""', '"a"'), ('"""', '"'), ('a"b', 'a"b')])
def test_idempotency_key_loses_its_outer_quotes_alone(value: str, key: str) -> None:
    assert request(headers={"idempotency-key": [value]}).idempotency_key() == key


@pytest.mark.parametrize("resource", ["/v1/pets", "/v1/pets/{petId}"])
@pytest.mark.parametrize(
    ("forwarded", "domain", "prefix", "expected"),
    [
        (["https", "443"], HOST, "/staging", f"https://{HOST}/staging/v1/pets"),
        (["https", "443"], "api.example.com", "/animals", "https://api.example.com/animals/v1/pets"),
        (["https", "80"], "api.example.com", "", "https://api.example.com:80/v1/pets"),
        (["http", "80"], "localhost", "", "http://localhost/v1/pets"),
        (["http", "443"], "localhost", "", "http://localhost:443/v1/pets"),
        (["http", "3000"], "127.0.0.1:3000", "", "http://127.0.0.1:3000/v1/pets"),
        (["http", "4200"], "[::1]", "", "http://[::1]:4200/v1/pets"),
        (["http", "4200"], "[::1]:4200", "", "http://[::1]:4200/v1/pets"),
        ([], "api.example.com", "", "https://api.example.com/v1/pets"),
        (["https", "81@evil.example"], "api.example.com", "", "https://api.example.com/v1/pets"),
        (["https", "0"], "api.example.com", "", "https://api.example.com/v1/pets"),
        (["https", "65535"], "api.example.com", "", "https://api.example.com:65535/v1/pets"),
        (["https", "65536"], "api.example.com", "", "https://api.example.com/v1/pets"),
        (["https", "\u0661"], "api.example.com", "", "https://api.example.com/v1/pets"),
        (["javascript", "443"], "api.example.com", "", "https://api.example.com/v1/pets"),
    ],
)
def test_url_of_the_collection_is_the_one_by_which_the_client_came(
    forwarded: list[str], domain: str, prefix: str, expected: str, resource: str
) -> None:
    event = {
        "multiValueHeaders": {
            # Of several values the last one counts.
            name: ["x", value]
            for name, value in zip(["x-forwarded-proto", "X-Forwarded-Port"], forwarded, strict=False)
        },
        "resource": resource,
        "requestContext": {"domainName": domain, "path": prefix + resource.replace("{petId}", "7")},
    }

    assert collection_url(event) == expected


@pytest.mark.parametrize(
    ("path", "prefix"),
    [("/staging/v1/p%65ts", "/staging"), ("/v1/%70ets/%2Fv1%2Fpets", ""), ("/v1/pets/v1%2Fpets", "")],
)
def test_path_may_be_written_with_escapes(path: str, prefix: str) -> None:
    event = Call("get_pet").event()
    event["requestContext"] |= {"path": path, "domainName": HOST}

    assert collection_url(event) == f"https://{HOST}{prefix}/v1/pets"
