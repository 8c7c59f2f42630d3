"""The Python clients, against the service and against servers that fail, stall and lie."""

import asyncio
import gc
import inspect
import itertools
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from types import SimpleNamespace
from typing import Any

import animal_store_client as store
import httpx2
import pytest
from animal_store_client.errors import _seconds
from botocore import xform_name
from werkzeug import Request, Response

from tests.support import openapi
from tests.support.processes import RunningService
from tests.support.scripted_server import Script, error, hang_up, reply, serve

REX = {"id": 1, "name": "Rex", "categoryId": 3}


def call_in_threads(
    base_url: str, *calls: Any, key: str = "key", **options: Any
) -> list[Any]:
    """Make the calls of a `Client` at the same time; return their results or errors."""

    def outcome(call: Any) -> Any:
        try:
            result = call(client)
            return list(result) if inspect.isgenerator(result) else result
        except store.AnimalStoreError as error:
            return error

    client = store.Client(base_url, key, **options)
    with client, ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(outcome, calls))


def call_in_tasks(
    base_url: str, *calls: Any, key: str = "key", **options: Any
) -> list[Any]:
    """Do the same with an `AsyncClient`."""
    client = store.AsyncClient(base_url, key, **options)

    async def outcome(call: Any) -> Any:
        result = call(client)
        if inspect.iscoroutine(result):
            return await result
        return [item async for item in result]

    async def outcomes() -> list[Any]:
        return await asyncio.gather(*map(outcome, calls), return_exceptions=True)

    return asyncio.run(outcomes())


@pytest.fixture(params=[call_in_threads, call_in_tasks])
def call(request: pytest.FixtureRequest) -> Any:
    """Make calls with each of the two clients: `call(base_url, create, list_pets, attempts=2)`."""
    return request.param


def create(client: Any) -> Any:
    return client.create("Rex", 3)


