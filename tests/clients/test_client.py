"""The Python clients, against the service and against servers that fail, stall, lie and flood."""

import asyncio
import copy
import gzip
import inspect
import itertools
import pickle
import subprocess
import sys
import time
import tracemalloc
from dataclasses import fields
from email.utils import formatdate
from typing import Any

import animal_store_client as store
import httpx
import pytest
from animal_store_client.core import Call, Core
from werkzeug import Request, Response

from tests.support import openapi
from tests.support.processes import RunningService
from tests.support.scripted_server import Script, error, hang_up, reply, serve

REX = {"id": 1, "name": "Rex", "categoryId": 3}
STATUSES = sorted(
    {status for each in openapi.operations() for status in each.statuses if status >= 400}
)
CODE = "\x1b[2J\u009b\u202e"
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

Kind = type[store.Client] | type[store.AsyncClient]
both = pytest.mark.parametrize("kind", [store.Client, store.AsyncClient])


@pytest.fixture(autouse=True)
def _no_random_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("random.random", lambda: 0.0)


def created(kind: Kind, base_url: str, **limits: Any) -> store.Pet:
    """Add Rex by a client of a kind."""
    if kind is store.Client:
        with store.Client(base_url, "key", **limits) as client:
            return client.create("Rex", 3)

    async def create() -> store.Pet:
        async with store.AsyncClient(base_url, "key", **limits) as client:
            return await client.create("Rex", 3)

    return asyncio.run(create())


def listed(kind: Kind, base_url: str, **limits: Any) -> list[store.Pet]:
    """Read the whole list by a client of a kind."""
    if kind is store.Client:
        with store.Client(base_url, "key", **limits) as client:
            return list(client.pets())

    async def read() -> list[store.Pet]:
        async with store.AsyncClient(base_url, "key", **limits) as client:
            return [pet async for pet in client.pets()]

    return asyncio.run(read())


def test_every_operation_of_the_service(service: RunningService) -> None:
    with store.Client(service.base_url, service.api_key) as client:
        zoe = client.create("Zoë", 2**53 + 1, "sold")
        copied = client.create(zoe.name, zoe.category_id, zoe.status, idempotency_key="zoe")
        again = client.create(zoe.name, zoe.category_id, zoe.status, idempotency_key="zoe")
        with pytest.warns(DeprecationWarning, match="5 December 2030"):
            assert client.get(zoe.id) == store.Pet(zoe.id, "Zoë", 2**53 + 1, "sold") == zoe
        with pytest.raises(store.IdempotencyKeyReusedError):
            client.create("Leo", 1, idempotency_key="zoe")
        with pytest.raises(store.InvalidRequestError, match="status"):
            client.create("Leo", 1, status="")
        with pytest.raises(store.InvalidRequestError, match="status"):
            list(client.pets(status=""))
        first = next(client.pages(status="sold", page_size=1))
        (others,) = client.pages(status="sold", cursor=first.cursor)
        assert [*first.pets, *others.pets] == list(client.pets(status="sold"))
    assert others.pets[-2:] == (copied,) or others.pets[-1] == copied
    assert (copied.replayed, again.replayed, others.cursor) == (False, True, None)


def test_every_operation_of_the_service_in_asyncio(service: RunningService) -> None:
    client = store.AsyncClient(service.base_url, service.api_key)

    async def use() -> None:
        async with client:
            mia, leo = await asyncio.gather(client.create("Mia", 1), client.create("Leo", 1))
            with pytest.warns(DeprecationWarning, match="2030"):
                assert await client.get(mia.id) == mia
            assert leo in [pet async for pet in client.pets(page_size=2)]

    asyncio.run(use())
    asyncio.run(use())  # in another event loop


def test_both_clients_have_the_same_methods() -> None:
    for name in ("pages", "pets", "create", "get", "close"):
        parameters = inspect.signature(getattr(store.Client, name)).parameters
        assert inspect.signature(getattr(store.AsyncClient, name)).parameters == parameters


def test_forked_processes_do_not_share_connections(service: RunningService) -> None:
    arguments = [sys.executable, "-c", FORKING, service.base_url, service.api_key]
    assert subprocess.run(arguments, check=False, timeout=60).returncode == 0


def test_its_pet_has_the_members_of_the_document_and_keeps_newer_ones() -> None:
    newer = {**REX, "status": "lost", "color": "red"}
    pet = store.Pet.from_json(newer)
    assert (pet.status, pet.raw) == ("lost", newer)
    names = {field.name.replace("category_id", "categoryId") for field in fields(store.Pet)}
    assert names - {"raw", "replayed"} == openapi.schema("Pet")["properties"].keys()


