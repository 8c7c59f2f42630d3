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
from werkzeug import Request, Response

from tests.support import openapi
from tests.support.processes import RunningService
from tests.support.scripted_server import Script, error, hang_up, reply, serve

REX = {"id": 1, "name": "Rex", "categoryId": 3}
BOMB = gzip.compress(b"[" + b" " * 2**25)
CODE = "\x1b[2J\u009b\u202e"
STATUSES = sorted(
    {status for each in openapi.operations() for status in each.statuses if status >= 400}
)


def test_every_operation_of_the_service(service: RunningService) -> None:
    with store.Client(service.base_url, service.api_key) as client:
        made = [client.create(f"Zoë {number}", 2**53 + number, "sold") for number in range(3)]
        again = [client.create("Mia", 1, idempotency_key="mia") for _ in range(2)]
        with pytest.warns(DeprecationWarning, match="5 December 2030"):
            assert (
                client.get(made[0].id) == made[0] == store.Pet(made[0].id, "Zoë 0", 2**53, "sold")
            )
        with pytest.raises(store.IdempotencyKeyReusedError):
            client.create("Leo", 1, idempotency_key="mia")
        with pytest.raises(store.InvalidRequestError, match="name: must have at least 1 character"):
            client.create("", 1)
        assert [pet for pet in client.pets(status="sold", page_size=2) if pet in made] == made
    assert [pet.replayed for pet in again] == [False, True]


def test_its_pet_has_the_members_of_the_document_and_keeps_newer_ones() -> None:
    fields = {
        field.name.replace("category_id", "categoryId") for field in dataclasses.fields(store.Pet)
    }
    pet = store.Pet.from_json(newer := {**REX, "status": "lost", "color": "red"})
    assert (pet.status, pet.raw) == ("lost", newer)
    assert fields - {"raw", "replayed"} == openapi.schema("Pet")["properties"].keys()


def test_a_creation_is_repeated_with_its_own_key_and_not_before_retry_after() -> None:
    times = []

    def script(request: Request, number: int) -> Response:
        times.append(time.monotonic())
        if number == 2:  # a date has no fractions
            return error(429, Retry_After=formatdate(time.time() + 2, usegmt=True))
        if number == 3:
            return hang_up(request, number)
        return error(503, Retry_After="1") if number == 1 else reply(REX, 201)

    with serve(script) as server, store.Client(server.base_url, "key") as client:
        client.create("Rex", 3)
        client.create("Rex", 3)
    first, *retries, other = (request.headers["Idempotency-Key"] for request in server.received)
    assert retries == [first] * 3
    assert other != first
    assert [1 <= later - earlier < 10 for earlier, later in itertools.pairwise(times[:3])] == [
        True,
        True,
    ]


def always(body: Any, status: int = 200, **headers: str) -> Script:
    return lambda *_: reply(body, status, **headers)


def waiting(seconds: float) -> Script:
    return lambda *_: reply(b" " for _ in range(100) if not threading.Event().wait(seconds))


def linking(link: str, *page: Any) -> Script:
    header = f'<{link}>; rel="next"'
    return lambda request, number: reply(
        page, Link=header.format(host=request.host) if number < 9 else ""
    )


ELSEWHERE = [
    "http://127.0.0.2:9/v1",
    "//127.0.0.1:9/v1/pets",
    "https://{host}/v1/pets",
    "//me@{host}/",
    "http://[",
]
NOT_THE_API = [
    b"[" * 10**5,
    b"9" * 10**5,
    b"\xff\xfe",
    b"<html>",
    {"pets": []},
    [{"id": "1", "name": "Rex"}],
]


@pytest.mark.parametrize(
    ("script", "kind", "requests"),
    [
        (always({}, 418), store.ApiError, 1),
        (always(b"", 302, Location="http://127.0.0.2:9/v1/pets"), store.ApiError, 1),
        (always({}, 429, Retry_After="31"), store.TooManyRequestsError, 1),
        (always({}, 503, Retry_After="0"), store.ServerError, 2),
        (always(b"<html>", 502), store.ServerError, 2),
        (hang_up, store.NoResponseError, 2),
        (waiting(20), store.NoResponseError, 2),
        (waiting(0.1), store.NoResponseError, 2),
        (linking("/v1/pets?cursor=x", REX), store.InvalidResponseError, 2),
        *[(linking(link, REX), store.InvalidResponseError, 1) for link in ELSEWHERE],
        *[
            (linking("/v1/pets", *page), store.InvalidResponseError, 1)
            for page in ([], [{**REX, "id": 2}, REX])
        ],
        *[(always(body), store.InvalidResponseError, 1) for body in NOT_THE_API],
        (always(BOMB, Content_Encoding="gzip"), store.InvalidResponseError, 1),
        (always(itertools.repeat(b" " * 2**16, 1000)), store.InvalidResponseError, 1),
    ],
)
def test_only_what_may_pass_is_repeated(
    script: Script, kind: type[Exception], requests: int
) -> None:
    tracemalloc.start()
    with serve(script) as server, pytest.raises(kind) as raised:
        list(store.Client(server.base_url, "key", attempts=2, timeout_s=0.4).pets())
    assert tracemalloc.get_traced_memory()[1] < 16 * 2**20
    tracemalloc.stop()
    assert (raised.type, len(server.received)) == (kind, requests)


@pytest.mark.parametrize("status", STATUSES)
def test_errors_have_a_class_a_code_and_a_request_id_and_are_safe_to_print(status: int) -> None:
    script = always({"code": CODE, "message": "Sorry."}, status, x_amzn_RequestId="42")
    with serve(script) as server, pytest.raises(store.ApiError) as raised:
        list(store.Client(server.base_url, "key", attempts=1).pets())
    assert raised.type is not store.ApiError
    assert (raised.value.status, raised.value.code, raised.value.request_id) == (status, CODE, "42")
    assert str(raised.value) == rf"{status} \x1b[2J\x9b\u202e: Sorry. (request 42)"


def test_a_wrong_setup_is_told_at_once_and_http_is_for_this_machine_alone() -> None:
    for url in (
        "animals.example",
        "https://me@x/v1",
        "https://x?a=1",
        "http://x/v1",
        "http://10.0.0.1",
    ):
        with pytest.raises(ValueError, match="base URL"):
            store.Client(url, "key")
    for key in ("", "key\n"):
        with pytest.raises(ValueError, match="API key"):
            store.Client("https://x/v1", key)
    for origin in ("http://localhost:1", "http://127.0.0.1", "http://[::1]:1"):
        store.Client(f"{origin}/v1", "key").close()
