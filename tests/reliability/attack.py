"""Attacks: on a running service through its socket, and on the handlers in this process with events of API Gateway.

Whatever is sent, each response must be one that the interface allows, point nowhere but to the service, and repeat no
secret; afterwards the log, the metrics and the terminal are searched for what the attacks have put in.
"""

import asyncio
import base64
import contextlib
import io
import json
import random
import re
import secrets
import socket
import tempfile
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

from animal_store import api_key

from tests import functions, openapi
from tests.functions import EVENTS, SUCCESSES
from tests.processes import RunningService, run_service
from tests.reliability.report import Row

PART = "attack"
_LATE_S = 5
_FUNCTION_S = 10
_LARGEST_BODY = 16 * 1024
# Requests may be many; the metrics are those of 3 operations by some 10 statuses and codes, and of 3 keys.
_MOST_METRICS = 60

_SECRET = f"sEcReT{secrets.token_hex(8)}"
_MARKUP = "<img src=x onerror=alert(1)>"
_HIDDEN = re.compile(rf"{_SECRET}|Bearer|animal_(?:test|live)_[0-9A-Za-z]{{9}}")
_NAMES = "Host X-Forwarded-Proto Origin Referer X-Injected Authorization Content-Type Content-Encoding Idempotency-Key"
_REX = b'{"name": "Rex", "categoryId": 1}'
_CONTROLS = ("\r\nX-Injected: 1", "\x1b[2J\x1b]0;x\x07", "\u202e\u2028", '"}\n{"level":"ERROR"', "\x00", "")
_FOREIGN = ("X-Forwarded-Host: evil.example", "X-Forwarded-Port: 81@evil.example", "Forwarded: host=evil.example")