def test_a_creation_is_repeated_with_its_key_and_after_retry_after(
    caplog: pytest.LogCaptureFixture,
) -> None:
    times = []

    def script(request: Request, number: int) -> Response:
        times.append(time.monotonic())
        later = formatdate(time.time() + 2, usegmt=True)  # a date has no fractions
        failures = {1: error(503, "down", Retry_After="1"), 2: error(429, Retry_After=later)}
        return failures.get(number) or (hang_up(request, number) if number == 3 else reply(REX))

    with serve(script) as server, store.Client(server.base_url, "key") as client:
        client.create("Rex", 3)
        client.create("Rex", 3)
    first, *retries, other = [request.headers["Idempotency-Key"] for request in server.received]
    assert retries == [first] * 3
    assert other != first
    assert times[1] - times[0] >= 1
    assert times[2] - times[1] >= 1
    assert "503 down: Sorry.; attempt 2 of 6 in 1.0 s" in caplog.text


def always(body: Any, status: int = 200, **headers: str) -> Script:
    return lambda *_: reply(body, status, **headers)


def linking(link: str, *page: Any) -> Script:
    header = f'<{link}>; rel="next"'
    return lambda request, _: reply(page, Link=header.format(host=request.host))


def dripping(head: bytes, again: bytes) -> Script:
    """Answer with a head, and then with the same bytes until the client leaves."""

    def script(request: Request, _: int) -> Response:
        request.environ["werkzeug.socket"].sendall(head)
        while True:
            request.environ["werkzeug.socket"].sendall(again)
            time.sleep(0.05)

    return script


@both
@pytest.mark.parametrize(
    ("script", "kind_of_error", "requests"),
    [
        (always({}, 418), store.ApiError, 1),
        (always({}, 429, Retry_After="31"), store.TooManyRequestsError, 1),
        (always({}, 503, Retry_After="0"), store.ServerError, 2),
        (always(b"<html>", 502), store.ServerError, 2),
        (hang_up, store.NoResponseError, 2),
        (linking("http://127.0.0.2:9/v1?cursor=x", REX), store.InvalidResponseError, 1),
        (linking("//127.0.0.1:9/v1/pets?cursor=x", REX), store.InvalidResponseError, 1),
        (linking("https://{host}/v1/pets?cursor=x", REX), store.InvalidResponseError, 1),
        (linking("//me@{host}/?cursor=x", REX), store.InvalidResponseError, 1),
        (linking("http://[", REX), store.InvalidResponseError, 1),
        (linking("/v1/pets", REX), store.InvalidResponseError, 1),
        (linking("/v1/pets?cursor=again"), store.InvalidResponseError, 2),
        (always(b"[" * 10**5), store.InvalidResponseError, 1),
        (always(b"9" * 10**5), store.InvalidResponseError, 1),
        (always(b"\xff\xfe"), store.InvalidResponseError, 1),
        (always(b"<html>"), store.InvalidResponseError, 1),
        (always(b"", 204), store.InvalidResponseError, 1),
        (always({"pets": []}), store.InvalidResponseError, 1),
        (always([{**REX, "id": "1"}]), store.InvalidResponseError, 1),
        (always([{**REX, "id": True}]), store.InvalidResponseError, 1),
    ],
)
def test_only_what_may_pass_is_repeated(
    kind: Kind, script: Script, kind_of_error: type[Exception], requests: int
) -> None:
    with serve(script) as server, pytest.raises(kind_of_error) as raised:
        listed(kind, server.base_url, attempts=2)
    assert (raised.type, len(server.received)) == (kind_of_error, requests)


