"""The Python clients, against the service and against servers that fail, stall, lie and flood."""

import asyncio
import gzip
import inspect
import itertools
import pickle
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import fields
from email.utils import formatdate
from typing import Any

import animal_store_client as store
import httpx
import pytest
from animal_store_client.core import Call
from werkzeug import Request, Response

from tests.support import openapi
from tests.support.processes import RunningService
from tests.support.scripted_server import Script, error, hang_up, reply, serve

REX = {"id": 1, "name": "Rex", "categoryId": 3}
CODE = "\x1b[2J\u009b\u202e"
STATUSES = {
    status
    for each in openapi.operations()
    for status in each.responses
    if status >= 400
}
FORKING = """
import os, sys
from animal_store_client import Client

def wrong_answers(process):
    names = [f"{process}-{number}" for number in range(20)]
    return [name for name in names if client.create(name, 1).name != name]

client = Client(sys.argv[1], sys.argv[2])
client.create("parent", 1)
for process in "ABCD":
    if os.fork() == 0:
        os._exit(bool(wrong_answers(process)))
sys.exit(any(os.wait()[1] for _ in "ABCD"))
"""


@pytest.fixture(autouse=True)
def _no_random_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("random.random", float)


def listed(base_url: str, **limits: Any) -> list[store.Pet]:
    """Return the animals that `Client` lists."""
    with store.Client(base_url, "key", **limits) as client:
        return list(client.pets())


def listed_in_asyncio(base_url: str, **limits: Any) -> list[store.Pet]:
    """Return the animals that `AsyncClient` lists."""

    async def read() -> list[store.Pet]:
        async with store.AsyncClient(base_url, "key", **limits) as client:
            return [pet async for pet in client.pets()]

    return asyncio.run(read())


both = pytest.mark.parametrize("listed_by", [listed, listed_in_asyncio])


def failure(
    script: Script, listed_by: Callable[..., Any] = listed, **limits: Any
) -> tuple[Any, int]:
    """Return the error that a script leads to, and the number of its requests."""
    with serve(script) as server, pytest.raises(store.AnimalStoreError) as raised:
        listed_by(server.base_url, **limits)
    return raised.value, len(server.received)


def always(body: Any, status: int = 200, **headers: str) -> Script:
    """Return a script that always answers the same."""
    return lambda *_: reply(body, status, **headers)


def test_every_operation_of_the_service(service: RunningService) -> None:
    with store.Client(service.base_url, service.api_key) as client:
        zoe = client.create("Zoë", 2**53 + 1, "sold")
        assert zoe == store.Pet(zoe.id, "Zoë", 2**53 + 1, "sold")
        twin = client.create(
            zoe.name, zoe.category_id, zoe.status, idempotency_key="zoe"
        )
        assert client.create("Zoë", 2**53 + 1, "sold", idempotency_key="zoe").replayed
        with pytest.raises(store.IdempotencyKeyReusedError):
            client.create("Leo", 1, idempotency_key="zoe")
        with pytest.raises(store.InvalidRequestError, match="status"):
            client.create("Leo", 1, status="")
        with pytest.warns(DeprecationWarning, match="5 December 2030"):
            assert client.get(twin.id) == twin
        page = next(client.pages(status="sold", page_size=1))
        *_, last = client.pages(status="sold", cursor=page.cursor)
    assert page.pets[0] not in last.pets
    assert (last.pets[-1], last.cursor) == (twin, None)


def test_every_operation_of_the_service_in_asyncio(service: RunningService) -> None:
    async def use() -> None:
        async with store.AsyncClient(service.base_url, service.api_key) as client:
            mia, leo = await asyncio.gather(
                client.create("Mia", 1), client.create("Leo", 1)
            )
            with pytest.warns(DeprecationWarning, match="2030"):
                assert await client.get(mia.id) == mia
            assert leo in [pet async for pet in client.pets(page_size=2)]

    asyncio.run(use())


@pytest.mark.parametrize("method", ["pages", "pets", "create", "get", "close"])
def test_both_clients_have_the_same_methods(method: str) -> None:
    synchronous = inspect.signature(getattr(store.Client, method))
    asynchronous = inspect.signature(getattr(store.AsyncClient, method))
    assert synchronous.parameters == asynchronous.parameters


def test_both_clients_have_a_method_for_each_operation() -> None:
    for operation in openapi.operations():
        name = operation.id.removesuffix("Pet").replace("listPets", "pages")
        for kind in (store.Client, store.AsyncClient):
            assert hasattr(kind, name), (
                f"clients/python: add {name} to {kind.__name__}."
            )


def test_forked_processes_do_not_share_connections(service: RunningService) -> None:
    arguments = [sys.executable, "-c", FORKING, service.base_url, service.api_key]
    assert subprocess.run(arguments, check=False, timeout=60).returncode == 0