class Response(NamedTuple):
    """What came back; names of headers in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes

    def problem(self, method: str, path: str, statuses: set[int], base_url: str) -> str | None:
        """Say how a response to a path below `/v1` differs from what the interface allows; None if it does not."""
        foreign = [name for name in self.headers if name.startswith("access-control-") or "injected" in name]
        links = re.findall(r"<([^>]*)>", self.headers.get("link", ""))
        found = openapi.problems(openapi.find(method, path), self.status, self.headers, self.body)
        rules = {
            f"status {self.status}": self.status in statuses,
            f"headers {foreign}": not foreign,
            f"Link {links}": all(link.partition("?")[0] == f"{base_url}/pets" for link in links),
            f"{found}": not found,
            "a secret in the message": self.status < 400 or _SECRET.encode() not in self.body,
        }
        return next((rule for rule, holds in rules.items() if not holds), None)


# -- on the socket -----------------------------------------------------------------------------------------------------


class Wire:
    """Raw HTTP to a running service; what comes of it goes into a row of the report."""

    def __init__(self, service: RunningService, row: Row) -> None:
        self._service, self.base_url, self.key, self.row = service, service.base_url, service.api_key, row
        self._address = urlsplit(self.base_url).hostname, urlsplit(self.base_url).port

    def issue(self, label: str) -> str:
        return str(json.loads(self._service.tool("keys", "issue", "--label", label, "--json"))["key"])

    async def send(self, raw: bytes, *, unfinished: bool = False) -> list[Response]:
        """Send bytes and read every response until the connection ends, or the service waits for the rest."""
        reader, writer = await asyncio.open_connection(*self._address)
        writer.write(raw)
        data = b""
        try:
            while more := await asyncio.wait_for(reader.read(1 << 20), 0.5 if unfinished else _LATE_S):
                data += more
        except ConnectionError:
            pass  # what came before a reset counts
        except TimeoutError:
            data += b"" if unfinished else b"(then nothing, and no end)"
        writer.close()
        self.row.runs += 1
        return list(_responses(data))

    def request(self, target: str, *headers: str, body: bytes | None = None, key: str | None = None) -> bytes:
        """Write the last request of a connection; `key` replaces the Authorization header."""
        host, port = self._address
        method, length = ("GET", 0) if body is None else ("POST", len(body))
        authorization = f"Authorization: Bearer {self.key}" if key is None else key
        lines = [f"{method} {target} HTTP/1.1", f"Host: {host}:{port}", f"Content-Length: {length}", authorization]
        return "\r\n".join([*filter(None, lines), "Connection: close", *headers, "", ""]).encode() + (body or b"")

    async def ask(self, statuses: set[int], target: str, *headers: str, **options: Any) -> Response:
        """Send one request: there must be one response, in time, as the interface allows."""
        raw = self.request(target, *headers, **options)
        response, *more = await self.send(raw) or [Response(0, {}, b"none")]
        path = re.sub(r"^/v1|\?.*", "", target).replace("p%65ts", "pets")
        method = "GET" if options.get("body") is None else "POST"
        problem = f"{1 + len(more)} responses" if more else response.problem(method, path, statuses, self.base_url)
        # Any success that is not due is an entry, or somebody else's data.
        leak = 200 <= response.status < 300 and response.status not in statuses
        self.row.check(problem is None, f"{problem}: {raw[:300]!r}", "leaks" if leak else "other")
        return response


def _responses(data: bytes) -> Iterator[Response]:
    """Take the bytes of a connection apart; what is not a whole response becomes one of status 0."""
    while data:
        head, _, rest = data.partition(b"\r\n\r\n")
        status, *lines = head.decode("latin-1").split("\r\n")
        match = re.fullmatch(r"HTTP/1\.[01] (\d{3})\b.*", status)
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        length = int(headers.get("content-length", len(rest)))
        if match is None or len(rest) < length:
            yield Response(0, {}, data)
            return
        yield Response(int(match[1]), headers, rest[:length])
        data = rest[length:]


async def _keys(wire: Wire) -> None:
    """Forge the Authorization header: cut, change, extend, double, encode, and move it elsewhere."""
    right = wire.key
    await wire.ask({200}, "/v1/pets")
    forged = [right[:length] for length in range(0, len(right), 3)]
    forged += [right[:at] + ("0" if right[at] != "0" else "1") + right[at + 1 :] for at in range(len(right))]
    forged += [right + tail for tail in ("0", right, f",{right}", f", Bearer {right}", f" {right}", "=", "\xad", "%20")]
    forged += [api_key.generate("test"), f'"{right}"', quote(right.replace("_", "%5F")), right.encode().hex()]
    headers = [f"Authorization: Bearer {key}" for key in forged]
    headers += [f"Authorization: {scheme}{right}" for scheme in ("", "Basic ", "Token ", "Bearer:", "Bearer\xa0")]
    headers += [f"{name}: Bearer {right}" for name in ("X-Authorization", "Proxy-Authorization", "Cookie")]
    headers += [f"Authorization: Bearer {right}\r\nAuthorization: {other}" for other in ("x", f"Bearer {right}")]
    for header in headers:
        await wire.ask({401}, "/v1/pets", key=header)
    for name in ("access_token", "api_key", "Authorization"):
        await wire.ask({401}, f"/v1/pets?{name}={right}", key="")


async def _others(wire: Wire) -> None:
    """Use another caller's Idempotency-Key, and cursors that were changed or made for another list."""
    for key in (wire.key, wire.issue("second")):
        body = json.dumps({"name": f"of {key[-6:]}", "categoryId": 1, "status": "sold"}).encode()
        header = f"Authorization: Bearer {key}"
        response = await wire.ask({201}, "/v1/pets", "Idempotency-Key: k", body=body, key=header)
        wire.row.check("idempotency-replayed" not in response.headers, "another's creation", "leaks")
    page = await wire.ask({200}, "/v1/pets?limit=1")
    cursor = re.sub(r".*cursor=([^&>]+).*", r"\1", page.headers.get("link", ""))
    raw = base64.urlsafe_b64decode(cursor)
    flipped = [bytes(byte ^ (at == here) for here, byte in enumerate(raw)) for at in range(len(raw))]
    forged = [base64.urlsafe_b64encode(each).decode() for each in flipped]
    for query in (*forged, cursor[:-1], f"{cursor}&status=sold", f"{cursor}&cursor={cursor}", cursor.swapcase()):
        await wire.ask({400}, f"/v1/pets?cursor={query}")
    await wire.ask({200}, f"/v1/pets?cursor={cursor}")


