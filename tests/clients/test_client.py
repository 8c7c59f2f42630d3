"""The Python clients, against the service and against servers that fail, stall, lie and flood."""

import asyncio
import gc
import gzip
import inspect
import itertools
import pickle
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from email.utils import formatdate
from pathlib import Path
from typing import Any

import animal_store_client as store
import httpx2
import pytest
import trustme
from werkzeug import Request, Response

from tests.support import openapi
from tests.support.processes import RunningService
from tests.support.scripted_server import Script, error, hang_up, reply, serve

REX = {"id": 1, "name": "Rex", "categoryId": 3}


def in_threads(base_url: str, *calls: Any, key: str = "key", **options: Any) -> Any:
    """Return what calls of a Client, made at the same time, return or raise."""

    def make(call: Any) -> Any:
        try:
            made = call(client)
            return list(made) if inspect.isgenerator(made) else made
        except store.AnimalStoreError as error:
            return error

    client = store.Client(base_url, key, **options)
    with client, ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(make, calls))


def in_tasks(base_url: str, *calls: Any, key: str = "key", **options: Any) -> Any:
    """Do the same with an AsyncClient."""
    client = store.AsyncClient(base_url, key, **options)

    async def make(call: Any) -> Any:
        made = call(client)
        return await made if inspect.iscoroutine(made) else [x async for x in made]

    async def make_all() -> list[Any]:
        return await asyncio.gather(*map(make, calls), return_exceptions=True)

    return asyncio.run(make_all())


@pytest.fixture(params=[in_threads, in_tasks])
def use(request: pytest.FixtureRequest) -> Any:
    return request.param


def create(client: Any) -> Any:
    return client.create("Rex", 3)


def pets(client: Any) -> Any:
    return client.pets()


def test_every_operation_of_the_service(use: Any, service: RunningService) -> None:
    def do(call: Any) -> Any:
        return use(service.base_url, call, key=service.api_key)[0]

    zoe = do(lambda client: client.create("Zoë", 2**53 + 1, "sold"))
    assert zoe == store.Pet(zoe.id, "Zoë", 2**53 + 1, "sold")
    own = {"status": "sold", "idempotency_key": zoe.request_id}
    leo, again = (do(lambda client: client.create("Leo", 1, **own)) for _ in range(2))
    assert (again, again.replayed, leo.replayed) == (leo, True, False)
    wrong = do(lambda client: client.create("Leo", 1, status=""))
    assert isinstance(wrong, store.InvalidRequestError)
    with pytest.warns(DeprecationWarning, match="5 December 2030"):
        assert do(lambda client: client.get(zoe.id)) == zoe
    first, *_ = do(lambda client: client.pages(status="sold", page_size=1))
    *_, last = do(lambda client: client.pages(status="sold", cursor=first.cursor))
    assert (last.pets[-1], last.cursor) == (leo, None)


@openapi.each_operation
def test_both_clients_have_a_method_for_each_operation(
    operation: openapi.Operation,
) -> None:
    method = operation.id.removesuffix("Pet").replace("listPets", "pets")
    for kind in (store.Client, store.AsyncClient):
        assert hasattr(kind, method), f"clients/python: {kind.__name__}.{method}"


def test_its_pet_has_the_members_of_the_document_and_keeps_newer_ones() -> None:
    newer = {**REX, "status": "lost", "species": "dog"}
    pet = store.Pet.from_json(newer)
    assert (pet.status, pet.raw) == ("lost", newer)
    names = {field.name for field in fields(pet) if field.compare} - {"category_id"}
    document = openapi.schema("Pet")["properties"].keys() - {"categoryId"}
    assert names == document, "clients/python: Pet and openapi.yaml differ"


@pytest.mark.parametrize(
    ("script", "expected", "requests"),
    [
        (error(400), "InvalidRequestError", 1),
        (error(401), "AuthenticationError", 1),
        (error(418), "ApiError", 1),
        (error(422), "IdempotencyKeyReusedError", 1),
        (error(429, Retry_After="31"), "TooManyRequestsError", 1),
        (error(429, Retry_After="soon"), "TooManyRequestsError", 2),
        (error(429, Retry_After=formatdate(0)), "TooManyRequestsError", 2),
        (reply(b"<html>", 502), "ServerError", 2),
        (hang_up, "NoResponseError", 2),
    ],
)
def test_only_what_may_pass_is_repeated(
    use: Any, script: Script, expected: str, requests: int
) -> None:
    with serve(script) as server:
        [raised] = use(server.base_url, create, attempts=2)
    copied = pickle.loads(pickle.dumps(raised))  # noqa: S301
    assert (type(copied).__name__, len(server.received)) == (expected, requests)
    keys = {request.headers["Idempotency-Key"] for request in server.received}
    assert keys == {copied.idempotency_key}