def test_its_pet_has_the_members_of_the_document_and_keeps_newer_ones() -> None:
    newer = {**REX, "status": "lost", "species": "dog"}
    pet = store.Pet.from_json(newer)
    assert (pet.status, pet.raw) == ("lost", newer)
    names = {
        field.name.replace("category_id", "categoryId") for field in fields(store.Pet)
    }
    assert names - {"raw", "replayed"} == openapi.schema("Pet")["properties"].keys(), (
        "clients/python: Pet has other members than that of openapi.yaml."
    )


def test_a_creation_is_repeated_with_its_key_and_after_retry_after(
    caplog: pytest.LogCaptureFixture,
) -> None:
    times = []

    def script(_: Request, number: int) -> Response:
        times.append(time.monotonic())
        date = formatdate(time.time() + 2, usegmt=True)  # which has no fractions
        failures = {
            1: error(503, "down", Retry_After="1"),
            2: error(429, Retry_After=date),
        }
        return failures.get(number) or reply(REX, 201)

    with serve(script) as server, store.Client(server.base_url, "key") as client:
        client.create("Rex", 3)
        client.create("Rex", 3)
    first, second, third, other = [
        each.headers["Idempotency-Key"] for each in server.received
    ]
    assert first == second == third != other
    assert times[1] - times[0] >= 1
    assert times[2] - times[1] >= 1
    assert "503 down: Sorry.; attempt 2 of 6 in 1.0 s" in caplog.text


@pytest.mark.parametrize(
    ("script", "kind", "requests"),
    [
        (always({}, 418), store.ApiError, 1),
        (always({}, 429, Retry_After="31"), store.TooManyRequestsError, 1),
        (always(b"<html>", 502), store.ServerError, 2),
        (hang_up, store.NoResponseError, 2),
    ],
)
def test_only_what_may_pass_is_repeated(
    script: Script, kind: type[Exception], requests: int
) -> None:
    error, received = failure(script, attempts=2)
    assert (type(error), received) == (kind, requests)


@pytest.mark.parametrize(
    "body",
    [b"[" * 10**5, b"9" * 10**5, b"\xff\xfe", b"<html>", {}, [{**REX, "id": True}]],
)
def test_what_is_not_the_api_is_refused(body: Any) -> None:
    error, received = failure(always(body))
    assert (type(error), received) == (store.InvalidResponseError, 1)


@pytest.mark.parametrize(
    "target",
    [
        "http://127.0.0.2:{port}/v1/pets?cursor=x",
        "//127.0.0.1:9/v1/pets?cursor=x",
        "https://127.0.0.1:{port}/v1/pets?cursor=x",
        "//me@127.0.0.1:{port}/v1/pets?cursor=x",
        "http://[",
        "/v1/pets",
    ],
)
def test_a_list_leads_nowhere_else_and_not_back(target: str) -> None:
    def script(request: Request, _: int) -> Response:
        url = target.format(port=request.environ["SERVER_PORT"])
        return reply([REX], Link=f'<{url}>; rel="next"')

    error, received = failure(script)
    assert (type(error), received) == (store.InvalidResponseError, 1)


def test_a_list_that_goes_round_in_a_circle_is_refused() -> None:
    def script(_: Request, number: int) -> Response:
        return reply([], Link='<?cursor=x>; rel="next"') if number < 9 else error(400)

    refused, received = failure(script)
    assert (type(refused), received) == (store.InvalidResponseError, 2)


@pytest.mark.parametrize(
    "link",
    [
        '<?cursor=2>; rel="next"',
        "</v1/pets?cursor=2>;REL=NEXT",
        '<?cursor=1>; rel=prev, <?cursor=2>; title="a=b, <c>; d"; rel="last next"',
    ],
)
def test_the_next_page_is_found_in_every_form_of_a_link(link: str) -> None:
    def script(_: Request, number: int) -> Response:
        return reply([], Link=link) if number == 1 else reply([REX])

    with serve(script) as server:
        assert listed(server.base_url) == [store.Pet(1, "Rex", 3)]
    assert server.received[1].query_string == b"cursor=2"


def dripping(head: bytes, drop: bytes) -> Script:
    """Return a script that sends a head, and then the same bytes for ten seconds."""

    def script(request: Request, number: int) -> Response:
        connection = request.environ["werkzeug.socket"]
        connection.sendall(head)
        for _ in range(200):
            connection.sendall(drop)
            time.sleep(0.05)
        return hang_up(request, number)

    return script


