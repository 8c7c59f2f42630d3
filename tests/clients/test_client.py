"""The Python clients, against the service and against servers that fail, stall, lie and flood."""

import asyncio
import gzip
import itertools
import pickle
import time
from collections.abc import Callable
from dataclasses import fields
from email.utils import formatdate
from typing import Any
from unittest.mock import AsyncMock

import animal_store_client as store
import httpx2
import pytest
from animal_store_client.core import Call
from werkzeug import Request, Response

from tests.support import openapi
from tests.support.processes import RunningService
from tests.support.scripted_server import Script, error, hang_up, reply, serve

REX = {"id": 1, "name": "Rex", "categoryId": 3}


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
        leo = client.create("Leo", 1, "sold")
        with pytest.raises(store.InvalidRequestError, match="status"):
            client.create("Leo", 1, status="")
        with pytest.warns(DeprecationWarning, match="5 December 2030"):
            assert client.get(zoe.id) == zoe
        page = next(client.pages(status="sold", page_size=1))
        *_, last = client.pages(status="sold", cursor=page.cursor)
    assert page.pets[0] not in last.pets
    assert (last.pets[-1], last.cursor) == (leo, None)


def test_every_operation_of_the_service_in_asyncio(service: RunningService) -> None:
    async def use() -> None:
        async with store.AsyncClient(service.base_url, service.api_key) as client:
            mia = await client.create("Mia", 1)
            with pytest.warns(DeprecationWarning, match="2030"):
                assert await client.get(mia.id) == mia
            assert mia in [pet async for pet in client.pets(page_size=2)]

    asyncio.run(use())


@pytest.mark.parametrize("kind", [store.Client, store.AsyncClient])
def test_both_clients_have_a_method_for_each_operation(kind: type) -> None:
    for operation in openapi.operations():
        name = operation.id.removesuffix("Pet").replace("listPets", "pages")
        assert hasattr(kind, name), f"clients/python: add {name} to {kind.__name__}."
    ids = [operation.id for operation in openapi.operations()]
    for name in [name for name in vars(kind) if is_deprecated(kind, name)]:
        assert f"{name}Pet" in ids, f"clients/python: remove {kind.__name__}.{name}."


def is_deprecated(kind: type, name: str) -> bool:
    return hasattr(getattr(kind, name), "__deprecated__")


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
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("time.sleep", pauses.append)
    responses = [
        error(503, "down", Retry_After="1"),
        error(429, Retry_After=formatdate(time.time() + 20, usegmt=True)),
        reply(REX, 201),
    ]

    with serve(lambda _, number: responses[number - 1]) as server:
        store.Client(server.base_url, "key").create("Rex", 3)

    keys = {request.headers["Idempotency-Key"] for request in server.received}
    assert len(keys) == 1
    assert pauses == [1, pytest.approx(20, abs=5)]
    assert "503 down: Sorry.; attempt 2 of 6 in 1.0 s" in caplog.text


@both
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
    listed_by: Any, script: Script, kind: type[Exception], requests: int
) -> None:
    error, received = failure(script, listed_by, attempts=2)
    assert (type(error), received) == (kind, requests)


@both
@pytest.mark.parametrize(
    "script",
    [
        always(b"[" * 10**5),
        always(b"9" * 10**5),
        always(b"\xff\xfe"),
        always({}),
        always([{**REX, "id": True}]),
        always(gzip.compress(b"[]"), Content_Encoding="gzip"),
        lambda *_: reply(itertools.repeat(b" " * 2**16)),  # without an end
    ],
)
def test_what_is_not_the_api_is_refused(listed_by: Any, script: Script) -> None:
    error, received = failure(script, listed_by)
    assert (type(error), received) == (store.InvalidResponseError, 1)