@both
@pytest.mark.parametrize("limits", [{"timeout_s": 0.4, "attempts": 2}, {"deadline_s": 0.8}])
@pytest.mark.parametrize(
    "script",
    [
        dripping(b"", b""),
        dripping(b"HTTP/1.1 200 OK\r\n", b"X-Header: x\r\n"),
        dripping(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        dripping(b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n", b" "),
        always({}, 503, Retry_After="1"),
    ],
)
def test_a_call_ends_in_time(kind: Kind, script: Script, limits: dict[str, Any]) -> None:
    with serve(script) as server:
        start = time.monotonic()
        with pytest.raises(store.AnimalStoreError):
            created(kind, server.base_url, **limits)
        assert time.monotonic() - start < 0.8 + 1


@both
@pytest.mark.parametrize(
    "script",
    [
        always(gzip.compress(b"[" + b" " * 2**25), Content_Encoding="gzip"),
        lambda *_: reply(itertools.repeat(b" " * 2**16, 1000)),
    ],
)
def test_a_flood_is_not_read(kind: Kind, script: Script) -> None:
    tracemalloc.start()
    with serve(script) as server, pytest.raises(store.InvalidResponseError):
        listed(kind, server.base_url)
    assert tracemalloc.get_traced_memory()[1] < 16 * 2**20
    tracemalloc.stop()


def test_a_cancelled_creation_sends_nothing_more() -> None:
    async def cancel(base_url: str) -> None:
        async with store.AsyncClient(base_url, "key") as client:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(client.create("Rex", 3), 0.5)
            await asyncio.sleep(1)

    with serve(always({}, 503, Retry_After="1")) as server:
        asyncio.run(cancel(server.base_url))
    assert len(server.received) == 1


@both
@pytest.mark.parametrize("script", [hang_up, always({}, 503), always({}, 400), always(b"<html>")])
def test_a_failed_creation_names_its_idempotency_key(kind: Kind, script: Script) -> None:
    with serve(script) as server, pytest.raises(store.AnimalStoreError) as raised:
        created(kind, server.base_url, attempts=1)
    (request,) = server.received
    assert raised.value.idempotency_key == request.headers["Idempotency-Key"]


@pytest.mark.parametrize("status", STATUSES)
def test_errors_have_a_class_a_code_and_a_request_id_and_are_safe_to_print(status: int) -> None:
    script = always({"code": CODE, "message": "Sorry."}, status, x_amzn_RequestId="42")
    with serve(script) as server, pytest.raises(store.ApiError) as raised:
        listed(store.Client, server.base_url, attempts=1)
    assert raised.type is not store.ApiError
    assert (raised.value.status, raised.value.code, raised.value.request_id) == (status, CODE, "42")
    assert str(raised.value) == rf"{status} \x1b[2J\x9b\u202e: Sorry. (request 42)"
    assert_copied_whole(raised.value)


def assert_copied_whole(error: store.AnimalStoreError) -> None:
    """Compare an error with what another process gets of it."""
    error.idempotency_key = "key"
    for twin in (copy.copy(error), pickle.loads(pickle.dumps(error))):  # noqa: S301
        assert (type(twin), str(twin), vars(twin)) == (type(error), str(error), vars(error))


def test_an_error_without_a_status_is_copied_whole() -> None:
    assert_copied_whole(store.NoResponseError("no \x1b response"))
    assert_copied_whole(store.InvalidResponseError("not JSON"))


def test_a_redirect_is_not_followed_and_says_where_it_pointed() -> None:
    script = always(b"", 302, Location="http://127.0.0.2:9/v1/pets")
    http = httpx.Client(follow_redirects=True)
    with serve(script) as server, pytest.raises(store.ApiError, match=r"to http://127.0.0.2:9/v1"):
        created(store.Client, server.base_url, http_client=http)
    http.close()


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
        assert [pet.id for pet in listed(store.Client, server.base_url)] == [1]
    assert server.received[1].args.to_dict() == {"cursor": "2"}


def test_a_list_that_broke_goes_on_after_its_last_page() -> None:
    def script(_: Request, number: int) -> Response:
        return error(500) if number == 2 else reply([REX], Link='<?cursor=2>; rel="next"')

    with serve(script) as server, store.Client(server.base_url, "key", attempts=1) as client:
        pages = client.pages(status="sold")
        page = next(pages)
        with pytest.raises(store.ServerError):
            next(pages)
        next(client.pages(status="sold", cursor=page.cursor))
    assert server.received[2].args.to_dict() == {"limit": "100", "status": "sold", "cursor": "2"}


def test_a_deletion_returns_none_and_finds_out_by_404_that_it_was_done() -> None:
    core: Core[httpx.Client] = store.Client("https://x/v1", "key")
    deletion = Call(core, "DELETE", httpx.URL("https://x/v1/pets/1"), lambda _, body: body)
    assert deletion.result(httpx.Response(204), b"") is None
    with pytest.raises(store.NotFoundError):
        deletion.result(httpx.Response(404), b"")
    deletion.pause_s(store.NoResponseError("lost"))
    assert deletion.result(httpx.Response(404), b"") is None


def test_an_http_client_is_used_and_left_open(monkeypatch: pytest.MonkeyPatch) -> None:
    transport = httpx.MockTransport(lambda _: httpx.Response(200, json=[REX]))
    http = httpx.Client(transport=transport)
    client = store.Client("https://animals.example/v1", "key", http_client=http)
    assert [pet.name for pet in client.pets()] == ["Rex"]
    client.close()
    assert not http.is_closed
    monkeypatch.setattr("os.getpid", lambda: 0)
    with pytest.raises(RuntimeError, match="another process"):
        list(client.pets())


@pytest.mark.parametrize(
    "base_url",
    ["animals.example", "https://me@x/v1", "https://x?a=1", "http://x/v1", "http://10.0.0.1"],
)
def test_a_wrong_base_url_is_refused(base_url: str) -> None:
    with pytest.raises(ValueError, match="base URL"):
        store.Client(base_url, "key")


@pytest.mark.parametrize("key", ["", "key\n", "a key"])
def test_a_wrong_key_is_refused(key: str) -> None:
    with pytest.raises(ValueError, match="API key"):
        store.AsyncClient("https://x/v1", key)


@pytest.mark.parametrize("origin", ["http://localhost:1", "http://127.0.0.1", "http://[::1]:1"])
def test_this_machine_needs_no_encryption(origin: str) -> None:
    store.Client(f"{origin}/v1", "key").close()