async def _bodies(wire: Wire) -> None:
    """Send what is deep, long, twice the same, large, or compressed."""
    deep, opened = _LARGEST_BODY // 2 - 50, b'{"name":"a","categoryId":1,"x":'
    for body in (b"[" * deep + b"]" * deep, b'{"a":' * (deep // 3), opened + b"9" * deep + b"}", opened + b'1,"x":1}'):
        await wire.ask({400}, "/v1/pets", body=body)
    for large in (_LARGEST_BODY, 1_000_000, 11_000_000):
        await wire.ask({413}, "/v1/pets", body=opened + b'"' + b"a" * large + b'"}')
    await wire.ask({415}, "/v1/pets", "Content-Encoding: gzip", body=_REX)


async def _framing(wire: Wire) -> None:
    """Hide a creation in what one reading of a request takes for its body; no reading may carry it out."""
    name = f"hidden {secrets.token_hex(4)}"
    hidden = wire.request("/v1/pets", body=json.dumps({"name": name, "categoryId": 1}).encode())
    empty = wire.request("/v1/pets", body=b"").replace(b"Connection: close\r\n", b"")
    whole = empty.replace(b"Length: 0", b"Length: %d" % len(hidden)) + hidden
    for method, status in ((b"POST", 400), (b"PATCH", 404), (b"GET", 200)):
        found = await wire.send(whole.replace(b"POST", method, 1) + wire.request("/v1/pets/999999999"))
        wire.row.check([each.status for each in found] == [status, 404], f"out of step: {found}", "leaks")
    coding = "Transfer-Encoding"
    lengths = ["0\r\nContent-Length: 9", "+0", "0x0", "-1", "0, 9", "\n 0", f"0\r\n{coding}: xchunked"]
    lengths += [f"0\r\n {coding}: chunked", f"0\r\nX: y\r{coding}: chunked", f"0\r\n{coding} : chunked"]
    for length in lengths:
        framed = empty.replace(b"Length: 0", b"Length: " + length.encode())
        found = await wire.send(framed + b"0\r\n\r\n" + hidden, unfinished=True)
        wire.row.check(all(each.status == 400 for each in found), f"{length!r}: {found}", "leaks")
    page = await wire.ask({200}, "/v1/pets?limit=100")
    wire.row.check(name.encode() not in page.body, "a hidden request was carried out", "leaks")


async def _injections(wire: Wire) -> None:
    """Put a secret, control characters and other hosts into all that a client can fill."""
    everything = {200, 201, 400, 401, 404, 415}
    for tail in _CONTROLS:
        text = quote(_SECRET + tail, safe="")
        for target in (f"pets/{text}", text, f"pets?limit={text}", f"pets?cursor={text}", f"pets?{text}={text}"):
            await wire.ask(everything, f"/v1/{target}")
        for member in ("name", "categoryId", "status", tail):
            pet = {"name": "a", "categoryId": 1, member: _SECRET + tail}
            await wire.ask(everything, "/v1/pets", body=json.dumps(pet).encode())
    for name in ("Idempotency-Key", "Content-Type", "User-Agent", "Cookie", "X-Amzn-Trace-Id"):
        await wire.ask(everything, "/v1/pets", f"{name}: {_SECRET}", body=_SECRET.encode())
    for scheme in ("Bearer", "Basic"):
        await wire.ask({401}, f"/v1/pets?key={wire.key}", key=f"Authorization: {scheme} {_SECRET}")
    for header in (*_FOREIGN, "Origin: http://evil.example"):
        for target in ("/v1/pets?limit=1", "/v1/pets/1", "/v1/p%65ts?limit=1"):
            await wire.ask({200}, target, header)


async def _pages(wire: Wire) -> None:
    """Look at the pages from another origin, after a key whose label is HTML has been used."""
    await wire.ask({200}, "/v1/pets/1", key=f"Authorization: Bearer {wire.issue(_MARKUP)}")
    for target in ("/docs", "/status", "/status.json", "/openapi.yaml", f"/docs?url={quote(_MARKUP)}"):
        (page,) = await wire.send(wire.request(target, "Origin: http://evil.example", key=""))
        nosniff = page.headers.get("x-content-type-options") == "nosniff"
        markup = "html" in page.headers.get("content-type", "") and _MARKUP.encode() in page.body
        cors = any(name.startswith("access-control-") for name in page.headers)
        wire.row.check(page.status == 200 and nosniff, f"{target}: {page}")
        wire.row.check(not markup and not cors, f"markup or CORS in {target}", "leaks")
        wire.row.check(target != "/status.json" or b"onerror" in page.body, "the label is not shown")


async def _on_the_socket(service: RunningService) -> list[Row]:
    rows = []
    for attack in (_keys, _others, _bodies, _framing, _injections, _pages):
        rows.append(Row(PART, str(attack.__doc__).rstrip(".")))
        await attack(Wire(service, rows[-1]))
    rows.append(Row(PART, "Search log lines, metrics and the terminal for what all of this has left"))
    _search((service.data / "functions.log").read_text("utf-8"), rows[-1])
    shown = re.findall(r"^\d\d:\d\d:\d\d .*", service.console.read_text("utf-8"), re.MULTILINE)
    rows[-1].check(shown and "".join(shown).isprintable(), "control characters in the terminal")
    rows[-1].check(service.api_key not in "".join(shown), "a key in the terminal", "leaks")
    return rows


def _search(log: str, row: Row) -> None:
    """Look for secrets in what the functions have written, and for metrics that grow with the requests."""
    metrics = set()
    for line in log.splitlines():
        row.runs += 1
        row.check(not _HIDDEN.search(line), f"a secret in the log: {line[:500]}", "leaks")
        try:
            entry = json.loads(line[line.index("{") :])  # the local gateway may write the function's name in front
        except ValueError:
            row.fail("other", f"a log line is not JSON: {line[:500]}")
            continue
        for directive in entry.get("_aws", {}).get("CloudWatchMetrics", ()):
            series = [tuple(str(entry[name]) for name in names) for names in directive["Dimensions"]]
            metrics |= {(metric["Name"], *values) for values in series for metric in directive["Metrics"]}
    row.check(0 < len(metrics) <= _MOST_METRICS, f"{len(metrics)} metrics: {sorted(metrics)[:5]}")
    row.remark = f"{len(metrics)} metrics"


# -- on the handlers, in this process ----------------------------------------------------------------------------------


def _judge(row: Row, event: dict[str, Any], late_s: float, statuses: set[int]) -> None:
    """Invoke a function; its response must be what the interface allows, in time."""
    row.runs += 1
    got = functions.invoke(event, functions.Context(_FUNCTION_S))
    base_url = "https://{domainName}/{stage}/v1".format_map(event["requestContext"])
    response = Response(got.status, {name.lower(): value for name, value in got.headers.items()}, got.text.encode())
    problem = response.problem(event["httpMethod"], event["path"].removeprefix("/v1"), statuses, base_url)
    row.check(problem is None and got.seconds < late_s, f"{problem or 'late'}: {json.dumps(event)[:1500]}")


def _change(event: dict[str, Any], source: random.Random) -> dict[str, Any]:
    """Change an event in some places at random."""
    choose = source.choice
    odd = ["", " ", "0", "1", "-1", "1e3", "9" * 400, str(2**63), "sold", *_CONTROLS, "\ud800", "%2e", "NaN", _SECRET]
    for _ in range(source.randrange(4)):
        name, value = choose([choose(_FOREIGN).split(": "), (choose(_NAMES.split()), choose(["evil.example", *odd]))])
        event["multiValueHeaders"][name] = [value] * choose([1, 1, 2])
    event["multiValueQueryStringParameters"] = {choose(["limit", "status", "cursor", "x"]): [choose(odd)]}
    event["pathParameters"] = {"petId": choose(odd)}
    if event["body"]:
        member: Any = choose([None, True, 0, 2**63, 1.5, [], {}, "x" * 257, *odd])
        text = json.dumps({"name": "Rex", "categoryId": 1, choose(["name", "categoryId", "status", "x"]): member})
        event["body"] = choose([text, text, text[: source.randrange(len(text))] + choose(odd) + choose([text, ""])])
    return event


def _on_the_handlers(count: int) -> list[Row]:
    changed = Row(PART, "Change events of API Gateway at random, and search what the functions write")
    silent = Row(PART, "Let the store take connections and never answer: 503 within the function's 10 s")
    log, source = io.StringIO(), random.Random(1)
    functions.handler(functions.function_of(EVENTS[SUCCESSES[0]]))
    from animal_store import dynamodb

    sdk: Any = dynamodb.client.meta.events
    database = functions.new_database(pets=True)
    with socket.create_server(("127.0.0.1", 0)) as endpoint, contextlib.redirect_stdout(log):

        def send_there(request: Any, **_: object) -> None:
            request.url = f"http://127.0.0.1:{endpoint.getsockname()[1]}/"

        database.attach(dynamodb.client)
        for name in source.choices(SUCCESSES, k=count):
            statuses = {status for status in functions.operation_of(EVENTS[name]).statuses if status < 500}
            _judge(changed, _change(deepcopy(EVENTS[name]), source), _LATE_S, statuses)
        sdk.unregister("before-send.dynamodb", database.answer)  # the key is known by now
        sdk.register("before-send.dynamodb", send_there)
        for name in SUCCESSES:
            _judge(silent, deepcopy(EVENTS[name]), _FUNCTION_S, {503})
    functions.discard(database)
    _search(log.getvalue(), changed)
    return [changed, silent]


def run(*, quick: bool) -> list[Row]:
    """Run this part; quick: a fiftieth of the events."""
    with tempfile.TemporaryDirectory(prefix="attack-") as folder, run_service(Path(folder)) as service:
        rows = asyncio.run(_on_the_socket(service))
    return rows + _on_the_handlers(1000 if quick else 50_000)
