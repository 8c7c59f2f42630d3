"""What a request says, and in which words it is refused."""

import base64
import gzip
import json
from typing import Any

import pytest
from animal_store.auth import Caller
from animal_store.errors import InvalidRequest, PayloadTooLarge, UnsupportedMediaType
from animal_store.models import NewPet
from animal_store.pet_status import PET_STATUSES
from animal_store.request import Request, collection_url, header, positive_int64
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


def read_body(body: str | None, *content_types: str) -> NewPet:
    headers = {"Content-Type": list(content_types)} if content_types else {}
    return request(body=body, headers=headers).body(NEW_PET)


def refusal(body: str | None) -> str:
    with pytest.raises(InvalidRequest) as raised:
        read_body(body)
    return str(raised.value)


# -- the body ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "pet",
    [
        {"name": "Rex", "categoryId": 3, "status": "sold"},
        {"name": "Rex", "categoryId": 3},
        {"name": "x", "categoryId": -(2**63), "status": "available"},
        {"name": "x" * 256, "categoryId": 2**63 - 1, "status": "pending"},
        {"name": "\U0001f415" * 256, "categoryId": 2**53 + 1},
        {"name": "  Rex\t", "categoryId": 0},
        {"name": "\u00a0.", "categoryId": 0},
        {"name": "\0", "categoryId": 0},
        {"name": 'a"b\\c\n', "categoryId": -0},
    ],
)
def test_valid_animal_is_kept_exactly(pet: dict[str, Any]) -> None:
    assert read_body(json.dumps(pet)) == pet
    assert read_body(json.dumps(pet, ensure_ascii=False)) == pet


def test_unknown_members_are_ignored_and_so_is_an_id() -> None:
    assert read_body(
        '{"id": 9, "name": "Rex", "categoryId": 3, "tags": [{"\\ud800": NULL}]}'.replace("NULL", "null")
    ) == {
        "name": "Rex",
        "categoryId": 3,
    }


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("{}", "name: is required. categoryId: is required."),
        ('{"name": "Rex"}', "categoryId: is required."),
        ('{"categoryId": 1}', "name: is required."),
        ('{"Name": "Rex", "categoryId": 1}', "name: is required."),
        ('{"name": 1, "categoryId": 1}', "name: must be a string."),
        ('{"name": null, "categoryId": 1}', "name: must be a string."),
        ('{"name": "", "categoryId": 1}', f"{NAME} at least 1 character(s)."),
        (json.dumps({"name": "x" * 257, "categoryId": 1}), f"{NAME} at most 256 characters."),
        ('{"name": " \\t\\n\\u3000", "categoryId": 1}', f"{NAME} a character that is not white space."),
        ('{"name": "\\ud800", "categoryId": 1}', "name: must be valid Unicode, without lone surrogates."),
        ('{"name": "Rex", "categoryId": "1"}', INTEGER),
        ('{"name": "Rex", "categoryId": true}', INTEGER),
        ('{"name": "Rex", "categoryId": null}', INTEGER),
        ('{"name": "Rex", "categoryId": 1.0}', INTEGER),
        ('{"name": "Rex", "categoryId": 1e3}', INTEGER),
        ('{"name": "Rex", "categoryId": 1e999}', INTEGER),
        ('{"name": "Rex", "categoryId": [1]}', INTEGER),
        ('{"name": "Rex", "categoryId": 9223372036854775808}', "categoryId: must be at most 9223372036854775807."),
        ('{"name": "Rex", "categoryId": -9223372036854775809}', "categoryId: must be at least -9223372036854775808."),
        (f'{{"name": "Rex", "categoryId": {"9" * 4300}}}', "categoryId: must be at most 9223372036854775807."),
        *(
            (f'{{"name": "Rex", "categoryId": 1, "status": {status}}}', STATUS)
            for status in ('"lost"', '"Sold"', '""', "null", "1", "[]")
        ),
        ('{"name": "", "categoryId": "1", "status": 0}', f"{NAME} at least 1 character(s). {INTEGER} {STATUS}"),
        *((body, "The body must be a JSON object.") for body in ("[]", "null", "1", '"Rex"', "true", f"[{REX}]")),
    ],
)
def test_refusal_names_the_member_and_what_is_wrong_with_it(body: str, message: str) -> None:
    assert refusal(body) == message


@pytest.mark.parametrize("body", [None, ""])
def test_missing_body_is_refused(body: str | None) -> None:
    assert refusal(body) == "The body is required."


