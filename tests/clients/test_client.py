"""The Python client, against the service and against servers that fail, stall, lie and flood."""

import dataclasses
import gzip
import itertools
import time
import tracemalloc
from collections.abc import Iterator
from email.utils import formatdate
from typing import Any

import animal_store_client as store
import pytest
from animal_store_client import Client

from tests import openapi
from tests.clients.scripted_server import RESET, Received, Reply, error, serve
from tests.processes import RunningService

REX = {"id": 1, "name": "Rex", "categoryId": 3}
LATER = {"Retry_After": "0"}


def pets_from(reply: Reply, **options: Any) -> list[store.Pet]:
    """List what a server that always gives the same reply claims to have."""
    with serve(lambda _: reply) as server, Client(server.base_url, "key", **options) as client:
        return list(itertools.islice(client.pets(), 1000))


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
        with pytest.raises(store.NotFoundError), pytest.warns(DeprecationWarning, match="pets"):
            client.get(2**63 - 1)

    assert [pet for pet in listed if pet in made] == made
    assert read == made[0] == store.Pet(made[0].id, "Zoë 0", 2**53, "sold")
    assert [pet.replayed for pet in again] == [False, True]


def test_its_pet_has_the_members_of_the_document() -> None:
    names = {"category_id": "categoryId"}
    fields = {names.get(field.name, field.name) for field in dataclasses.fields(store.Pet)} - {"raw", "replayed"}

    assert fields == openapi.schema("Pet")["properties"].keys()


def test_a_creation_is_repeated_with_its_own_key() -> None:
    replies = iter([error(503, **LATER), error(429, **LATER), RESET, Reply(201, REX), Reply(201, REX)])
    with serve(lambda _: next(replies)) as server, Client(server.base_url, "key") as client:
        client.create("Rex", 3)
        client.create("Rex", 3)

    keys = [request.headers["Idempotency-Key"] for request in server.received]
    assert len(keys) == 5
    assert len(set(keys[:4])) == 1
    assert keys[4] != keys[0]


@pytest.mark.parametrize("in_seconds", [True, False], ids=["seconds", "date"])
def test_retry_after_is_waited_for(*, in_seconds: bool) -> None:
    retry_after = "2" if in_seconds else formatdate(time.time() + 3, usegmt=True)  # a date has no fractions
    replies = iter([error(429, Retry_After=retry_after), Reply(200, [REX])])
    start = time.monotonic()
    with serve(lambda _: next(replies)) as server, Client(server.base_url, "key") as client:
        assert len(list(client.pets())) == 1

    assert 2 <= time.monotonic() - start < 10


def trickle() -> Iterator[bytes]:
    for _ in range(100):
        time.sleep(0.1)
        yield b" "


@pytest.mark.parametrize(
    ("reply", "kind", "requests"),
    [
        (error(400, "invalid_request"), store.InvalidRequestError, 1),
        (error(401, "unauthorized"), store.AuthenticationError, 1),
        (error(418), store.ApiError, 1),
        (Reply(302, b"", {"Location": "http://127.0.0.2:9/v1/pets"}), store.ApiError, 1),
        (error(429, "too_many_requests", Retry_After="31"), store.TooManyRequestsError, 1),
        (error(503, "service_unavailable", **LATER), store.ServerError, 2),
        (Reply(502, b"<html>", LATER | {"Retry-After": "0"}), store.ServerError, 2),
        (RESET, store.NoResponseError, 2),
        (Reply(200, [], wait_s=60), store.NoResponseError, 2),
        (Reply(200, trickle()), store.NoResponseError, 2),
    ],
    ids=lambda value: str(getattr(value, "status", "")),
)
def test_only_what_may_pass_is_repeated(reply: Reply, kind: type[Exception], requests: int) -> None:
    start = time.monotonic()
    with serve(lambda _: reply) as server, pytest.raises(kind) as raised:
        list(Client(server.base_url, "key", attempts=2, timeout_s=0.4).pets())

    assert raised.type is kind
    assert len(server.received) == requests
    assert time.monotonic() - start < 10


def test_every_documented_error_has_a_class() -> None:
    statuses = {status for *_, operation in openapi.operations() for status in operation["responses"]}

    for status in sorted(statuses - {"200", "201", "default"}):
        with pytest.raises(store.ApiError) as raised:
            pets_from(error(int(status), "some_code", x_amzn_RequestId="42"), attempts=1)
        assert raised.type is not store.ApiError
        assert (raised.value.status, raised.value.code, raised.value.request_id) == (int(status), "some_code", "42")
        assert str(raised.value) == f"{status} some_code: Sorry. (request 42)"


@pytest.mark.parametrize(
    "link",
    ["http://127.0.0.2:9/v1/pets", "//127.0.0.1:9/v1/pets", "https:/v1/pets", "http://me@{host}/v1/pets", "http://["],
)
def test_the_key_goes_to_no_other_origin(link: str) -> None:
    def reply(request: Received) -> Reply:
        return Reply(200, [REX], {"Link": f'<{link.format(host=request.headers["Host"])}>; rel="next"'})

    with serve(reply) as server, pytest.raises(store.InvalidResponseError, match=r"another origin|not a URL"):
        list(Client(server.base_url, "key").pets())

    assert len(server.received) == 1


@pytest.mark.parametrize("page", [[], [REX], [REX, REX], [{**REX, "id": 2}, REX]], ids=len)
def test_pages_without_progress_end(page: list[Any]) -> None:
    link = {"Link": '</v1/pets?cursor=x>; rel="next"'}

    def reply(request: Received) -> Reply:
        return Reply(200, page, link if request.number < 9 else {})

    with serve(reply) as server, pytest.raises(store.InvalidResponseError, match="does not advance"):
        list(Client(server.base_url, "key").pets())


@pytest.mark.parametrize(
    "reply",
    [
        Reply(200, gzip.compress(b"[" + b" " * 10**8), {"Content-Encoding": "gzip"}),
        Reply(200, itertools.repeat(b" " * 2**16, 1000)),
        Reply(200, b"[" * 10**5),
        Reply(200, b"9" * 10**5),
        Reply(200, b"\xff\xfe"),
        Reply(200, b"<html>"),
        Reply(200, {"pets": []}),
        Reply(200, [{"id": "1", "name": "Rex"}]),
    ],
    ids=["gzip bomb", "long", "deep", "long number", "not UTF-8", "HTML", "no array", "no animal"],
)
def test_what_the_api_would_not_say_is_refused_in_little_memory(reply: Reply) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(store.InvalidResponseError):
            pets_from(reply)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert peak < 16 * 2**20


def test_a_newer_service_is_tolerated() -> None:
    newer = {**REX, "status": "lost", "color": "red"}

    (pet,) = pets_from(Reply(200, [newer]))

    assert pet.status == "lost"
    assert pet.raw == newer


def test_errors_are_safe_to_print() -> None:
    with pytest.raises(store.ApiError) as raised:
        pets_from(Reply(400, {"code": "\x1b[2J", "message": "\u009b31m\u202e"}), attempts=1)

    assert str(raised.value) == r"400 \x1b[2J: \x9b31m\u202e"


@pytest.mark.parametrize(
    ("base_url", "key"), [("animals.example/v1", "key"), ("http://x/v1", "key\n"), ("http://x", "")]
)
def test_a_wrong_setup_is_told_at_once(base_url: str, key: str) -> None:
    with pytest.raises(ValueError, match=r"base URL|API key"):
        Client(base_url, key)