def test_an_error_is_safe_to_print() -> None:
    with serve(error(404, "\x1b[2J", x_amzn_RequestId="42")) as server:
        [raised] = in_threads(server.base_url, create)
    assert str(raised) == r"404 \x1b[2J: Sorry. (request 42)"
    assert (raised.status, raised.code, raised.request_id) == (404, "\x1b[2J", "42")


def next_page(target: str) -> Script:
    """Return a script whose first pages lead to a URL; the ninth is not found."""

    def script(request: Request, number: int) -> Response:
        port = request.environ["SERVER_PORT"]
        url = target.format(port=port, turn=number % 2)
        return reply([], Link=f'<{url}>; rel="next"') if number < 9 else error(404)

    return script


@pytest.mark.parametrize(
    "script",
    [
        reply(b"[" * 10**5),
        reply({}),
        reply([{**REX, "id": True}]),
        reply(gzip.compress(b"[]"), Content_Encoding="gzip"),
        reply(itertools.repeat(b" " * 2**16)),  # without an end
        next_page("http://127.0.0.2:{port}/v1/pets?cursor=x"),
        next_page("http://127.0.0.1:1/v1/pets?cursor=x"),
        next_page("https://127.0.0.1:{port}/v1/pets?cursor=x"),
        next_page("//me@127.0.0.1:{port}/v1/pets?cursor=x"),
        next_page("http://["),
        next_page("/v1/pets"),
        next_page("/v1/pets?cursor=x"),
        next_page("/v1/pets?cursor={turn}"),
    ],
)
def test_what_is_not_the_api_or_leads_elsewhere_is_refused(
    use: Any, script: Script
) -> None:
    with serve(script) as server:
        [refused] = use(server.base_url, pets)
    assert isinstance(refused, store.InvalidResponseError)


def test_a_creation_is_repeated_after_what_the_service_asks_for(
    use: Any, caplog: pytest.LogCaptureFixture
) -> None:
    start = time.monotonic()

    with serve([error(503, "down", Retry_After="1"), reply(REX, 201)]) as server:
        use(server.base_url, create)

    assert time.monotonic() - start > 1.2
    assert "503 down: Sorry.; attempt 2 of 7 in 1." in caplog.text


def test_a_service_that_is_away_for_eleven_seconds_is_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("random.uniform", min)
    call = store.Client("https://x/v1", "key")._get(1)
    pauses = [call.pause_s(store.NoResponseError("lost")) for _ in range(6)]
    assert pauses == [0.2, 0.4, 0.8, 1.6, 3.2, 5]


def test_a_list_that_broke_goes_on_at_the_cursor_of_its_error(use: Any) -> None:
    first = reply([], Link='<?cursor=2>; rel="next"')
    last = reply([REX], Content_Encoding="identity")
    with serve([first, error(404), last]) as server:
        [broken] = use(server.base_url, lambda client: client.pets(status="sold"))
        [rest] = use(server.base_url, lambda client: client.pets(cursor=broken.cursor))

    assert rest == [store.Pet(1, "Rex", 3)]
    queries = [request.query_string for request in server.received]
    assert queries == [b"limit=100&status=sold", b"cursor=2", b"limit=100&cursor=2"]


def dripping(head: bytes, drop: bytes) -> Script:
    """Return a script that sends a head, and then the same bytes again and again."""

    def script(request: Request, number: int) -> Response:
        connection = request.environ["werkzeug.socket"]
        connection.sendall(head)
        for _ in range(80):
            connection.sendall(drop)
            time.sleep(0.05)
        return hang_up(request, number)

    return script