def list_pets(client: Any) -> Any:
    return client.pets()


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses of both clients, which do not wait."""
    seconds: list[float] = []

    async def note(pause_s: float) -> None:
        seconds.append(pause_s)

    clock = SimpleNamespace(sleep=seconds.append, monotonic=time.monotonic)
    monkeypatch.setattr("animal_store_client.client.time", clock)
    monkeypatch.setattr("asyncio.sleep", note)
    monkeypatch.setattr("random.uniform", min)
    return seconds


# -- the operations ----------------------------------------------------------------------


def test_every_operation_of_the_service(call: Any, service: RunningService) -> None:
    def do(operation: Callable[[Any], Any]) -> Any:
        return call(service.base_url, operation, key=service.api_key)[0]

    zoe = do(lambda client: client.create("Zoë", 2**53 + 1, "sold"))
    assert zoe == store.Pet(zoe.id, "Zoë", 2**53 + 1, "sold")

    key = zoe.request_id
    leo = do(lambda client: client.create("Leo", 1, "sold", idempotency_key=key))
    again = do(lambda client: client.create("Leo", 1, "sold", idempotency_key=key))
    assert (again, again.replayed, leo.replayed) == (leo, True, False)

    with pytest.warns(DeprecationWarning, match="5 December 2030"):
        assert do(lambda client: client.get(zoe.id)) == zoe

    first, *_ = do(lambda client: client.pages(status="sold", page_size=1))
    *_, last = do(lambda client: client.pages(status="sold", cursor=first.cursor))
    assert len(first.pets) == 1
    assert (last.pets[-1], last.cursor) == (leo, None)


@openapi.each_operation
def test_both_clients_have_a_method_for_each_operation(
    operation: openapi.Operation,
) -> None:
    # listPets is pets, createPet create; listAuthors would be authors, createAuthor create_author.
    method = xform_name(operation.id.removesuffix("Pet").removeprefix("list"))
    for kind in (store.Client, store.AsyncClient):
        assert hasattr(kind, method), f"clients/python: {kind.__name__}.{method}"


def test_its_pet_has_the_members_of_the_document_and_keeps_newer_ones() -> None:
    newer = {**REX, "status": "lost", "species": "dog"}
    pet = store.Pet.from_json(newer)
    assert (pet.status, pet.raw) == ("lost", newer)
    names = {field.name for field in fields(pet) if field.compare} - {"category_id"}
    declared = openapi.SCHEMAS["NewPet"]["properties"].keys() - {"categoryId"}
    assert names == {"id", *declared}


def test_failed_list_resumes_at_the_cursor_of_the_error(call: Any) -> None:
    first = reply([], Link='<?cursor=2>; rel="next"')
    with serve([first, error(404), reply([REX])]) as server:
        [failure] = call(server.base_url, lambda client: client.pets(status="sold"))
        [rest] = call(
            server.base_url, lambda client: client.pets(cursor=failure.cursor)
        )

    assert rest == [store.Pet(1, "Rex", 3)]
    assert [request.query_string for request in server.received] == [
        b"limit=100&status=sold",
        b"cursor=2",
        b"limit=100&cursor=2",
    ]


@pytest.mark.parametrize("prefix", ["a%2Fb", "%25", "a%3Fb"])
def test_path_of_the_base_url_is_sent_as_it_is_written(prefix: str) -> None:
    paths = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        paths.append(request.url.raw_path.decode())
        return httpx2.Response(200, json=REX)

    http = httpx2.Client(transport=httpx2.MockTransport(answer))
    client = store.Client(f"https://x/{prefix}/v1", "key", http_client=http)
    create(client)
    with pytest.warns(match="removed"):
        client.get(1)
    assert paths == [f"/{prefix}/v1/pets", f"/{prefix}/v1/pets/1"]


# -- new animals -------------------------------------------------------------------------


class LateStore:
    """A list in which animal 6 appears later than animals with higher ids.

    Compared with the service: pages in ascending order of ids, of which each but the last is full
    (here, of 2) and has a cursor. Its clock moves only when the client pauses.
    """

    def __init__(self) -> None:
        self.now_s = 0.0
        self.cursors: list[str | None] = []

    def __call__(self, request: Request, _: int) -> Response:
        appears_at_s = [0, 0, 0, 29, 1, 31, 10, 11, 12, 60]  # of animals 1 to 10
        self.cursors.append(request.args.get("cursor"))
        after = int(self.cursors[-1] or 0)
        ids = [
            id_
            for id_, time_s in enumerate(appears_at_s, start=1)
            if time_s <= self.now_s and id_ > after
        ]
        page = [{**REX, "id": id_} for id_ in ids[:2]]
        if len(ids) > 2:
            return reply(page, Link=f'<?cursor={ids[1]}>; rel="next"')
        return reply(page)


def first_new_pets(kind: Any, base_url: str, number: int) -> list[int]:
    """Return the ids of the first animals of a client's `new_pets`."""
    if kind is store.Client:
        pets = store.Client(base_url, "key").new_pets()
        return [pet.id for pet in itertools.islice(pets, number)]

    async def collect() -> list[int]:
        ids: list[int] = []
        async for pet in store.AsyncClient(base_url, "key").new_pets():
            ids.append(pet.id)
            if len(ids) == number:
                break
        return ids

    return asyncio.run(collect())


