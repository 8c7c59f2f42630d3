"""The Python clients, against the service and against servers that fail, stall, lie and flood."""

import asyncio
import gc
import gzip
import itertools
import logging
import pickle
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from email.utils import formatdate
from enum import Enum
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock

import animal_store_client as store
import httpx2
import pytest
import trustme
from animal_store_client.core import Call
from werkzeug import Request, Response

from tests.support import openapi
from tests.support.processes import RunningService
from tests.support.scripted_server import Script, error, hang_up, reply, serve

REX = {"id": 1, "name": "Rex", "categoryId": 3}


class Status(str, Enum):  # noqa: UP042
    """As programs before Python 3.11 wrote an enumeration of strings."""

    SOLD = "sold"


@pytest.fixture(autouse=True)
def _no_random_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("random.random", float)


def listed(base_url: str, **limits: Any) -> list[store.Pet]:
    """Return the animals that `Client` lists."""
    with store.Client(base_url, "key", **limits) as client:
        return list(client.pets(status="sold", page_size=2))


def listed_in_asyncio(base_url: str, **limits: Any) -> list[store.Pet]:
    """Return the animals that `AsyncClient` lists."""

    async def read() -> list[store.Pet]:
        async with store.AsyncClient(base_url, "key", **limits) as client:
            return [pet async for pet in client.pets(status="sold", page_size=2)]

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
        key = zoe.request_id  # a text that no other creation has
        leo = client.create("Leo", 1, Status.SOLD, idempotency_key=key)
        again = client.create("Leo", 1, "sold", idempotency_key=key)
        assert (again, again.replayed, leo.replayed) == (leo, True, False)
        assert hash(again) == hash(leo)
        assert zoe.request_id != leo.request_id
        with pytest.raises(store.InvalidRequestError, match="status"):
            client.create("Leo", 1, status="")
        with pytest.warns(DeprecationWarning, match="5 December 2030"):
            assert client.get(zoe.id) == zoe
        page = next(client.pages(status=Status.SOLD, page_size=1))
        assert page.request_id
        *_, last = client.pages(status="sold", cursor=page.cursor)
        assert zoe in client.pets()
    assert page.pets[0] not in last.pets
    assert (last.pets[-1], last.cursor) == (leo, None)


def test_every_operation_of_the_service_in_asyncio(service: RunningService) -> None:
    async def use() -> None:
        async with store.AsyncClient(service.base_url, service.api_key) as client:
            mia = await client.create("Mia", 1, "sold", idempotency_key="mia")
            assert await client.create("Mia", 1, "sold", idempotency_key="mia") == mia
            with pytest.warns(DeprecationWarning, match="5 December 2030"):
                assert await client.get(mia.id) == mia
            assert mia in [pet async for pet in client.pets(status="sold")]
            await client.create("Mia", 1)
            first = await anext(client.pages(page_size=1))
            second = await anext(client.pages(page_size=1, cursor=first.cursor))
            assert second.pets != first.pets

    asyncio.run(use())


@pytest.mark.parametrize("kind", [store.Client, store.AsyncClient])
def test_both_clients_have_a_method_for_each_operation(kind: type) -> None:
    methods = {name for name in dir(kind) if not name.startswith("_")}
    ids = {operation.id.removesuffix("Pet") for operation in openapi.operations()}
    expected = ids - {"listPets"} | {"pages", "pets", "close", "with_options"}
    assert methods == expected, f"clients/python: {kind.__name__}"


def test_its_pet_has_the_members_of_the_document_and_keeps_newer_ones() -> None:
    newer = {**REX, "status": "lost", "species": "dog"}
    pet = store.Pet.from_json(newer)
    assert (pet.status, pet.raw) == ("lost", newer)
    made = store.Pet(1, "Rex", 3)
    assert repr(made).startswith("Pet(id=1, name='Rex', category_id=3, status=None")
    assert (made.raw, made.replayed, made.request_id) == ({}, False, "")
    names = {field.name for field in fields(pet) if field.compare} - {"category_id"}
    document = openapi.schema("Pet")["properties"].keys() - {"categoryId"}
    assert names == document, "clients/python: Pet and openapi.yaml differ"