@pytest.mark.parametrize(
    "body",
    [
        " ",
        "{",
        REX[:-1],
        REX + "}",
        REX + REX,
        "{'name': 'Rex', 'categoryId': 1}",
        '{"name": "Rex", "categoryId": 1,}',
        '{"name": "Rex", "categoryId": 01}',
        '{"name": "Rex", "categoryId": NaN}',
        '{"name": "Rex", "categoryId": 1, "x": NaN}',
        '{"name": "Rex", "categoryId": 1, "x": Infinity}',
        '{"name": "Rex", "categoryId": 1, "x": -Infinity}',
        '{"name": "R\nex", "categoryId": 1}',
        '{"name": "Rex", "categoryId": ' + "9" * 4301 + "}",
        "\ufeff" + REX,
        "[" * 10_000,
        '{"a":' * 3000,
        "\ud800",
    ],
    ids=lambda body: body[:20].encode("ascii", "backslashreplace").decode(),
)
def test_what_is_no_json_is_refused(body: str) -> None:
    assert refusal(body) == "The body is not valid JSON."


@pytest.mark.parametrize(
    "body",
    [
        '{"name": "Rex", "categoryId": 1, "name": "Rex"}',
        '{"name": "Rex", "categoryId": 1, "\\u006eame": "Max"}',
        '{"name": "Rex", "categoryId": 1, "x": {"y": 1, "y": 1}}',
    ],
)
def test_duplicate_members_are_refused(body: str) -> None:
    assert refusal(body) == "The body has an object with duplicate members."


@given(text=st.text())
@settings(deadline=None)
def test_no_text_makes_it_fail_otherwise(text: str) -> None:
    with pytest.raises(InvalidRequest):
        read_body(text)


@given(value=JSON)
@settings(deadline=None)
def test_no_json_without_the_members_makes_it_fail_otherwise(value: object) -> None:
    with pytest.raises(InvalidRequest):
        read_body(json.dumps(value))


def encoded(body: bytes) -> Request:
    event = Call("create_pet", body=base64.b64encode(body).decode()).event()
    return Request(event | {"isBase64Encoded": True}, CALLER)


def test_body_in_base64_is_decoded() -> None:
    assert encoded(REX.replace("Rex", "R\u00e9x").encode()).body(NEW_PET)["name"] == "R\u00e9x"


@pytest.mark.parametrize(
    "body", [b"\xff", b'{"name": "R\xe9x", "categoryId": 1}', b'{"name": "\xed\xa0\x80", "categoryId": 1}']
)
def test_bytes_that_are_not_utf_8_are_refused(body: bytes) -> None:
    with pytest.raises(InvalidRequest, match=r"^The body is not valid UTF-8\.$"):
        encoded(body).body(NEW_PET)


@pytest.mark.parametrize("body", [b"\xef\xbb\xbf" + REX.encode(), REX.encode("utf-16"), b"\x00"])
def test_bytes_of_other_encodings_are_refused(body: bytes) -> None:
    with pytest.raises(InvalidRequest, match=r"^The body is not valid (JSON|UTF-8)\.$"):
        encoded(body).body(NEW_PET)


# -- its type ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content_type",
    [
        "application/json",
        "Application/JSON",
        " application/json ",
        "application/json;charset=utf-8",
        "application/json ; charset=utf-8; x=y",
        "application/json;",
    ],
)
def test_json_with_any_parameters_is_taken(content_type: str) -> None:
    assert read_body(REX, content_type)["name"] == "Rex"


def test_absent_content_type_is_taken() -> None:
    event = Call("create_pet", body=REX).event()
    del event["multiValueHeaders"]["Content-Type"]

    assert Request(event, CALLER).body(NEW_PET)["name"] == "Rex"


@pytest.mark.parametrize(
    "content_types",
    [
        ["text/plain"],
        [""],
        ["application/jsonp"],
        ["application/json, text/plain"],
        ["application/vnd.api+json"],
        ["text/json;application/json"],
        ["application/x-www-form-urlencoded"],
        ["application/json", "application/json"],
        ["application/json", "text/plain"],
    ],
)
def test_any_other_content_type_is_refused(content_types: list[str]) -> None:
    with pytest.raises(UnsupportedMediaType, match=r"^Content-Type must be application/json\.$"):
        read_body(REX, *content_types)


def test_content_type_comes_before_the_body() -> None:
    with pytest.raises(UnsupportedMediaType):
        read_body("{", "text/plain")


@pytest.mark.parametrize("codings", [["gzip"], ["br"], [""], ["identity", "gzip"], ["gzip, identity"], ["x"]])
def test_compressed_body_is_refused_with_a_hint(codings: list[str]) -> None:
    compressed = {"body": base64.b64encode(gzip.compress(REX.encode())).decode(), "isBase64Encoded": True}
    event = Call("create_pet", headers={"Content-Encoding": codings}).event() | compressed

    with pytest.raises(UnsupportedMediaType, match=r"^The body must not be compressed: send it without Content-"):
        Request(event, CALLER).body(NEW_PET)