@pytest.mark.parametrize("kind", [store.Client, store.AsyncClient])
def test_new_pets_are_found_once_even_behind_later_ones(
    kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    late_store = LateStore()

    def pause(pause_s: float) -> None:
        assert pause_s == 30
        assert late_store.now_s < 300, "an animal was missed"
        late_store.now_s += pause_s

    async def pause_task(pause_s: float) -> None:
        pause(pause_s)

    clock = SimpleNamespace(sleep=pause, monotonic=time.monotonic)
    monkeypatch.setattr("animal_store_client.client.time", clock)
    monkeypatch.setattr("asyncio.sleep", pause_task)

    with serve(late_store) as server:
        ids = first_new_pets(kind, server.base_url, 10)

    assert ids == [1, 2, 3, 4, 5, 7, 8, 9, 6, 10]
    rounds = [None, "2"], [None, "2", "4", "7"], ["2", "4", "6", "8"]
    assert late_store.cursors == [cursor for each in rounds for cursor in each]


@pytest.mark.parametrize("kind", [store.Client, store.AsyncClient])
def test_new_pets_outlast_an_outage_and_end_with_a_wrong_key(
    kind: Any, pauses: list[float]
) -> None:
    def script(_: Request, number: int) -> Response:
        if number <= 8:
            return error(503)
        return reply([REX]) if number == 9 else error(401)

    with serve(script) as server:
        assert first_new_pets(kind, server.base_url, 1) == [1]
        with pytest.raises(store.AuthenticationError):
            first_new_pets(kind, server.base_url, 1)

    assert pauses == [0.2, 0.4, 0.8, 1.6, 3.2, 5, 30, 0.2]  # 11 seconds, and a round


# -- failures ----------------------------------------------------------------------------


@pytest.mark.usefixtures("pauses")
@pytest.mark.parametrize(
    ("script", "expected", "requests"),
    [
        (error(401), "AuthenticationError", 1),
        (reply({}, 307, Location="/v1/pets"), "ApiError", 1),
        (error(422), "IdempotencyKeyReusedError", 1),
        (error(429), "TooManyRequestsError", 2),
        (reply(b"<html>", 520), "ServerError", 2),
        (hang_up, "NoResponseError", 2),
        (reply(b"broken", Content_Encoding="gzip"), "NoResponseError", 2),
    ],
)
def test_only_what_may_pass_is_repeated(
    call: Any, script: Script, expected: str, requests: int
) -> None:
    with serve(script) as server:
        [failure] = call(server.base_url, create, attempts=2)
    assert (type(failure).__name__, len(server.received)) == (expected, requests)
    keys = {request.headers["Idempotency-Key"] for request in server.received}
    assert keys == {failure.idempotency_key}


def test_an_error_is_safe_to_print() -> None:
    with serve(error(404, "\x1b[2J", x_amzn_RequestId="42")) as server:
        [failure] = call_in_threads(server.base_url, create)
    assert str(failure) == r"404 \x1b[2J: Sorry. (request 42)"
    assert (failure.status, failure.request_id) == (404, "42")


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
        reply([{**REX, "id": "1"}]),
        next_page("http://127.0.0.1:1/v1/pets?cursor=x"),
        next_page("https://127.0.0.1:{port}/v1/pets?cursor=x"),
        next_page("//me@127.0.0.1:{port}/v1/pets?cursor=x"),
        next_page("http://["),
        next_page("/v1/pets"),
        next_page("/v1/pets?cursor={turn}"),
    ],
)
def test_responses_that_are_not_the_api_and_foreign_links_are_refused(
    call: Any, script: Script
) -> None:
    with serve(script) as server:
        [failure] = call(server.base_url, list_pets)
    assert isinstance(failure, store.InvalidResponseError)


def test_reading_a_huge_body_ends_after_some_megabytes(call: Any) -> None:
    sent = []

    def body() -> Iterator[bytes]:
        for megabyte in range(64):
            sent.append(megabyte)
            yield b" " * 2**20

    with serve(reply(body())) as server:
        [failure] = call(server.base_url, list_pets)
    assert isinstance(failure, store.InvalidResponseError)
    assert len(sent) < 32


@pytest.mark.parametrize("encoding", ["Identity", "", "identity, identity"])
def test_uncompressed_body_may_have_any_form_of_content_encoding(
    call: Any, encoding: str
) -> None:
    with serve(reply([REX], Content_Encoding=encoding)) as server:
        assert call(server.base_url, list_pets) == [[store.Pet(1, "Rex", 3)]]
    assert server.received[0].headers["Accept-Encoding"] == "identity"


