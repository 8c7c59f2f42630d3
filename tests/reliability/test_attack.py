"""Hostile input: to a running service through its socket, and to the handlers as events of API Gateway.

Whatever is sent, each response must be one that the interface allows, point nowhere but to the service, and repeat no
secret; afterwards the log and the metrics are searched for what was put in. Forged keys and cursors, and bodies that
are refused, are cases of the contract suite.
"""

import contextlib
import io
import json
import random
import re
import secrets
import socket
from collections.abc import Mapping
from copy import deepcopy
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from tests.support import handlers, openapi
from tests.support.fault_injection import FaultyStore
from tests.support.handlers import EVENTS, SUCCESSES
from tests.support.processes import RunningService

_LATE_S = 5
# Requests may be many; the metrics are those of 3 operations by some 10 statuses and codes, and of 3 keys.
_MOST_METRICS = 60

_SECRET = f"sEcReT{secrets.token_hex(8)}"
_HIDDEN = re.compile(rf"{_SECRET}|Bearer|animal_(?:test|live)_[0-9A-Za-z]{{9}}")
_CONTROLS = (
    "\r\nX-Injected: 1",
    "\x1b[2J\x1b]0;x\x07",
    "\u202e\u2028",
    '"}\n{"level":"ERROR"',
    "\x00",
    "",
)
_FOREIGN = (
    ("X-Forwarded-Host", "evil.example"),
    ("X-Forwarded-Port", "81@evil.example"),
    ("Forwarded", "host=e"),
)
_NAMES = "Host X-Forwarded-Proto Origin Referer X-Injected Authorization Content-Type Content-Encoding Idempotency-Key"


def check(
    method: str, path: str, base_url: str, response: tuple[int, Mapping[str, str], str]
) -> None:
    """Compare a response (status, headers, body) to a path below `/v1` with what the interface allows."""
    status, headers, body = response
    names = {name.lower() for name in headers}
    assert not [
        name for name in names if name.startswith("access-control-") or "injected" in name
    ], headers
    links = re.findall(r"<([^>?]*)", headers.get("Link", ""))
    assert set(links) <= {f"{base_url}/pets"}, links
    assert openapi.problems(openapi.find(method, path), status, headers, body) == []
    assert status < 500
    assert status < 400 or _SECRET not in body


def search(log: str) -> int:
    """Look for secrets in what the functions have written, and for metrics that grow with the requests."""
    metrics, lines = set(), log.splitlines()
    for line in lines:
        assert not _HIDDEN.search(line), line
        entry = json.loads(
            line[line.index("{") :]
        )  # the local gateway may write the function's name in front
        for directive in entry.get("_aws", {}).get("CloudWatchMetrics", ()):
            series = [
                tuple(str(entry[name]) for name in names) for names in directive["Dimensions"]
            ]
            metrics |= {
                (metric["Name"], *values) for values in series for metric in directive["Metrics"]
            }
    assert 0 < len(metrics) <= _MOST_METRICS, sorted(metrics)[:5]
    return len(lines)


# -- on the socket -----------------------------------------------------------------------------------------------------


def test_secrets_and_control_characters(service: RunningService, record_property: Any) -> None:
    """Put a secret, control characters and other hosts into all that a client can fill."""
    requests: list[tuple[str, Any]] = []  # paths, and what else httpx takes
    for tail in _CONTROLS:
        text = quote(_SECRET + tail, safe="")
        requests += [
            (path.format(text), {})
            for path in ("/pets/{}", "/{}", "/pets?limit={}", "/pets?cursor={}")
        ]
        members = [{member: _SECRET + tail} for member in ("name", "categoryId", "status", tail)]
        requests += [
            ("/pets", {"json": {"name": "a", "categoryId": 1, **member}}) for member in members
        ]
    names = ("Idempotency-Key", "Content-Type", "User-Agent", "Cookie", "X-Amzn-Trace-Id")
    requests += [("/pets", {"content": _SECRET, "headers": {name: _SECRET}}) for name in names]
    headers = [("Authorization", f"{scheme} {_SECRET}") for scheme in ("Bearer", "Basic")]
    headers += [*_FOREIGN, ("Origin", "http://evil.example")]
    paths = ("/pets?limit=1", "/pets/1", f"/pets?key={service.api_key}")
    requests += [(path, {"headers": dict([header])}) for header in headers for path in paths]
    for path, options in requests:
        method = "POST" if {"json", "content"} & options.keys() else "GET"
        got = service.http.request(method, path, timeout=_LATE_S, **options)
        check(
            method,
            path.partition("?")[0],
            service.base_url,
            (got.status_code, got.headers, got.text),
        )

    lines = search((service.data / "functions.log").read_text("utf-8"))
    shown = "".join(line for line in service.printed() if re.match(r"\d\d:\d\d:\d\d ", line))
    assert shown.isprintable()
    assert service.api_key not in shown
    record_property(
        "secrets, control characters and other hosts in all that a client can fill", len(requests)
    )
    record_property("log lines and metrics searched for these", lines)


