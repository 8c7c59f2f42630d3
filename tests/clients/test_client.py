"""The Python client, against the service and against servers that fail, stall, lie and flood."""

import dataclasses
import gzip
import itertools
import re
import time
import tracemalloc
from collections.abc import Iterator
from email.utils import formatdate
from typing import Any

import animal_store_client as store
import pytest
from animal_store_client import Client
from werkzeug import Request, Response

from tests import openapi
from tests.clients.scripted_server import Script, error, reply, reset, serve
from tests.processes import RunningService
from tools import ROOT

REX = {"id": 1, "name": "Rex", "categoryId": 3}
STATUSES = sorted(set(re.findall(r"^ +'([45]\d\d)':$", (ROOT / "openapi.yaml").read_text(), re.MULTILINE)))


def pets_from(response: Response, **options: Any) -> list[store.Pet]:
    """List what a server that always answers the same claims to have."""
    with serve(lambda *_: response) as server, Client(server.base_url, "key", **options) as client:
        return list(client.pets())


def test_every_operation_of_the_service(service: RunningService) -> None:
    with Client(service.base_url, service.api_key) as client:
        made = [client.create(f"Zoë {number}", 2**53 + number, "sold") for number in range(3)]
        again = [client.create("Mia", 1, idempotency_key="mia") for _ in range(2)]
        listed = list(client.pets(status="sold", page_size=2))
        with pytest.warns(DeprecationWarning, match="5 December 2030"):
            read = client.get(made[0].id)
        with pytest.raises(store.IdempotencyKeyReusedError):
            client.create("Leo", 1, idempotency_key="mia")
        with pytest.raises(store.InvalidRequestError, match="name: must have at least 1 character"):
            client.create("", 1)

    assert [pet for pet in listed if pet in made] == made
    assert read == made[0] == store.Pet(made[0].id, "Zoë 0", 2**53, "sold")
    assert [pet.replayed for pet in again] == [False, True]


def test_its_pet_has_the_members_of_the_document() -> None:
    names = {"category_id": "categoryId"}
    fields = {names.get(field.name, field.name) for field in dataclasses.fields(store.Pet)} - {"raw", "replayed"}

    assert fields == openapi.schema("Pet")["properties"].keys()


def test_a_creation_is_repeated_with_its_own_key() -> None:
    def script(request: Request, number: int) -> Response:
        if number < 3:
            return error([503, 429][number - 1], Retry_After="0")
        return reset(request, number) if number == 3 else reply(REX, 201)

    with serve(script) as server, Client(server.base_url, "key") as client:
        client.create("Rex", 3)
        client.create("Rex", 3)

    keys = [request.headers["Idempotency-Key"] for request in server.received]
    assert keys == [keys[0]] * 4 + [keys[4]]
    assert keys[0] != keys[4]


@pytest.mark.parametrize("in_seconds", [True, False], ids=["seconds", "date"])
def test_retry_after_is_waited_for(*, in_seconds: bool) -> None:
    start = time.monotonic()
    retry_after = "2" if in_seconds else formatdate(time.time() + 3, usegmt=True)  # a date has no fractions

    def script(_: Request, number: int) -> Response:
        return error(429, Retry_After=retry_after) if number == 1 else reply([REX])

    with serve(script) as server, Client(server.base_url, "key") as client:
        assert len(list(client.pets())) == 1

    assert 2 <= time.monotonic() - start < 10


def trickle() -> Iterator[bytes]:
    for _ in range(100):
        time.sleep(0.1)
        yield b" "


def stall(*_: Any) -> Response:
    time.sleep(20)
    return reply([])