@pytest.mark.parametrize(
    "date",
    [
        "%a, %d %b %Y %H:%M:%S GMT",
        "%A, %d-%b-%y %H:%M:%S GMT",
        "%a %b %e %H:%M:%S %Y",
        "%a, %d %b %Y %H:%M:%S -0000",
    ],
)
@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Kathmandu"])
def test_retry_after_date_is_in_utc(
    date: str, zone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        retry_after = time.strftime(date, time.gmtime(time.time() + 60))
        assert _seconds(retry_after) == pytest.approx(60, abs=2)
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize("retry_after", ["5, 5", "soon", "1 Jan 99999 0:00"])
def test_retry_after_that_cannot_be_read_is_ignored(retry_after: str) -> None:
    assert _seconds(retry_after) is None


def test_retry_after_is_added_to_the_pause(call: Any, pauses: list[float]) -> None:
    with serve([error(503, Retry_After="7"), reply(REX, 201)]) as server:
        call(server.base_url, create)
    assert pauses == [7.2]


def test_https_to_a_port_without_tls_is_not_tried_again(
    call: Any, pauses: list[float]
) -> None:
    with serve(reply(REX)) as server:
        [failure] = call(server.base_url.replace("http:", "https:"), create)
    assert (type(failure), pauses) == (store.NoResponseError, [])


@pytest.mark.parametrize(
    ("reason", "statuses", "requests"),
    [
        ("[SSL: CERTIFICATE_VERIFY_FAILED] self-signed certificate", [], 1),
        ("[SSL: UNEXPECTED_EOF_WHILE_READING] EOF occurred", [], 3),
        (f"[Errno {socket.EAI_NONAME}] Name or service not known", [], 1),
        (f"[Errno {socket.EAI_NONAME}] Name or service not known", [503], 3),
    ],
)
@pytest.mark.usefixtures("pauses")
def test_wrong_address_is_not_tried_again_before_the_first_response(
    reason: str, statuses: list[int], requests: int
) -> None:
    received = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        received.append(request)
        if not statuses:
            raise httpx2.ConnectError(reason)
        return httpx2.Response(statuses.pop())

    http = httpx2.Client(transport=httpx2.MockTransport(answer))
    with pytest.raises(store.NoResponseError):
        create(store.Client("https://x/v1", "key", http_client=http, attempts=3))
    assert len(received) == requests


# -- options -----------------------------------------------------------------------------


def slow_body(request: Request, number: int) -> Response:
    connection = request.environ["werkzeug.socket"]
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n")
    for _ in range(40):
        connection.sendall(b" ")
        time.sleep(0.05)
    return hang_up(request, number)


def silent(request: Request, number: int) -> Response:
    time.sleep(2)
    return hang_up(request, number)


@pytest.fixture(params=["own", "caller's"])
def http_client(request: pytest.FixtureRequest, call: Any) -> Any:
    """None, or an http_client for the kind of client that `call` uses."""
    if request.param == "own":
        return None
    return httpx2.Client() if call is call_in_threads else httpx2.AsyncClient()


@pytest.mark.parametrize("script", [silent, slow_body])
@pytest.mark.parametrize("limit", ["timeout_s", "deadline_s"])
def test_attempt_ends_after_timeout_and_call_after_deadline(
    call: Any, http_client: Any, script: Script, limit: str
) -> None:
    options = {"attempts": 1, limit: 0.3, "http_client": http_client}
    with serve(script) as server:
        start = time.monotonic()
        [failure] = call(server.base_url, create, **options)
        assert time.monotonic() - start < 1.5
    assert isinstance(failure, store.NoResponseError)


def test_no_attempt_begins_after_the_deadline(
    call: Any, http_client: Any, pauses: list[float]
) -> None:
    with serve(error(503, Retry_After="3")) as server:
        [failure] = call(server.base_url, create, deadline_s=2, http_client=http_client)
    assert (pauses, failure.retry_after_s) == ([], 3)


@pytest.mark.usefixtures("pauses")
@pytest.mark.parametrize(("retry_after", "requests"), [("5", 2), ("6", 1)])
def test_longer_retry_after_than_max_retry_after_s_is_an_error_at_once(
    call: Any,
    http_client: Any,
    retry_after: str,
    requests: int,
) -> None:
    with serve(error(429, Retry_After=retry_after)) as server:
        options = {"max_retry_after_s": 5, "attempts": 2, "http_client": http_client}
        [failure] = call(server.base_url, create, **options)
    assert isinstance(failure, store.TooManyRequestsError)
    assert len(server.received) == requests


class BusyServer:
    """A script that answers after a moment, and notes how many requests it has at once."""

    def __init__(self) -> None:
        self.most = 0
        self._now = 0
        self._lock = threading.Lock()

    def __call__(self, request: Request, _: int) -> Response:
        with self._lock:
            self._now += 1
            self.most = max(self.most, self._now)
        time.sleep(0.05)
        with self._lock:
            self._now -= 1
        return reply(REX, 201) if request.method == "POST" else reply([])


@pytest.mark.parametrize("operation", [create, list_pets])
def test_max_in_flight_limits_the_requests_at_once(
    call: Any, http_client: Any, operation: Any
) -> None:
    busy = BusyServer()
    with serve(busy) as server:
        calls = [operation] * 9
        call(server.base_url, *calls, max_in_flight=3, http_client=http_client)
    assert (busy.most, len(server.received)) == (3, 9)


def test_deadline_begins_with_the_turn(call: Any) -> None:
    with serve(BusyServer()) as server:
        outcomes = call(
            server.base_url, *[create] * 12, max_in_flight=1, deadline_s=0.4
        )
    assert outcomes == [store.Pet(1, "Rex", 3)] * 12


def test_creation_without_a_turn_within_max_wait_s_fails_and_reads_do_not_wait(
    call: Any, http_client: Any
) -> None:
    def script(request: Request, _: int) -> Response:
        if request.method == "GET":
            return reply([])
        time.sleep(0.5)
        return reply(REX, 201)

    with serve(script) as server:
        options = {"max_in_flight": 1, "max_wait_s": 0.2, "http_client": http_client}
        *creations, pets = call(server.base_url, create, create, list_pets, **options)

    assert pets == []
    creations.sort(key=lambda outcome: isinstance(outcome, store.NoResponseError))
    assert creations[0] == store.Pet(1, "Rex", 3)
    assert creations[1].idempotency_key
    assert len(server.received) == 2


def test_cancelled_creation_returns_its_turn() -> None:
    def cancelled(client: Any) -> Any:
        return asyncio.wait_for(create(client), 0.2)

    with serve([error(503, Retry_After="1"), reply(REX, 201)]) as server:
        calls = cancelled, create
        _, pet = call_in_tasks(server.base_url, *calls, max_in_flight=1, max_wait_s=5)
    assert pet == store.Pet(1, "Rex", 3)


def test_with_options_returns_a_client_with_other_limits_and_the_same_connections() -> (
    None
):
    with serve(reply(REX)) as server, store.Client(server.base_url, "key") as client:
        with client.with_options(attempts=1, timeout_s=3) as derived:
            create(derived)
        create(client)
        assert derived.limits == {**client.limits, "attempts": 1, "timeout_s": 3}
        assert client.limits["attempts"] == 7
        assert derived._pools is client._pools


def test_callers_http_client_is_not_reconfigured_or_closed(
    service: RunningService,
) -> None:
    with httpx2.Client(auth=("me", "secret"), params={"limit": "0"}) as http:
        client = store.Client(service.base_url, service.api_key, http_client=http)
        with client:
            pet = create(client)
        assert [*client.pets(page_size=3)][-1] == pet


def test_callers_http_client_follows_no_redirect(call: Any) -> None:
    kind = httpx2.Client if call is call_in_threads else httpx2.AsyncClient
    http = kind(follow_redirects=True)
    with serve(reply({}, 302, Location="/v1/elsewhere")) as server:
        [failure] = call(server.base_url, create, http_client=http)
    assert (failure.status, len(server.received)) == (302, 1)


# -- connections -------------------------------------------------------------------------


def test_no_connection_stays_open_in_an_event_loop_that_ended(
    service: RunningService,
) -> None:
    client = store.AsyncClient(service.base_url, service.api_key)
    for each in (client.with_options(), client):
        asyncio.run(each.create("Rex", 3))
    assert len(client._pools) == 1
    gc.collect()  # what is still open becomes a ResourceWarning, which fails the test


def test_forked_process_opens_its_own_connections(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with serve(reply(REX)) as server, store.Client(server.base_url, "key") as client:
        create(client)
        parent = client._pool()
        monkeypatch.setattr("os.getpid", lambda: 0)  # as in a forked process
        with client:
            create(client)
        assert client._pool() is not parent
        monkeypatch.undo()
        assert client._pool() is parent


def test_threads_that_call_first_at_the_same_time_share_connections(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client = store.Client("http://127.0.0.1:1/v1", "key")
    connect = client._open

    def connect_slowly() -> httpx2.Client:
        time.sleep(0.05)
        return connect()

    monkeypatch.setattr(client, "_open", connect_slowly)
    with ThreadPoolExecutor(8) as pool:
        pools = [pool.submit(client._pool) for _ in range(8)]
    assert len({id(each.result()) for each in pools}) == 1


def test_proxy_is_used_but_gets_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    with serve(reply(REX)) as server, serve(hang_up) as proxy:
        monkeypatch.setenv("http_proxy", proxy.origin)
        monkeypatch.setenv("https_proxy", proxy.origin)
        monkeypatch.setenv("no_proxy", "")
        call_in_threads(server.base_url, create)
        call_in_threads("https://x.invalid/v1", create, attempts=1)
    [request] = proxy.received
    assert (request.method, request.authorization) == ("CONNECT", None)


@pytest.mark.parametrize(
    ("name", "value"),
    [("all_proxy", "socks5://127.0.0.1:9"), ("SSL_CERT_FILE", "/nonexistent")],
)
def test_unusable_setting_of_the_environment_is_named_when_the_client_is_made(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("no_proxy", "elsewhere.example")
    monkeypatch.setenv(name, value)
    with pytest.raises(ValueError, match=f"{name} of the environment: "):
        store.AsyncClient("https://animals.example/v1", "key")


def test_proxy_that_cannot_be_used_is_irrelevant_for_a_host_without_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "animals.example")
    store.Client("https://animals.example/v1", "key")


@pytest.mark.parametrize(
    ("base_url", "key", "message"),
    [
        ("animals.example/v1", "key", 'base URL "animals.example/v1": it must have'),
        ("http://127.0.0.1:3000", "key", 'base URL "http://127.0.0.1:3000": it must'),
        ("https://me:secret@x/v1", "key", "it must have the form https://HOST/v1"),
        ("http://localhost.example/v1", "key", "http:// sends the key in clear"),
        (None, "key", "base_url is None"),
        ("https://x/v1", None, "api_key is None"),
        ("https://x/v1", "", "The API key is empty"),
        ("https://x/v1", "Bearer animal_live_x", "has a ' ': leave out"),
        ("https://x/v1", "key\n", r"has a '\\n'"),
    ],
)
def test_message_says_what_is_wrong_with_base_url_and_key(
    base_url: Any, key: Any, message: str
) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        store.Client(base_url, key)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("max_in_flight", 0),
        ("timeout_s", None),
        ("http_client", httpx2.AsyncClient()),
    ],
)
def test_option_that_cannot_be_is_refused(option: str, value: Any) -> None:
    with pytest.raises((ValueError, TypeError), match=option):
        store.Client("https://x/v1", "key", **{option: value})


@pytest.mark.parametrize("key", ["", "a b", "ä", "x" * 256])
def test_idempotency_key_that_cannot_be_a_header_is_shown(key: str) -> None:
    client = store.Client("http://127.0.0.1:1/v1", "key")
    with pytest.raises(ValueError, match="is not 1 to 255 visible ASCII characters"):
        client.create("Rex", 3, idempotency_key=key)
