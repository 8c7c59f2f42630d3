"""The Python clients, against the service and against servers that fail, stall and lie."""

import asyncio
import gc
import inspect
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, fields
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock, Mock, patch
from weakref import ref

import animal_store_client as store
import certifi
import httpx2
import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from botocore import xform_name
from werkzeug import Request, Response

from tests.contract import openapi
from tests.support.processes import RunningService
from tests.support.scripted_server import (
    REX,
    hang_up,
    page,
    reply,
    rounds_with_a_late_animal,
    serve,
)


@dataclass
class BlockingClient:
    """An `AsyncClient` whose methods block like those of `Client`: one test serves both."""

    client: store.AsyncClient
    portal: BlockingPortal

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def method(*arguments: Any, **options: Any) -> Any:
            result = getattr(self.client, name)(*arguments, **options)
            if inspect.isasyncgen(result):
                return iter(lambda: self.portal.call(anext, result, None), None)
            if isinstance(result, store.AsyncClient):
                return BlockingClient(result, self.portal)
            return self.portal.call(lambda: result)

        return method


@pytest.fixture(params=[store.Client, store.AsyncClient])
def connect(request: pytest.FixtureRequest) -> Iterator[Any]:
    """Make clients of each class in turn; call it like `connect(base_url, "key", attempts=2)`."""
    if request.param is store.Client:
        yield store.Client
        return
    with start_blocking_portal() as portal:
        yield lambda *arguments, **options: BlockingClient(
            store.AsyncClient(*arguments, **options), portal
        )


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Record the clients' pauses in seconds; each is as short as possible, and takes no time."""
    seconds: list[float] = []
    clock = SimpleNamespace(monotonic=lambda: sum(seconds))

    def pause(pause_s: float) -> None:
        assert len(seconds) < 99, "the client never gives up"
        seconds.append(pause_s)

    monkeypatch.setattr("animal_store_client.core.time", clock)
    monkeypatch.setattr("time.sleep", pause)
    monkeypatch.setattr("asyncio.sleep", AsyncMock(side_effect=pause))
    monkeypatch.setattr("random.uniform", min)
    return seconds


def client_without_network(network: Mock, **options: Any) -> store.Client:
    """Make a client that calls a function instead of sending requests."""
    http = httpx2.Client(transport=httpx2.MockTransport(network))
    return store.Client("https://x/v1", "key", http_client=http, **options)


# -- the operations ----------------------------------------------------------------------


def test_operations_work_with_local_service(
    connect: Any, service: RunningService
) -> None:
    with closing(connect(service.base_url, service.api_key)) as client:
        zoe = client.create("Zoë", 2**53 + 1, "sold")
        assert zoe == store.Pet(zoe.id, "Zoë", 2**53 + 1, "sold")

        key = zoe.request_id
        leo = client.create("Leo", 1, "sold", idempotency_key=key)
        replayed = client.create("Leo", 1, "sold", idempotency_key=key)
        assert (replayed, replayed.replayed, leo.replayed) == (leo, True, False)

        with pytest.warns(DeprecationWarning, match="5 December 2030"):
            assert client.get(zoe.id) == zoe

        *_, last_but_one, last = client.pages(status="sold", page_size=1)
        assert (last_but_one.pets, last.pets) == ((zoe,), (leo,))
        assert (last.request_id != "", last.cursor) == (True, None)


@openapi.each_operation
def test_both_clients_have_each_operation(operation: openapi.Operation) -> None:
    # listPets becomes `pets`, createPet `create`, and listAuthors `authors`.
    method = xform_name(operation.id.removesuffix("Pet").removeprefix("list"))
    for client in (store.Client, store.AsyncClient):
        assert hasattr(client, method), f"clients/python: {client.__name__}.{method}"


def test_pet_has_each_member_of_schema() -> None:
    documented = ["id", *map(xform_name, openapi.SCHEMAS["NewPet"]["properties"])]
    members = [field.name for field in fields(store.Pet) if field.compare]
    assert sorted(members) == sorted(documented)


def test_pet_keeps_unknown_status_and_members() -> None:
    pet = store.Pet.from_json({**REX, "status": "lost", "species": "dog"})
    assert (pet.status, pet.raw["species"]) == ("lost", "dog")