@pytest.mark.parametrize("coding", ["identity", " Identity "])
def test_body_that_is_declared_to_be_as_it_is_is_taken(coding: str) -> None:
    assert request(body=REX, headers={"Content-Encoding": [coding]}).body(NEW_PET)["name"] == "Rex"


# -- its size ----------------------------------------------------------------------------------------------------------


def padded(size: int, character: str = " ") -> str:
    """Return a body of so many bytes."""
    rest = size - len(REX) - len(',"x":""')
    return REX[:-1] + f',"x":"{character * (rest // len(character.encode()))}"}}'


def test_largest_animal_fits() -> None:
    body = json.dumps({"name": "\U0001f600" * 256, "categoryId": -(2**63), "status": "available"}, indent=8)

    assert read_body(body)["name"] == "\U0001f600" * 256


@pytest.mark.parametrize("character", [" ", "\u00e9", "\U0001f600"])
def test_body_of_16_kb_is_read_and_a_larger_one_is_not_even_parsed(character: str) -> None:
    largest = padded(16 * 1024, character)
    assert 16 * 1024 - 4 < len(largest.encode()) <= 16 * 1024

    assert read_body(largest)["name"] == encoded(largest.encode()).body(NEW_PET)["name"] == "Rex"
    for body in (largest + "    ", "[" * 16 * 1024 + "[", "\ud800" * 6000):
        with pytest.raises(PayloadTooLarge):
            read_body(body)
    with pytest.raises(PayloadTooLarge):
        encoded(largest.encode() + b"    ").body(NEW_PET)


# -- the query string --------------------------------------------------------------------------------------------------


def limit(query: dict[str, list[str]] | None) -> int:
    return request("list_pets", query=query).integer("limit", minimum=1, maximum=100, default=20)


@pytest.mark.parametrize(
    ("query", "value"),
    [
        (None, 20),
        ({}, 20),
        ({"Limit": ["5"]}, 20),
        ({"limit": ["1"]}, 1),
        ({"limit": ["100"]}, 100),
        ({"limit": ["007"]}, 7),
    ],
)
def test_integer_is_read_or_its_default_taken(query: dict[str, list[str]] | None, value: int) -> None:
    assert limit(query) == value


@pytest.mark.parametrize(
    "text",
    ["0", "101", "-1", "+5", " 5", "5 ", "5\n", "1.0", "1e1", "", "x", "0x5", "5_0", "\u0665", "9" * 20, "9" * 5000],
)
def test_what_is_no_integer_in_bounds_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest, match=r"^limit: must be an integer from 1 to 100\.$"):
        limit({"limit": [text]})


@pytest.mark.parametrize("values", [["1", "2"], ["1", "1"], ["", ""]])
def test_parameter_given_twice_is_refused(values: list[str]) -> None:
    with pytest.raises(InvalidRequest, match=r"^limit: must be given once\.$"):
        limit({"limit": values})


@pytest.mark.parametrize("status", PET_STATUSES)
def test_choice_is_read(status: str) -> None:
    assert request("list_pets", query={"status": [status]}).choice("status", PET_STATUSES) == status


def test_choice_may_be_absent() -> None:
    assert request("list_pets", query={"limit": ["1"]}).choice("status", PET_STATUSES) is None


@pytest.mark.parametrize("text", ["", "lost", "Sold", "sold ", "sold,available"])
def test_what_is_no_choice_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest, match=r"^status: must be one of available, pending, sold\.$"):
        request("list_pets", query={"status": [text]}).choice("status", PET_STATUSES)


# -- the path ----------------------------------------------------------------------------------------------------------


def test_path_parameter_is_read() -> None:
    assert request("get_pet", pet_id="12").path_parameter("petId") == "12"


@pytest.mark.parametrize(("text", "number"), [("1", 1), ("20", 20), ("9223372036854775807", 2**63 - 1)])
def test_identifier_is_read(text: str, number: int) -> None:
    assert positive_int64(text) == number


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0",
        "-1",
        "+1",
        "01",
        " 1",
        "1 ",
        "1\n",
        "1.0",
        "1e1",
        "x",
        "\u0661",
        "1_0",
        "9223372036854775808",
        "9" * 5000,
    ],
)
def test_what_is_no_identifier_is_none(text: str) -> None:
    assert positive_int64(text) is None


# -- Idempotency-Key ---------------------------------------------------------------------------------------------------


def idempotency_key(*values: str) -> str | None:
    return request(headers={"idempotency-key": list(values)}).idempotency_key()