@both
@pytest.mark.parametrize(
    "limits", [{"timeout_s": 0.8, "attempts": 1}, {"deadline_s": 0.8}]
)
@pytest.mark.parametrize(
    "script",
    [
        dripping(b"", b""),
        dripping(b"HTTP/1.1 200 OK\r\n", b"X-Header: x\r\n"),
        dripping(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        dripping(b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n", b" "),
        always({}, 503, Retry_After="9"),
    ],
)
def test_a_call_ends_in_time(
    listed_by: Any, script: Script, limits: dict[str, Any]
) -> None:
    start = time.monotonic()
    failure(script, listed_by, **limits)
    assert time.monotonic() - start < 5


@both
@pytest.mark.parametrize(
    "script",
    [
        always(gzip.compress(b"[" + b" " * 2**25), Content_Encoding="gzip"),
        lambda *_: reply(itertools.repeat(b" " * 2**16, 1000)),
    ],
)
def test_a_flood_is_not_read(listed_by: Any, script: Script) -> None:
    tracemalloc.start()
    error, _ = failure(script, listed_by)
    assert type(error) is store.InvalidResponseError
    assert tracemalloc.get_traced_memory()[1] < 16 * 2**20
    tracemalloc.stop()


def test_a_cancelled_creation_sends_nothing_more() -> None:
    async def cancel(base_url: str) -> None:
        client = store.AsyncClient(base_url, "key")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(client.create("Rex", 3), 0.5)
        await asyncio.sleep(1)
        await client.close()

    with serve(always({}, 503, Retry_After="1")) as server:
        asyncio.run(cancel(server.base_url))
    assert len(server.received) == 1


@pytest.mark.parametrize("script", [hang_up, always({}, 503), always(b"<html>")])
def test_a_failed_creation_names_its_key_in_another_process_too(script: Script) -> None:
    with serve(script) as server, pytest.raises(store.AnimalStoreError) as raised:
        store.Client(server.base_url, "key", attempts=1).create("Rex", 3)
    copied = pickle.loads(pickle.dumps(raised.value))  # noqa: S301
    assert copied.idempotency_key == server.received[0].headers["Idempotency-Key"]
    assert (type(copied), str(copied)) == (raised.type, str(raised.value))


@pytest.mark.parametrize("status", sorted(STATUSES))
def test_errors_have_a_class_a_code_and_a_request_id_and_are_safe_to_print(
    status: int,
) -> None:
    body = {"code": CODE, "message": "Sorry."}
    error, _ = failure(always(body, status, x_amzn_RequestId="42"), attempts=1)
    copied = pickle.loads(pickle.dumps(error))  # noqa: S301
    assert type(copied) is type(error) is not store.ApiError
    assert (copied.status, copied.code, copied.request_id) == (status, CODE, "42")
    assert str(copied) == rf"{status} \x1b[2J\x9b\u202e: Sorry. (request 42)"


def test_a_redirect_is_not_followed_and_says_where_it_pointed() -> None:
    script = always(b"", 302, Location="http://127.0.0.2:9/v1/pets")
    with httpx.Client(follow_redirects=True) as http:
        error, _ = failure(script, http_client=http)
    assert "302 : a redirect to http://127.0.0.2:9/v1/pets" in str(error)


def test_a_deletion_returns_none_and_takes_404_for_done_once_it_may_be() -> None:
    client = store.Client("https://x/v1", "key")
    deletion = Call(
        client, "DELETE", httpx.URL("https://x/v1/pets/1"), lambda _, body: body
    )
    assert deletion.result(httpx.Response(204), b"") is None
    with pytest.raises(store.NotFoundError):
        deletion.result(httpx.Response(404), b"")
    deletion.pause_s(store.NoResponseError("lost"))
    assert deletion.result(httpx.Response(404), b"") is None


def test_an_http_client_is_used_in_one_process_and_left_open() -> None:
    transport = httpx.MockTransport(lambda _: httpx.Response(200, json=[REX]))
    with httpx.Client(transport=transport) as http:
        client = store.Client("https://animals.example/v1", "key", http_client=http)
        assert list(client.pets()) == [store.Pet(1, "Rex", 3)]
        client.close()
        assert not http.is_closed
        with pytest.raises(RuntimeError, match="another process or event loop"):
            client._connections("a loop")


@pytest.mark.parametrize(
    ("base_url", "key", "message"),
    [
        ("animals.example", "key", "base URL"),
        ("https://me@x/v1", "key", "base URL"),
        ("https://x", "key", "ends with /v1"),
        ("https://x?a=/v1", "key", "base URL"),
        ("http://10.0.0.1/v1", "key", "use https"),
        ("https://x/v1", "", "API key"),
        ("https://x/v1", "key\n", "API key"),
    ],
)
def test_a_wrong_setup_is_refused(base_url: str, key: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        store.Client(base_url, key)