def test_failed_list_resumes_at_cursor_of_error(connect: Any) -> None:
    headers = {
        "Link": '<http://elsewhere.example?cursor=2>; rel="next"',
        "Set-Cookie": "a=1",
    }
    with serve([reply([], 200, headers), reply({}, 404), page(3, 4)]) as server:
        # There is one slot: the second call can use it only after the failed call returns it.
        client = connect(server.base_url, "key", max_in_flight=1, max_wait_s=5)
        with pytest.raises(store.NotFoundError) as failure:
            next(client.pets(status="sold"))
        pets = client.pets(cursor=failure.value.cursor)
        assert [pet.id for pet in pets] == [3, 4]

    assert [request.query_string for request in server.received] == [
        b"limit=100&status=sold",
        b"limit=100&status=sold&cursor=2",
        b"limit=100&cursor=2",
    ]
    assert server.received[1].cookies == {}


# -- new animals -------------------------------------------------------------------------


def test_follow_pets_yields_each_animal_once_despite_outage(
    connect: Any, pauses: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    outage = [reply({}, 503)] * 8  # seven attempts, and the first of the next round
    responses = [*outage, *rounds_with_a_late_animal(), reply({}, 401)]
    with serve(responses) as server:
        pets = connect(server.base_url, "key").follow_pets()
        assert [next(pets).id for _ in range(5)] == [1, 3, 4, 2, 5]
        with pytest.raises(store.AuthenticationError):
            next(pets)

    assert pauses == [0.2, 0.4, 0.8, 1.6, 3.2, 5, 30, 0.2, 30, 30, 30]
    assert "503 : SERVICE UNAVAILABLE; attempt 7 of 7 in 5.0 s" in caplog.text
    assert "503 : SERVICE UNAVAILABLE; reading again in 30 s" in caplog.text
    cursors = [request.args.get("cursor") for request in server.received[8:]]
    assert cursors == [None, "1", None, "1", "3", "1", "3", "3"]


# -- failures ----------------------------------------------------------------------------


@pytest.mark.usefixtures("pauses")
@pytest.mark.parametrize(
    ("status", "error", "requests"),
    [
        (400, store.InvalidRequestError, 1),
        (401, store.AuthenticationError, 1),
        (404, store.NotFoundError, 1),
        (413, store.InvalidRequestError, 1),
        (415, store.InvalidRequestError, 1),
        (422, store.IdempotencyKeyReusedError, 1),
        (429, store.TooManyRequestsError, 2),
        (599, store.ServerError, 2),
    ],
)
def test_create_retries_429_and_5xx_with_one_idempotency_key(
    connect: Any, status: int, error: type[store.ApiError], requests: int
) -> None:
    not_json = "[" * 10**5
    with serve(Response(not_json, status)) as server, pytest.raises(error) as failure:
        create(connect(server.base_url, "key", attempts=2))
    keys = [request.headers["Idempotency-Key"] for request in server.received]
    assert keys == [failure.value.idempotency_key] * requests


def test_error_has_all_fields_and_escapes_its_text() -> None:
    body = b'{"code": "\\u001b[2J", "message": "Sorry."}'
    response = httpx2.Response(404, headers={"x-amzn-RequestId": "42"})
    error = store.ApiError.from_response(response, body)
    assert str(error) == r"404 \x1b[2J: Sorry. (request 42)"
    assert (error.status, error.code) == (404, "\x1b[2J")
    assert (error.message, error.request_id) == ("Sorry.", "42")


@pytest.mark.parametrize(
    ("content", "url", "message"),
    [
        ("[" * 10**5, "", "returned no JSON"),
        ("{}", "", "is not a page: {}"),
        ('[{"id": "1", "name": "Rex", "categoryId": 3}]', "", "is not an animal: "),
        ('[{"id": true, "name": "Rex", "categoryId": 3}]', "", "is not an animal: "),
        ("[]", "/v1/pets", "has no new cursor: /v1/pets"),
        ("[]", "/v1/pets?cursor=", "has no new cursor: "),
        ("[]", "/v1/pets?limit=100&cursor=2", "has no new cursor: "),  # this page
    ],
)
def test_invalid_page_is_refused(content: str, url: str, message: str) -> None:
    link = {"Link": f'<{url}>; rel="next"'} if url else {}
    network = Mock(return_value=httpx2.Response(200, text=content, headers=link))
    with pytest.raises(store.InvalidResponseError, match=message):
        next(client_without_network(network).pages(cursor="2"))


def test_nan_and_lone_surrogate_are_invalid_requests(
    connect: Any, service: RunningService
) -> None:
    with closing(connect(service.base_url, service.api_key)) as client:
        for pet in [("Rex", float("nan")), ("\ud800", 3)]:
            with pytest.raises(store.InvalidRequestError):
                client.create(*pet)


def test_response_over_the_size_limit_is_not_read_to_its_end(connect: Any) -> None:
    megabytes = iter([b" " * 2**20] * 64)
    with serve([Response("[]".rjust(2**19)), Response(megabytes)]) as server:
        client = connect(server.base_url, "key")
        assert [*client.pets()] == []
        with pytest.raises(store.InvalidResponseError):
            next(client.pets())
    unsent = [*megabytes]
    assert len(unsent) > 32


@pytest.mark.parametrize(
    ("retry_after", "seconds"),
    [
        ("7", 7),
        ("Sun, 06 Nov 1994 08:50:37 GMT", 60),
        ("Sunday, 06-Nov-94 08:50:37 GMT", 60),
        ("Sun Nov  6 08:50:37 1994", 60),
        ("Sun, 06 Nov 1994 08:48:37 GMT", 0),
        ("soon", None),
        ("1 Jan 99999999999999999999 0:00", None),
    ],
)
def test_retry_after_is_seconds_or_date(
    retry_after: str, seconds: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    response = httpx2.Response(503, headers={"Retry-After": retry_after})
    monkeypatch.setattr("time.time", lambda: 784111777)  # 08:49:37 in UTC
    assert store.ApiError.from_response(response, b"").retry_after_s == seconds


UNKNOWN_HOST = httpx2.ConnectError(f"[Errno {socket.EAI_NONAME}] Name not known")
NO_TLS = httpx2.ConnectError("[SSL: WRONG_VERSION_NUMBER] wrong version number")
CUT_HANDSHAKE = httpx2.ConnectError("[SSL: UNEXPECTED_EOF_WHILE_READING] EOF occurred")
BROKEN_GZIP = httpx2.DecodingError("incorrect header check")


@pytest.mark.usefixtures("pauses")
@pytest.mark.parametrize(
    "responses",
    [
        [UNKNOWN_HOST],
        [NO_TLS],
        [CUT_HANDSHAKE, BROKEN_GZIP, BROKEN_GZIP],
        [httpx2.Response(503), UNKNOWN_HOST, UNKNOWN_HOST],
        [KeyboardInterrupt],
    ],
)
def test_wrong_address_is_retried_only_after_an_answer(
    responses: list[Any],
) -> None:
    network = Mock(side_effect=responses)
    with pytest.raises((store.NoResponseError, KeyboardInterrupt)):
        create(client_without_network(network, attempts=3))
    assert network.call_count == len(responses)


# -- options -----------------------------------------------------------------------------


def test_defaults_of_options() -> None:
    assert store.Client.__init__.__kwdefaults__ == {
        "timeout_s": 35,
        "deadline_s": 120,
        "attempts": 7,
        "max_retry_after_s": 30,
        "max_wait_s": None,
        "max_in_flight": 20,
        "http_client": None,
    }


@pytest.mark.parametrize("limit", ["timeout_s", "deadline_s"])
@pytest.mark.parametrize("head", [b"HTTP/1.1 100 \r\n\r\n", b"HTTP/1.1 200 \r\n\r\n"])
def test_slow_response_ends_at_time_limit(
    connect: Any, limit: str, head: bytes
) -> None:
    """With status 100 the headers don't end, and with 200 the body doesn't."""
    heads = iter([head] * 40)

    def script(request: Request, _: int) -> Response:
        for next_head in heads:
            request.environ["werkzeug.socket"].sendall(next_head)
            time.sleep(0.05)
        return reply(REX)

    with serve(script) as server, pytest.raises(store.NoResponseError):
        create(connect(server.base_url, "key", attempts=1, **{limit: 0.1}))
    assert [*heads]  # the call didn't wait for all of them


@pytest.mark.parametrize(
    ("options", "expected_pauses"),
    [
        ({"attempts": 2, "max_retry_after_s": 3}, [3.2]),
        ({"max_retry_after_s": 2}, []),
        ({"deadline_s": 10}, [3.2, 3.4]),  # a third pause would end after 10.4 s
    ],
)
def test_throttled_call_gives_up_at_whichever_limit_is_first(
    connect: Any,
    options: dict[str, Any],
    expected_pauses: list[float],
    pauses: list[float],
) -> None:
    with (
        serve(reply({}, 429, {"Retry-After": "3"})) as server,
        pytest.raises(store.TooManyRequestsError),
    ):
        create(connect(server.base_url, "key", **options))
    assert pauses == expected_pauses


CLOSED = pytest.raises(RuntimeError, match="closed")  # httpx2's error


def create(client: Any) -> Any:
    return client.create("Rex", 3)


def read_page(client: Any) -> None:
    next(client.pages())


@pytest.mark.parametrize(
    ("call", "other_call", "max_in_flight"),
    # httpx2 limits a pool to 100 connections by default.
    [(create, read_page, 101), (read_page, create, 2)],
)
def test_call_without_slot_fails_after_max_wait(
    connect: Any,
    call: Callable[[Any], None],
    other_call: Callable[[Any], None],
    max_in_flight: int,
) -> None:
    def script(request: Request, number: int) -> Response:
        """Make the next call while this request is still under way."""
        if number < max_in_flight:
            call(client)
        if number == max_in_flight:
            with pytest.raises(store.NoResponseError, match="max_wait_s"):
                call(client)
            other_call(client)  # creations and reads have slots of their own
        return page() if request.method == "GET" else reply(REX)

    with serve(script) as server:
        limits = {"max_in_flight": max_in_flight, "max_wait_s": 0.1, "attempts": 1}
        client = connect(server.base_url, "key", **limits)
        call(client)
    assert len(server.received) == max_in_flight + 1


def test_waiting_for_a_slot_does_not_count_toward_the_deadline(
    connect: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    responses = [reply(REX), reply({}, 503), reply(REX)]
    with serve(responses) as server, ThreadPoolExecutor() as pool:
        # Each request takes 100 seconds.
        clock = SimpleNamespace(monotonic=lambda: 100 * len(server.received))
        monkeypatch.setattr("animal_store_client.core.time", clock)
        limits = {"max_in_flight": 1, "max_wait_s": 5, "deadline_s": 150}
        client = connect(server.base_url, "key", **limits)
        assert len([*pool.map(create, [client, client])]) == 2


@pytest.mark.usefixtures("pauses")
def test_with_options_shares_connections(connect: Any) -> None:
    with serve([reply({}, 503), reply({}, 503), reply(REX)]) as server:
        client = connect(server.base_url, "key")
        derived_client = client.with_options(attempts=1)
        with pytest.raises(store.ServerError):
            create(derived_client)
        derived_client.close()
        create(client)
    client.close()
    with CLOSED:
        create(derived_client)


def test_http_client_of_the_caller_stays_open(connect: Any) -> None:
    """Its authentication, parameters and redirects are not used."""
    redirect = httpx2.Response(302, headers={"Location": "/v1/elsewhere"})
    network = Mock(return_value=redirect)
    http_class = httpx2.Client if connect is store.Client else httpx2.AsyncClient
    http = http_class(
        transport=httpx2.MockTransport(network),
        auth=("me", "secret"),
        params={"limit": "0"},
        follow_redirects=True,
    )
    client = connect("https://x/v1/", "key", http_client=http, timeout_s=3)
    with pytest.raises(store.ApiError, match="302"):
        next(client.pets(page_size=5))
    client.close()

    network.assert_called_once()
    [request] = network.call_args.args
    assert request.url == "https://x/v1/pets?limit=5"
    assert request.headers["Authorization"] == "Bearer key"
    assert request.headers["Accept-Encoding"] == "identity"
    assert request.headers["User-Agent"].startswith("animal-store-client/")
    assert request.extensions["timeout"]["read"] == 3
    assert not http.is_closed


# -- connections -------------------------------------------------------------------------


def test_async_with_block_closes_connections(service: RunningService) -> None:
    async def create_twice() -> None:
        async with store.AsyncClient(service.base_url, service.api_key) as client:
            await create(client)
        await create(client)

    with CLOSED:
        asyncio.run(create_twice())


def test_end_of_event_loop_closes_connections(service: RunningService) -> None:
    client = store.AsyncClient(service.base_url, service.api_key)

    async def create_in_a_loop(client: Any) -> Any:
        await create(client)
        return ref(asyncio.get_running_loop())

    first_loop = asyncio.run(create_in_a_loop(client.with_options()))
    asyncio.run(create_in_a_loop(client))
    gc.collect()  # an open connection causes a ResourceWarning, which fails the test
    assert first_loop() is None


def test_close_after_a_fork_keeps_connections_of_the_parent() -> None:
    with serve(reply(REX)) as server:
        client = store.Client(server.base_url, "key")
        create(client)
        with patch("os.getpid", return_value=0):  # as in a forked process
            client.close()
            with CLOSED:
                create(client)
        create(client)


def test_threads_that_start_together_share_one_pool(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client = store.Client("http://127.0.0.1:1/v1", "key")
    monkeypatch.setattr(client, "_new_http", lambda: time.sleep(0.05))
    with ThreadPoolExecutor() as threads:
        pools = threads.map(lambda _: client._pool(), range(4))
    assert len({pool.writes for pool in pools}) == 1


def test_proxy_is_only_for_remote_hosts_and_gets_no_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with serve(reply(REX)) as server, serve(hang_up) as proxy:
        monkeypatch.setenv("https_proxy", proxy.origin[7:])
        monkeypatch.setenv("no_proxy", "XN--bcher-kva.example")
        create(store.Client(server.base_url, "key"))
        with pytest.raises(store.NoResponseError):
            create(store.Client("https://x.invalid/v1", "key", attempts=1))
    [request] = proxy.received
    assert (request.method, request.authorization) == ("CONNECT", None)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("all_proxy", "socks5://127.0.0.1:9"),
        ("SSL_CERT_FILE", "/nonexistent"),
        ("SSLKEYLOGFILE", "/nonexistent/log"),
    ],
)
def test_error_names_unusable_environment_variable(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", certifi.where())
    monkeypatch.setenv("no_proxy", "elsewhere.example")
    monkeypatch.setenv("https_proxy", "")
    monkeypatch.setenv(name, value)
    with pytest.raises(ValueError, match=f"Environment variable .*{name}.*: "):
        store.AsyncClient("https://animals.example/v1", "key")


def test_proxy_is_ignored_for_host_in_no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "x.example, animals.example:443")
    store.Client("https://animals.example/v1", "key")


@pytest.mark.parametrize(
    ("argument", "value", "message"),
    [
        ("base_url", "x/v1", 'base URL "x/v1": it must look like https://HOST/v1'),
        ("base_url", "https://x:65536/v1", "it must look like"),
        ("base_url", "https://me:secret@x/v1", "it must look like"),
        ("base_url", "https://.x/v1", 'base URL "https://.x/v1": '),
        ("base_url", "https://x\u200b/v1", 'base URL "https://x\u200b/v1": '),
        (
            "base_url",
            "http://localhost.example/v1",
            "http:// sends the key unencrypted",
        ),
        ("api_key", None, "api_key is None"),
        ("api_key", "", "The API key is empty"),
        ("api_key", "Bearer animal_live_x", "has a ' ': leave out"),
        ("max_in_flight", 0, "max_in_flight is less than 1"),
        ("timeout_s", None, "timeout_s is None"),
        ("http_client", httpx2.AsyncClient(), "http_client is a"),
    ],
)
def test_error_says_which_argument_is_invalid(
    argument: str, value: Any, message: str
) -> None:
    arguments = {"base_url": "https://x/v1", "api_key": "key", argument: value}
    with pytest.raises((ValueError, TypeError), match=message):
        store.Client(**arguments)


@pytest.mark.parametrize("key", ["", "a b", "ä", "x" * 256])
def test_invalid_idempotency_key_is_refused(key: str) -> None:
    client = store.Client("http://127.0.0.1:1/v1", "key")
    with pytest.raises(ValueError, match="is not 1 to 255 visible ASCII characters"):
        client.create("Rex", 3, idempotency_key=key)