@pytest.mark.parametrize(
    ("value", "key"),
    [
        ("abc", "abc"),
        ('"abc"', "abc"),
        ("!", "!"),
        ("~" * 255, "~" * 255),
        (f'"{"~" * 255}"', "~" * 255),
        ('""a""', '"a"'),
        ('"', '"'),
        ('a"b', 'a"b'),
        ("a,b", "a,b"),
    ],
)
def test_idempotency_key_is_read_bare_or_quoted(value: str, key: str) -> None:
    assert idempotency_key(value) == key


def test_idempotency_key_may_be_absent() -> None:
    assert request().idempotency_key() is None


@pytest.mark.parametrize(
    "values",
    [
        [""],
        ['""'],
        [" "],
        ["a b"],
        ['"a b"'],
        ["a" * 256],
        [f'"{"a" * 256}"'],
        ["\u00e9"],
        ["a\n"],
        ["a\t"],
        ["\x7f"],
        ["a", "a"],
        ["a", "b"],
    ],
)
def test_any_other_idempotency_key_is_refused(values: list[str]) -> None:
    message = r"^Idempotency-Key: must be given once, with 1 to 255 visible ASCII characters\.$"
    with pytest.raises(InvalidRequest, match=message):
        idempotency_key(*values)


# -- headers and URLs --------------------------------------------------------------------------------------------------


def test_header_is_found_whatever_the_case_of_its_name() -> None:
    event = {"multiValueHeaders": {"X-a": ["1", "2"], "x-A": ["3"], "x-b": ["4"]}}

    assert header(event, "X-A") == ["1", "2", "3"]


@pytest.mark.parametrize("event", [{}, {"multiValueHeaders": None}, {"multiValueHeaders": {}}])
def test_event_without_headers_has_none(event: dict[str, Any]) -> None:
    assert header(event, "X-A") == []


@pytest.mark.parametrize("resource", ["/v1/pets", "/v1/pets/{petId}"])
@pytest.mark.parametrize(
    ("forwarded", "domain", "prefix", "expected"),
    [
        (["https", "443"], HOST, "/staging", f"https://{HOST}/staging/v1/pets"),
        (["https", "443"], "api.example.com", "", "https://api.example.com/v1/pets"),
        (["https", "443"], "api.example.com", "/animals", "https://api.example.com/animals/v1/pets"),
        (["https", "8443"], "api.example.com", "", "https://api.example.com:8443/v1/pets"),
        (["https", "80"], "api.example.com", "", "https://api.example.com:80/v1/pets"),
        (["http", "80"], "localhost", "", "http://localhost/v1/pets"),
        (["http", "443"], "localhost", "", "http://localhost:443/v1/pets"),
        (["http", "3000"], "127.0.0.1", "", "http://127.0.0.1:3000/v1/pets"),
        (["http", "3000"], "127.0.0.1:3000", "", "http://127.0.0.1:3000/v1/pets"),
        ([], "api.example.com", "", "https://api.example.com/v1/pets"),
        (["http", "4200"], "[::1]", "", "http://[::1]:4200/v1/pets"),
        (["http", "4200"], "[::1]:4200", "", "http://[::1]:4200/v1/pets"),
        (["https", "81@evil.example"], "api.example.com", "", "https://api.example.com/v1/pets"),
        (["https", "0"], "api.example.com", "", "https://api.example.com/v1/pets"),
        (["https", "65535"], "api.example.com", "", "https://api.example.com:65535/v1/pets"),
        (["https", "65536"], "api.example.com", "", "https://api.example.com/v1/pets"),
        (["https", "\u0661"], "api.example.com", "", "https://api.example.com/v1/pets"),
        (["javascript", "443"], "api.example.com", "", "https://api.example.com/v1/pets"),
        (["HTTP", ""], "api.example.com", "", "https://api.example.com/v1/pets"),
    ],
)
def test_url_of_the_collection_is_the_one_by_which_the_client_came(
    forwarded: list[str], domain: str, prefix: str, expected: str, resource: str
) -> None:
    event = {
        "multiValueHeaders": {
            name: [value] for name, value in zip(["x-forwarded-proto", "X-Forwarded-Port"], forwarded, strict=False)
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


def test_last_of_several_forwarding_headers_counts() -> None:
    event = Call("list_pets").event()
    event["multiValueHeaders"] |= {"X-Forwarded-Proto": ["http", "https"], "X-Forwarded-Port": ["80", "443"]}

    assert collection_url(event) == "https://a1b2c3d4e5.execute-api.eu-central-1.amazonaws.com/staging/v1/pets"


def test_url_carries_the_parameters_that_there_are() -> None:
    url = request("list_pets").collection_url(limit=2, status=None, cursor="a b&c=d")

    assert url == "https://a1b2c3d4e5.execute-api.eu-central-1.amazonaws.com/staging/v1/pets?limit=2&cursor=a+b%26c%3Dd"