@pytest.mark.parametrize(
    ("script", "kind", "requests"),
    [
        (lambda *_: error(400), store.InvalidRequestError, 1),
        (lambda *_: error(401), store.AuthenticationError, 1),
        (lambda *_: error(418), store.ApiError, 1),
        (lambda *_: reply(b"", 302, Location="http://127.0.0.2:9/v1/pets"), store.ApiError, 1),
        (lambda *_: error(429, Retry_After="31"), store.TooManyRequestsError, 1),
        (lambda *_: error(503, Retry_After="0"), store.ServerError, 2),
        (lambda *_: reply(b"<html>", 502), store.ServerError, 2),
        (reset, store.NoResponseError, 2),
        (stall, store.NoResponseError, 2),
        (lambda *_: reply(trickle()), store.NoResponseError, 2),
    ],
    ids=["400", "401", "418", "redirect", "429 for long", "503", "502", "reset", "stall", "trickle"],
)
def test_only_what_may_pass_is_repeated(script: Script, kind: type[Exception], requests: int) -> None:
    start = time.monotonic()
    with serve(script) as server, pytest.raises(kind) as raised:
        list(Client(server.base_url, "key", attempts=2, timeout_s=0.4).pets())

    assert raised.type is kind
    assert len(server.received) == requests
    assert time.monotonic() - start < 10


@pytest.mark.parametrize("status", [int(status) for status in STATUSES])
def test_errors_have_a_class_a_code_and_a_request_id_and_are_safe_to_print(status: int) -> None:
    with pytest.raises(store.ApiError) as raised:
        pets_from(error(status, "\x1b[2J\u009b\u202e", x_amzn_RequestId="42"), attempts=1)

    assert raised.type is not store.ApiError
    assert (raised.value.status, raised.value.code, raised.value.request_id) == (status, "\x1b[2J\u009b\u202e", "42")
    assert str(raised.value) == rf"{status} \x1b[2J\x9b\u202e: Sorry. (request 42)"


@pytest.mark.parametrize(
    "link",
    ["http://127.0.0.2:9/v1/pets", "//127.0.0.1:9/v1/pets", "https:/v1/pets", "http://me@{host}/v1/pets", "http://["],
)
def test_the_key_goes_to_no_other_origin(link: str) -> None:
    def script(request: Request, _: int) -> Response:
        return reply([REX], Link=f'<{link.format(host=request.host)}>; rel="next"')

    with serve(script) as server, pytest.raises(store.InvalidResponseError, match=r"another origin|not a URL"):
        list(Client(server.base_url, "key").pets())

    assert len(server.received) == 1


@pytest.mark.parametrize("page", [[], [REX], [REX, REX], [{**REX, "id": 2}, REX]])
def test_pages_without_progress_end(page: list[Any]) -> None:
    def script(_: Request, number: int) -> Response:
        return reply(page, Link='</v1/pets?cursor=x>; rel="next"' if number < 9 else "")

    with serve(script) as server, pytest.raises(store.InvalidResponseError, match="does not advance"):
        list(Client(server.base_url, "key").pets())


@pytest.mark.parametrize(
    "response",
    [
        reply(gzip.compress(b"[" + b" " * 2**25), Content_Encoding="gzip"),
        reply(itertools.repeat(b" " * 2**16, 1000)),
        *map(reply, [b"[" * 10**5, b"9" * 10**5, b"\xff\xfe", b"<html>", {"pets": []}, [{"id": "1", "name": "Rex"}]]),
    ],
    ids=["gzip bomb", "long", "deep", "long number", "not UTF-8", "HTML", "no array", "no animal"],
)
def test_what_the_api_would_not_say_is_refused_in_little_memory(response: Response) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(store.InvalidResponseError):
            pets_from(response)
        assert tracemalloc.get_traced_memory()[1] < 16 * 2**20
    finally:
        tracemalloc.stop()


def test_a_newer_service_is_tolerated() -> None:
    newer = {**REX, "status": "lost", "color": "red"}

    (pet,) = pets_from(reply([newer]))

    assert (pet.status, pet.raw) == ("lost", newer)


@pytest.mark.parametrize(("base_url", "key"), [("animals.example", "key"), ("http://x/v1", "key\n"), ("http://x", "")])
def test_a_wrong_setup_is_told_at_once(base_url: str, key: str) -> None:
    with pytest.raises(ValueError, match=r"base URL|API key"):
        Client(base_url, key)