_TE = "Transfer-Encoding"
_LENGTHS = ("{}", "+0", "0x0", "-1", "0, 9", "\n 0", "0\r\nContent-Length: 9")
_CODINGS = (f"{_TE}: xchunked", f" {_TE}: chunked", f"X: y\r{_TE}: chunked", f"{_TE} : chunked")


@pytest.mark.parametrize("length", [*_LENGTHS, *(f"0\r\n{coding}" for coding in _CODINGS)])
def test_hidden_request(service: RunningService, length: str, record_property: Any) -> None:
    """Hide a creation in what one reading of a request takes for its body; no reading may carry it out."""
    url, name = httpx.URL(service.base_url), f"hidden {secrets.token_hex(4)}"
    body = json.dumps({"name": name, "categoryId": 1})
    head = f"HTTP/1.1\r\nHost: {url.host}:{url.port}\r\nAuthorization: Bearer {service.api_key}\r\n"
    hidden = f"0\r\n\r\nPOST /v1/pets {head}Content-Length: {len(body)}\r\n\r\n{body}"
    last = f"GET /v1/pets/999999999 {head}Connection: close\r\n\r\n"
    answer = b""
    with socket.create_connection((url.host, url.port or 80), timeout=_LATE_S) as connection:
        connection.sendall(
            f"POST /v1/pets {head}Content-Length: {length.format(len(hidden))}\r\n\r\n{hidden}{last}".encode()
        )
        with contextlib.suppress(ConnectionError):
            while more := connection.recv(65536):
                answer += more
    first, *more_statuses = re.findall(rb"HTTP/1\.[01] (\d+)", answer)
    assert first == b"400", answer
    assert set(more_statuses) <= {b"400", b"404"}, answer
    assert name not in service.http.get("/pets?limit=100").text
    record_property("a creation hidden in the body of another request", 1)


# -- on the handlers, in this process ----------------------------------------------------------------------------------


def change(event: dict[str, Any], source: random.Random) -> dict[str, Any]:
    """Change an event in some places at random."""
    choose = source.choice
    odd = [
        "",
        " ",
        "0",
        "1",
        "-1",
        "1e3",
        "9" * 400,
        str(2**63),
        "sold",
        *_CONTROLS,
        "\ud800",
        "%2e",
        "NaN",
        _SECRET,
    ]
    for _ in range(source.randrange(4)):
        name, value = choose(
            [choose(_FOREIGN), (choose(_NAMES.split()), choose(["evil.example", *odd]))]
        )
        event["multiValueHeaders"][name] = [value] * choose([1, 1, 2])
    event["multiValueQueryStringParameters"] = {
        choose(["limit", "status", "cursor", "x"]): [choose(odd)]
    }
    event["pathParameters"] = {"petId": choose(odd)}
    if event["body"]:
        member: Any = choose([None, True, 0, 2**63, 1.5, [], {}, "x" * 257, *odd])
        text = json.dumps(
            {"name": "Rex", "categoryId": 1, choose(["name", "categoryId", "status", "x"]): member}
        )
        event["body"] = choose(
            [text, text, text[: source.randrange(len(text))] + choose(odd) + choose([text, ""])]
        )
    return event


def test_random_events(long: bool, monkeypatch: pytest.MonkeyPatch, record_property: Any) -> None:
    """Send changed events to the handlers: what is in `Host` would not get past a gateway on a socket."""
    from animal_store import dynamodb, telemetry

    count, log, source, database = (
        100_000 if long else 1000,
        io.StringIO(),
        random.Random(1),
        handlers.new_database(),
    )
    store = FaultyStore(dynamodb.client, database)
    monkeypatch.setattr(telemetry.logger().registered_handler, "stream", log)
    with contextlib.redirect_stdout(log):
        for name in source.choices(SUCCESSES, k=count):
            event = change(deepcopy(EVENTS[name]), source)
            got = handlers.invoke(event)
            base_url = "https://{domainName}/{stage}/v1".format_map(event["requestContext"])
            path = event["path"].removeprefix("/v1")
            check(event["httpMethod"], path, base_url, (got.status, got.headers, got.text))
    store.detach()
    handlers.discard(database)
    record_property("events of API Gateway, changed at random", count)
    record_property("log lines and metrics of these searched for secrets", search(log.getvalue()))
