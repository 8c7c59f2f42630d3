"""The Python client, against the service and against servers that fail, stall, lie and flood."""

import dataclasses
import gzip
import itertools
import threading
import time
import tracemalloc
from email.utils import formatdate
from typing import Any

import animal_store_client as store
import pytest
from animal_store_client import Client
from werkzeug import Request, Response

from tests import openapi
from tests.clients.scripted_server import Script, error, hang_up, reply, serve
from tests.processes import RunningService

REX = {"id": 1, "name": "Rex", "categoryId": 3}
BOMB = gzip.compress(b"[" + b" " * 2**25)
STATUSES = sorted({status for each in openapi.operations() for status in each.statuses if status >= 400})


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


def test_its_pet_has_the_members_of_the_document_and_keeps_newer_ones() -> None:
    fields = {field.name.replace("category_id", "categoryId") for field in dataclasses.fields(store.Pet)}
    newer = {**REX, "status": "lost", "color": "red"}

    assert fields - {"raw", "replayed"} == openapi.schema("Pet")["properties"].keys()
    assert [(pet.status, pet.raw) for pet in pets_from(reply([newer]))] == [("lost", newer)]


def test_a_creation_is_repeated_with_its_own_key_and_not_before_retry_after() -> None:
    times = []

    def script(request: Request, number: int) -> Response:
        times.append(time.monotonic())
        if number == 2:  # a date has no fractions
            return error(429, Retry_After=formatdate(time.time() + 2, usegmt=True))
        if number == 3:
            return hang_up(request, number)
        return error(503, Retry_After="1") if number == 1 else reply(REX, 201)

    with serve(script) as server, Client(server.base_url, "key") as client:
        client.create("Rex", 3)
        client.create("Rex", 3)

    keys = [request.headers["Idempotency-Key"] for request in server.received]
    assert keys == [keys[0]] * 4 + [keys[4]]
    assert keys[0] != keys[4]
    assert [1 <= later - earlier < 10 for earlier, later in itertools.pairwise(times[:3])] == [True, True]


def waiting(seconds: float) -> Script:
    return lambda *_: reply(b" " for _ in range(100) if not threading.Event().wait(seconds))


def linking(link: str, *page: Any) -> Script:
    return lambda request, number: reply(
        page, Link=f'<{link.format(host=request.host)}>; rel="next"' if number < 9 else ""
    )


# What a server does, the error, and how often it is asked when there are two attempts.
FAILURES: dict[str, tuple[Script, type[Exception], int]] = {
    "418": (lambda *_: error(418), store.ApiError, 1),
    "redirect": (lambda *_: reply(b"", 302, Location="http://127.0.0.2:9/v1/pets"), store.ApiError, 1),
    "429 for long": (lambda *_: error(429, Retry_After="31"), store.TooManyRequestsError, 1),
    "503": (lambda *_: error(503, Retry_After="0"), store.ServerError, 2),
    "502": (lambda *_: reply(b"<html>", 502), store.ServerError, 2),
    "hang up": (hang_up, store.NoResponseError, 2),
    "stall": (waiting(20), store.NoResponseError, 2),
    "trickle": (waiting(0.1), store.NoResponseError, 2),
    "other host": (linking("http://127.0.0.2:9/v1/pets", REX), store.InvalidResponseError, 1),
    "other port": (linking("//127.0.0.1:9/v1/pets", REX), store.InvalidResponseError, 1),
    "other scheme": (linking("https://{host}/v1/pets", REX), store.InvalidResponseError, 1),
    "other user": (linking("//me@{host}/v1/pets", REX), store.InvalidResponseError, 1),
    "no URL": (linking("http://[", REX), store.InvalidResponseError, 1),
    "same page": (linking("/v1/pets?cursor=x", REX), store.InvalidResponseError, 2),
    "empty page": (linking("/v1/pets?cursor=x"), store.InvalidResponseError, 1),
    "wrong order": (linking("/v1/pets?cursor=x", {**REX, "id": 2}, REX), store.InvalidResponseError, 1),
    "gzip bomb": (lambda *_: reply(BOMB, Content_Encoding="gzip"), store.InvalidResponseError, 1),
    "flood": (lambda *_: reply(itertools.repeat(b" " * 2**16, 1000)), store.InvalidResponseError, 1),
    "deep": (lambda *_: reply(b"[" * 10**5), store.InvalidResponseError, 1),
    "not UTF-8": (lambda *_: reply(b"\xff\xfe"), store.InvalidResponseError, 1),
    "no array": (lambda *_: reply({"pets": []}), store.InvalidResponseError, 1),
    "no animal": (lambda *_: reply([{"id": "1", "name": "Rex"}]), store.InvalidResponseError, 1),
}


@pytest.mark.parametrize(("script", "kind", "requests"), FAILURES.values(), ids=FAILURES)
def test_only_what_may_pass_is_repeated(script: Script, kind: type[Exception], requests: int) -> None:
    tracemalloc.start()
    with serve(script) as server, pytest.raises(kind) as raised:
        list(Client(server.base_url, "key", attempts=2, timeout_s=0.4).pets())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert raised.type is kind
    assert len(server.received) == requests
    assert peak < 16 * 2**20


@pytest.mark.parametrize("status", STATUSES)
def test_errors_have_a_class_a_code_and_a_request_id_and_are_safe_to_print(status: int) -> None:
    with pytest.raises(store.ApiError) as raised:
        pets_from(error(status, "\x1b[2J\u009b\u202e", x_amzn_RequestId="42"), attempts=1)

    assert raised.type is not store.ApiError
    assert (raised.value.status, raised.value.code, raised.value.request_id) == (status, "\x1b[2J\u009b\u202e", "42")
    assert str(raised.value) == rf"{status} \x1b[2J\x9b\u202e: Sorry. (request 42)"


@pytest.mark.parametrize(
    ("base_url", "key", "message"),
    [
        *[(url, "key", "not a base URL") for url in ("animals.example", "https://me@x/v1", "https://x/v1?a=1")],
        *[
            (f"http://{host}/v1", "key", "use https://")
            for host in ("animals.example", "127.0.0.1.example", "10.0.0.1")
        ],
        *[("https://x/v1", key, "API key") for key in ("", "key\n")],
    ],
)
def test_a_wrong_setup_is_told_at_once(base_url: str, key: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Client(base_url, key)


def test_the_key_is_sent_without_encryption_on_this_machine_alone() -> None:
    for origin in ("http://localhost:1", "http://127.0.0.1", "http://[::1]:1"):
        Client(f"{origin}/v1", "key").close()
