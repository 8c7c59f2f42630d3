"""The Python clients, against the service and against servers that fail, stall, lie and flood."""

import asyncio
import gc
import inspect
import itertools
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from typing import Any

import animal_store_client as store
import httpx2
import pytest
import trustme
from botocore import xform_name
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
    wrong = do(lambda client: client.create("Leo", 1, idempotency_key=""))
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


@pytest.mark.parametrize(
    ("script", "expected", "requests"),
    [
        (error(401), "AuthenticationError", 1),
        (reply({}, 307, Location="/v1/pets"), "ApiError", 1),
        (error(422), "IdempotencyKeyReusedError", 1),
        (error(429, Retry_After="31"), "TooManyRequestsError", 1),
        (
            error(429, Retry_After="Fri, 31 Dec 2100 00:00:00 GMT"),
            "TooManyRequestsError",
            1,
        ),
        (
            error(429, Retry_After="Thu, 01 Jan 1970 00:00:00 GMT"),
            "TooManyRequestsError",
            2,
        ),
        (reply(b"<html>", 520), "ServerError", 2),
        (hang_up, "NoResponseError", 2),
    ],
)
def test_only_what_may_pass_is_repeated(
    use: Any, script: Script, expected: str, requests: int
) -> None:
    with serve(script) as server:
        [raised] = use(server.base_url, create, attempts=2)
    assert (type(raised).__name__, len(server.received)) == (expected, requests)
    keys = {request.headers["Idempotency-Key"] for request in server.received}
    assert keys == {raised.idempotency_key}


def test_an_error_is_safe_to_print() -> None:
    with serve(error(404, "\x1b[2J", x_amzn_RequestId="42")) as server:
        [raised] = in_threads(server.base_url, create)
    assert str(raised) == r"404 \x1b[2J: Sorry. (request 42)"
    assert (raised.status, raised.request_id) == (404, "42")


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
        reply([], Content_Encoding="gzip"),
        reply(itertools.repeat(b" " * 2**16)),  # without an end
        next_page("http://127.0.0.2:{port}/v1/pets?cursor=x"),
        next_page("http://127.0.0.1:1/v1/pets?cursor=x"),
        next_page("https://127.0.0.1:{port}/v1/pets?cursor=x"),
        next_page("//me@127.0.0.1:{port}/v1/pets?cursor=x"),
        next_page("http://["),
        next_page("/v1/pets"),
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
        use(server.base_url, create, max_retry_after_s=1)

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
    last = reply([REX])
    with serve([first, error(404), last]) as server:
        [broken] = use(server.base_url, lambda client: client.pets(status="sold"))
        [rest] = use(server.base_url, lambda client: client.pets(cursor=broken.cursor))

    assert rest == [store.Pet(1, "Rex", 3)]
    queries = [request.query_string for request in server.received]
    assert queries == [b"limit=100&status=sold", b"cursor=2", b"limit=100&cursor=2"]


def dripping(head: bytes) -> Script:
    """Return a script that sends a head, and then a header or 6 bytes of a body again and again."""

    def script(request: Request, number: int) -> Response:
        connection = request.environ["werkzeug.socket"]
        connection.sendall(head)
        for _ in range(80):
            connection.sendall(b"X: x\r\n")
            time.sleep(0.05)
        return hang_up(request, number)

    return script


@pytest.mark.parametrize(
    ("script", "limits"),
    [
        (
            dripping(b"HTTP/1.1 200 OK\r\n"),
            {"timeout_s": 0.5, "attempts": 1},
        ),
        (
            dripping(b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n"),
            {"deadline_s": 0.5},
        ),
        (error(503, Retry_After="2"), {"deadline_s": 0.5}),
    ],
)
def test_a_call_ends_in_time(
    use: Any,
    script: Script,
    limits: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    authority = trustme.CA()
    certificate = authority.issue_cert("localhost")
    with authority.cert_pem.tempfile() as file, serve(script, certificate) as server:
        monkeypatch.setenv("SSL_CERT_FILE", file)
        start = time.monotonic()
        [late] = use(server.base_url, create, **limits)
        assert time.monotonic() - start < 2
    assert isinstance(late, store.AnimalStoreError)
    assert server.received


def test_a_wrong_certificate_fails_at_once(
    use: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with serve(reply(REX), trustme.CA().issue_cert("localhost")) as server:
        [refused] = use(server.base_url, create)
    assert isinstance(refused, store.NoResponseError)
    assert "attempt 2" not in caplog.text


def test_calls_wait_for_their_turn_without_a_deadline(use: Any) -> None:
    def script(_: Request, number: int) -> Response:
        time.sleep(0.05)
        return error(418) if number <= 4 else reply(REX, 201)

    with serve(script) as server:
        made = use(
            server.base_url,
            *[create] * 24,
            max_in_flight=2,
            deadline_s=0.5,
            max_wait_s=10,
        )
    assert made.count(store.Pet(1, "Rex", 3)) == 20


def test_a_creation_without_a_turn_has_its_key_and_a_read_does_not_wait(
    use: Any,
) -> None:
    def script(request: Request, _: int) -> Response:
        if request.method == "GET":
            return reply([])
        time.sleep(0.5)
        return reply(REX, 201)

    with serve(script) as server:
        calls = create, create, pets
        *made, listed = use(server.base_url, *calls, max_in_flight=1, max_wait_s=0.2)

    assert listed == []
    [failed] = [each for each in made if isinstance(each, store.NoResponseError)]
    assert failed.idempotency_key


def test_a_cancelled_creation_gives_its_turn_back() -> None:
    def cancelled(client: Any) -> Any:
        return asyncio.wait_for(create(client), 0.5)

    with serve([error(503, Retry_After="1"), reply(REX, 201)]) as server:
        calls = cancelled, create
        _, made = in_tasks(server.base_url, *calls, max_in_flight=1, max_wait_s=5)
    assert made == store.Pet(1, "Rex", 3)


def test_a_client_leaves_no_connections_open_in_an_event_loop_that_ended(
    service: RunningService,
) -> None:
    client = store.AsyncClient(service.base_url, service.api_key)
    for each in (client.with_options(), client):
        asyncio.run(each.create("Rex", 3))
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
        client = store.Client(service.base_url, service.api_key, http_client=http)
        with client:
            pet = create(client)
        assert [*client.pets(page_size=3)][-1] == pet

        monkeypatch.setattr("os.getpid", lambda: 0)  # as in a forked process
        with pytest.raises(RuntimeError, match="another process or event loop"):
            create(client)


@pytest.mark.parametrize(
    ("base_url", "options", "message"),
    [
        ("animals.example/v1", {}, "base URL"),
        ("http://localhost.example/v1", {}, "use https"),
        ("https://x/v1", {"key": "key\n"}, "API key"),
        ("https://x/v1", {"max_in_flight": 0}, "max_in_flight"),
        ("https://x/v1", {"timeout_s": None}, "timeout_s is None"),
        ("https://x/v1", {"http_client": httpx2.AsyncClient()}, "httpx2.Client"),
    ],
)
def test_a_wrong_setup_is_refused(
    base_url: str, options: dict[str, Any], message: str
) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        in_threads(base_url, create, **options)