def test_a_creation_is_repeated_with_its_key_and_after_retry_after(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("time.sleep", pauses.append)
    monkeypatch.setattr("random.random", lambda: 1)
    responses = [
        error(503, "down", Retry_After="1"),
        error(429, Retry_After=formatdate(time.time() + 20, usegmt=True)),
        reply(REX, 201),
    ]

    with serve(lambda _, number: responses[number - 1]) as server:
        store.Client(server.base_url, "key").create("Rex", 3)

    keys = {request.headers["Idempotency-Key"] for request in server.received}
    assert len(keys) == 1
    assert "animal-store-client/" in server.received[0].headers["User-Agent"]
    assert pauses == [1.4, pytest.approx(20.8, abs=5)]
    text = "503 down: Sorry.; attempt 2 of 6 in 1.4 s"
    assert ("animal_store_client", logging.WARNING, text) in caplog.record_tuples


@pytest.mark.parametrize(
    ("script", "kind", "requests"),
    [
        (always({}, 418), store.ApiError, 1),
        (always({}, 429, Retry_After="31"), store.TooManyRequestsError, 1),
        (always({}, 429, Retry_After="3" * 101), store.TooManyRequestsError, 2),
        (always({}, 429, Retry_After=formatdate(0)), store.TooManyRequestsError, 2),
        (always(b"<html>", 502), store.ServerError, 2),
        (hang_up, store.NoResponseError, 2),
    ],
)
def test_only_what_may_pass_is_repeated(
    script: Script, kind: type[Exception], requests: int
) -> None:
    error, received = failure(script, attempts=2)
    assert (type(error), received) == (kind, requests)


@both
@pytest.mark.parametrize(
    "script",
    [
        always([], Link="<" * 60_000),
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


@both
@pytest.mark.parametrize(
    "link",
    [
        '<?cursor=2>; rel="next"',
        "</v1/pets?cursor=2>;REL=NEXT",
        '<?cursor=1>; rel=prev, <?cursor=2>; title="a=b, <c>; d"; rel="last next"',
    ],
)
def test_the_next_page_is_found_in_every_form_of_a_link(
    listed_by: Any, link: str
) -> None:
    responses = [reply([], Link=link), reply([REX], Content_Encoding="identity")]

    with serve(lambda _, number: responses[number - 1]) as server:
        assert listed_by(server.base_url) == [store.Pet(1, "Rex", 3)]

    queries = [request.query_string for request in server.received]
    assert queries == [b"limit=2&status=sold", b"cursor=2"]


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
        (
            dripping(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n", b" "),
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


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, store.InvalidRequestError),
        (401, store.AuthenticationError),
        (404, store.NotFoundError),
        (413, store.InvalidRequestError),
        (415, store.InvalidRequestError),
        (422, store.IdempotencyKeyReusedError),
        (429, store.TooManyRequestsError),
        (500, store.ServerError),
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
    script = always([], 302, Location="http://127.0.0.2:9/v1/pets")
    with httpx2.Client(follow_redirects=True) as http:
        error, _ = failure(script, http_client=http)
    assert "302 : a redirect to http://127.0.0.2:9/v1/pets" in str(error)


def test_a_deletion_returns_none_and_takes_404_for_done_once_it_may_be() -> None:
    client = store.Client("https://x/v1", "key")
    deletion = Call(client, "DELETE", client._pets, lambda _, body: body)
    assert deletion.result(httpx2.Response(204), b"") is None
    deletion.pause_s(store.TooManyRequestsError("not done"))
    with pytest.raises(store.NotFoundError):
        deletion.result(httpx2.Response(404), b"")
    deletion.pause_s(store.NoResponseError("lost"))
    assert deletion.result(httpx2.Response(404), b"") is None


def created_in_threads(base_url: str, **limits: Any) -> list[store.Pet]:
    """Add 40 animals in as many threads."""
    client = store.Client(base_url, "key", **limits)
    with client, ThreadPoolExecutor(40) as pool:
        return list(pool.map(client.create, ["Rex"] * 40, [3] * 40))


def created_in_asyncio(base_url: str, **limits: Any) -> list[store.Pet]:
    """Add 40 animals in as many tasks; cancel two in flight, and one before its turn."""

    async def create() -> list[store.Pet]:
        async with store.AsyncClient(base_url, "key", **limits) as client:
            tasks = [asyncio.create_task(client.create("Rex", 3)) for _ in range(43)]
            await asyncio.sleep(0.05)
            for position in (0, 0, -1):
                tasks.pop(position).cancel()
            return await asyncio.wait_for(asyncio.gather(*tasks), 20)

    return asyncio.run(create())


@pytest.mark.parametrize("created_by", [created_in_threads, created_in_asyncio])
def test_calls_wait_for_their_turn_without_a_deadline(created_by: Any) -> None:
    places = threading.Semaphore(4)  # two more for those that are cancelled

    def script(*_: object) -> Response:
        if not places.acquire(blocking=False):
            return error(418)
        time.sleep(0.1)
        places.release()
        return reply(REX, 201)

    with serve(script) as server:
        created = created_by(server.base_url, max_in_flight=2, deadline_s=1.5)
    assert len(created) == 40


def test_more_calls_than_httpx2_allows_are_in_flight_if_the_client_may() -> None:
    all_are_here = threading.Barrier(101)

    def script(*_: object) -> Response:
        all_are_here.wait(20)
        return reply(REX, 201)

    with (
        serve(script) as server,
        store.Client(server.base_url, "key", max_in_flight=101) as client,
        ThreadPoolExecutor(101) as pool,
    ):
        created = pool.map(client.create, ["Rex"] * 101, [3] * 101)
        assert len([*created]) == 101


def test_a_client_leaves_no_connections_open_in_an_event_loop_that_ended(
    service: RunningService,
) -> None:
    client = store.AsyncClient(service.base_url, service.api_key)
    for _ in range(2):
        asyncio.run(client.create("Rex", 3))
    assert len(client._pools) == 1
    gc.collect()  # what is still open becomes a ResourceWarning, which fails the test


def test_an_announced_removal_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    with serve(always([], Sunset="Thu, 05 Dec 2030 00:00:00 GMT")) as server:
        listed(server.base_url)
        listed(server.base_url)
    text = "GET /v1/pets is deprecated; Deprecation: , Sunset: Thu, 05 Dec 2030"
    assert caplog.text.count(text) == 1


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


def test_limits_of_one_call_are_not_those_of_the_next() -> None:
    client = store.Client("https://x/v1", "key", attempts=2)
    limits = {"timeout_s": 1, "deadline_s": 2, "attempts": 3, "max_retry_after_s": 0}
    assert vars(client.with_options(**limits)) == vars(client) | limits
    assert client.with_options(timeout_s=1).attempts == client.attempts == 2


@pytest.fixture
def certificate(tmp_path: Path) -> trustme.LeafCert:
    """Issue a server's certificate, by an authority whose own is in a file."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "authority.pem")
    return authority.issue_cert("localhost")


def test_a_wrong_certificate_is_refused_at_once(
    certificate: trustme.LeafCert,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    with serve(always([]), certificate) as server:
        with pytest.raises(store.NoResponseError, match="certificate"):
            listed(server.base_url)
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))
        assert listed(server.base_url) == []

    assert "attempt" not in caplog.text


def test_a_call_over_tls_ends_in_time(
    certificate: trustme.LeafCert, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))
    script = dripping(b"HTTP/1.1 200 OK\r\n", b"X: x\r\n")
    start = time.monotonic()

    with serve(script, certificate) as server, pytest.raises(store.NoResponseError):
        listed(server.base_url, timeout_s=0.5, attempts=1)

    assert len(server.received) == 1
    assert time.monotonic() - start < 5


def test_a_proxy_is_used_but_none_gets_the_key_in_clear(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with serve(always([])) as server, serve(hang_up) as proxy:
        monkeypatch.setenv("http_proxy", proxy.origin)
        monkeypatch.setenv("https_proxy", proxy.origin)
        monkeypatch.setenv("no_proxy", "")
        assert listed(server.base_url) == []
        with pytest.raises(store.NoResponseError):
            listed("https://animals.invalid/v1", attempts=1)
    for request in proxy.received:
        assert (request.method, request.authorization) == ("CONNECT", None)
    assert len(proxy.received) == 1


def test_threads_that_come_first_at_the_same_time_share_an_http_client() -> None:
    of_another_thread: Any = object()

    class Pools(dict[int, Any]):
        def __contains__(self, pid: Any) -> bool:
            is_there = super().__contains__(pid)
            self[pid] = of_another_thread  # just after it was looked for
            return is_there

    with httpx2.Client() as http:
        client = store.Client("https://x/v1", "key", http_client=http)
        client._pools = Pools()
        assert client._pool() is of_another_thread


def test_a_forked_process_opens_connections_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client = store.Client("https://x/v1", "key")
    inherited = client._pool()
    assert client._pool() is inherited

    monkeypatch.setattr("os.getpid", lambda: 0)  # as in another process

    assert client._pool().http is not inherited.http


def test_an_http_client_stays_its_owners(
    service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[httpx2.Request] = []
    with httpx2.Client(
        auth=("me", "secret"),
        params={"limit": "0"},
        event_hooks={"request": [sent.append]},
    ) as http:
        with store.Client(
            service.base_url, service.api_key, http_client=http
        ) as client:
            pet = client.create("Rex", 3)
            assert sent[0].extensions["timeout"]["read"] == 35
            assert [*client.pets(page_size=3)][-1] == pet
        # On the same connection, as if the client had never used it.
        response = http.get(f"{service.base_url}/pets", timeout=None)
        assert response.request.headers["Authorization"].startswith("Basic ")

        monkeypatch.setattr("os.getpid", lambda: 0)
        with pytest.raises(RuntimeError, match="another process or event loop"):
            client.create("Rex", 3)
        with pytest.raises(TypeError, match=r"httpx2.*AsyncClient"):
            store.AsyncClient("https://x/v1", "key", http_client=http)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("base_url", "key", "message"),
    [
        ("animals.example/v1", "key", "base URL"),
        ("https://x", "key", "base URL"),
        ("https://me@x/v1", "key", "base URL"),
        ("https://x?a=/v1", "key", "base URL"),
        ("http://10.0.0.1/v1", "key", "use https"),
        ("http://localhost.example/v1", "key", "use https"),
        ("https://x/v1", "", "API key"),
        ("https://x/v1", "key\n", "API key"),
    ],
)
def test_a_wrong_setup_is_refused(base_url: str, key: str, message: str) -> None:
    with pytest.raises(ValueError, match="max_in_flight"):
        store.Client("https://x/v1", "key", max_in_flight=0)
    with pytest.raises(ValueError, match=message):
        store.Client(base_url, key)