@pytest.mark.parametrize(
    "script",
    [
        dripping(b"HTTP/1.1 200 OK\r\n", b"X: x\r\n"),
        dripping(b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n", b" "),
        error(503, Retry_After="2"),
    ],
)
def test_a_call_ends_in_time(
    use: Any, script: Script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "authority.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))
    with serve(script, authority.issue_cert("localhost")) as server:
        start = time.monotonic()
        use(server.base_url, create, timeout_s=0.5, deadline_s=0.9)
        assert time.monotonic() - start < 2
    assert server.received


def test_calls_wait_for_their_turn_without_a_deadline(use: Any) -> None:
    places = threading.Semaphore(2)

    def script(_: Request, number: int) -> Response:
        if number <= 4 or not places.acquire(blocking=False):
            return error(418)  # after it, a turn is free again
        time.sleep(0.1)
        places.release()
        return reply(REX, 201)

    with serve(script) as server:
        made = use(server.base_url, *[create] * 40, max_in_flight=2, deadline_s=1.5)
    assert made.count(store.Pet(1, "Rex", 3)) == 36


def test_a_creation_without_a_turn_has_its_key_and_a_read_does_not_wait(
    use: Any,
) -> None:
    def script(request: Request, _: int) -> Response:
        time.sleep(1 if request.method == "POST" else 0)
        return reply(REX if request.method == "POST" else [])

    with serve(script) as server:
        limits = {"max_in_flight": 1, "max_wait_s": 0.3}
        *creations, listed = use(server.base_url, create, create, pets, **limits)

    assert listed == []
    [failed] = [each for each in creations if isinstance(each, store.NoResponseError)]
    assert failed.idempotency_key


def test_a_cancelled_creation_gives_its_turn_back() -> None:
    async def cancel_one(client: store.AsyncClient) -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(create(client), 0.5)
        await create(client)

    with serve([error(503, Retry_After="1"), reply(REX, 201)]) as server:
        client = store.AsyncClient(server.base_url, "key", max_in_flight=1)
        asyncio.run(cancel_one(client))


def test_a_client_leaves_no_connections_open_in_an_event_loop_that_ended(
    service: RunningService,
) -> None:
    client = store.AsyncClient(service.base_url, service.api_key)
    for _ in range(2):
        asyncio.run(client.create("Rex", 3))
    assert len(client._pools) == 1
    gc.collect()  # what is still open becomes a ResourceWarning, which fails the test


def test_a_client_with_other_limits_leaves_the_first_as_it_is() -> None:
    with serve(reply(REX)) as server, store.Client(server.base_url, "key") as first:
        with first.with_options(attempts=1) as derived:
            assert (derived.limits.attempts, first.limits.attempts) == (1, 7)
        create(first)
    assert repr(first) == f"Client('{server.base_url}')"


def test_a_proxy_is_used_but_none_gets_the_key_in_clear(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with serve(reply(REX)) as server, serve(hang_up) as proxy:
        monkeypatch.setenv("http_proxy", proxy.origin)
        monkeypatch.setenv("https_proxy", proxy.origin)
        monkeypatch.setenv("no_proxy", "")
        in_threads(server.base_url, create)
        in_threads("https://x.invalid/v1", create, attempts=1)
    [request] = proxy.received
    assert (request.method, request.authorization) == ("CONNECT", None)


def test_an_http_client_stays_its_owners(
    service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    with httpx2.Client(auth=("me", "secret"), params={"limit": "0"}) as http:
        options: Any = {"http_client": http, "max_in_flight": 1}
        with store.Client(service.base_url, service.api_key, **options) as client:
            pet = create(client)
        assert [*client.pets(page_size=3)][-1] == pet

        monkeypatch.setattr("os.getpid", lambda: 0)  # as in a forked process
        with pytest.raises(RuntimeError, match="another process or event loop"):
            create(client)
        with pytest.raises(TypeError, match=r"httpx2.*AsyncClient"):
            store.AsyncClient("https://x/v1", "key", **options)


@pytest.mark.parametrize(
    ("base_url", "options", "message"),
    [
        ("animals.example/v1", {}, "base URL"),
        ("https://me@x/v1", {}, "base URL"),
        ("http://localhost.example/v1", {}, "use https"),
        ("https://x/v1", {"key": "key\n"}, "API key"),
        ("https://x/v1", {"max_in_flight": 0}, "max_in_flight"),
        ("https://x/v1", {"timeout_s": None}, "timeout_s is None"),
    ],
)
def test_a_wrong_setup_is_refused(
    base_url: str, options: dict[str, Any], message: str
) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        in_threads(base_url, create, **options)