@pytest.mark.parametrize(
    ("target", "requests"),
    [
        ("http://127.0.0.2:{port}/v1/pets?cursor=x", 1),
        ("//127.0.0.1:9/v1/pets?cursor=x", 1),
        ("https://127.0.0.1:{port}/v1/pets?cursor=x", 1),
        ("//me@127.0.0.1:{port}/v1/pets?cursor=x", 1),
        ("http://[", 1),
        ("/v1/pets", 1),
        ("/v1/pets?cursor=x", 2),
    ],
)
def test_a_list_leads_nowhere_else_and_not_in_a_circle(
    target: str, requests: int
) -> None:
    def script(request: Request, number: int) -> Response:
        url = target.format(port=request.environ["SERVER_PORT"])
        return reply([], Link=f'<{url}>; rel="next"') if number < 9 else error(400)

    refused, received = failure(script)
    assert (type(refused), received) == (store.InvalidResponseError, requests)


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
    """Return a script that sends a head, and then the same bytes again and again."""

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
    ("script", "limits"),
    [
        (
            dripping(b"HTTP/1.1 200 OK\r\n", b"X: x\r\n"),
            {"timeout_s": 0.2, "attempts": 1},
        ),
        (dripping(b"", b"HTTP/1.1 100 Continue\r\n\r\n"), {"deadline_s": 0.2}),
        (always({}, 503, Retry_After="9"), {"deadline_s": 6}),
    ],
)
def test_a_call_ends_in_time(
    listed_by: Any, script: Script, limits: dict[str, Any]
) -> None:
    start = time.monotonic()
    failure(script, listed_by, **limits)
    assert time.monotonic() - start < 5


def test_a_cancelled_creation_sends_nothing_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cancelled = AsyncMock(side_effect=asyncio.CancelledError)
    monkeypatch.setattr("asyncio.sleep", cancelled)  # the pause before the next attempt

    with serve(always({}, 503)) as server:
        creation = store.AsyncClient(server.base_url, "key").create("Rex", 3)
        with pytest.raises(asyncio.CancelledError):
            asyncio.run(creation)

    assert len(server.received) == 1


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, store.InvalidRequestError),
        (401, store.AuthenticationError),
        (404, store.NotFoundError),
        (415, store.InvalidRequestError),
        (422, store.IdempotencyKeyReusedError),
        (429, store.TooManyRequestsError),
        (503, store.ServerError),
    ],
)
def test_an_error_says_the_same_in_another_process_and_is_safe_to_print(
    status: int, kind: type[store.ApiError]
) -> None:
    script = always(
        {"code": "\x1b[2J", "message": "Sorry."}, status, x_amzn_RequestId="42"
    )
    with serve(script) as server, pytest.raises(kind) as raised:
        store.Client(server.base_url, "key", attempts=1).create("Rex", 3)

    copied = pickle.loads(pickle.dumps(raised.value))  # noqa: S301
    assert (copied.status, copied.code, copied.request_id) == (status, "\x1b[2J", "42")
    assert copied.idempotency_key == server.received[0].headers["Idempotency-Key"]
    assert str(copied) == rf"{status} \x1b[2J: Sorry. (request 42)"


def test_a_redirect_is_not_followed_and_says_where_it_pointed() -> None:
    script = always(b"", 302, Location="http://127.0.0.2:9/v1/pets")
    with httpx2.Client(follow_redirects=True) as http:
        error, _ = failure(script, http_client=http)
    assert "302 : a redirect to http://127.0.0.2:9/v1/pets" in str(error)


def test_a_deletion_returns_none_and_takes_404_for_done_once_it_may_be() -> None:
    client = store.Client("https://x/v1", "key")
    deletion = Call(client, "DELETE", client._pets, lambda _, body: body)
    assert deletion.result(httpx2.Response(204), b"") is None
    with pytest.raises(store.NotFoundError):
        deletion.result(httpx2.Response(404), b"")
    deletion.pause_s(store.NoResponseError("lost"))
    assert deletion.result(httpx2.Response(404), b"") is None


def test_a_forked_process_opens_connections_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client = store.Client("https://x/v1", "key")
    inherited = client._connections()
    assert client._connections() is inherited

    monkeypatch.setattr("os.getpid", lambda: 0)  # as in another process

    assert client._connections() is not inherited


def test_an_http_client_is_used_in_one_process_and_left_open() -> None:
    with httpx2.Client() as http:
        client = store.Client("https://x/v1", "key", http_client=http)
        assert client._connections() is http
        client.close()
        assert not http.is_closed
        with pytest.raises(RuntimeError, match="another process or event loop"):
            client._connections("a loop")


@pytest.mark.parametrize(
    ("base_url", "key", "message"),
    [
        ("animals.example/v1", "key", "base URL"),
        ("https://x", "key", "base URL"),
        ("https://me@x/v1", "key", "base URL"),
        ("https://x?a=/v1", "key", "base URL"),
        ("http://10.0.0.1/v1", "key", "use https"),
        ("https://x/v1", "", "API key"),
        ("https://x/v1", "key\n", "API key"),
    ],
)
def test_a_wrong_setup_is_refused(base_url: str, key: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        store.Client(base_url, key)
