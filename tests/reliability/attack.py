"""Requests that mean no good: generated ones, raw bytes, forged keys and cursors, bombs, injections, slow clients.

Most go to the gateway and the handlers in this process, with a canned store, so that there can be many; what concerns
the socket goes to a running service.
"""

import asyncio
import base64
import json
import os
import random
import re
import secrets
import string
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from math import sqrt
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from animal_store import api_key
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.reliability.harness import load_template
from tests.reliability.memory import Handlers

from tests.processes import RunningService, run_service
from tests.reliability.report import Row
from tools.local.events import Request
from tools.local.functions import share_environment
from tools.local.gateway import Gateway
from tools.local.output import OutputLines

PART = "attack"
_HANG_S = 5.0
_PATIENCE_S = 0.5
_ALLOWED = {
    ("GET", "/v1/pets"): {200, 400, 401},
    ("POST", "/v1/pets"): {201, 400, 401, 413, 415, 422},
    ("GET", "/v1/pets/{petId}"): {200, 400, 401, 404},
}
_INJECTED = "x-injected"

# -- what an answer may be ---------------------------------------------------------------------------------------------


def contract_problem(status: int, headers: dict[str, str], body: bytes, allowed: set[int]) -> str | None:
    """Say what is off the contract in an answer; None if nothing is.

    Args:
        status: The HTTP status.
        headers: By name in lower case.
        body: As received.
        allowed: The statuses that the operation documents.
    """
    if status not in allowed:
        return f"status {status}"
    if headers.get("content-type") != "application/json" or headers.get("cache-control") != "no-store":
        return f"headers {headers}"
    if _INJECTED in headers:
        return "an injected header"
    try:
        value = json.loads(body)
    except ValueError:
        return f"body {body[:200]!r}"
    if status < 400:
        pets = value if isinstance(value, list) else [value]
        good = all(isinstance(pet, dict) and {"id", "name", "categoryId"} <= pet.keys() for pet in pets)
    else:
        good = isinstance(value, dict) and value.keys() == {"code", "message", "status"} and value["status"] == status
    return None if good else f"body {body[:200]!r}"


# -- generated requests, in this process -------------------------------------------------------------------------------

_TOKENS = [
    "limit",
    "status",
    "cursor",
    "name",
    "categoryId",
    "id",
    "available",
    "pending",
    "sold",
    "Rex",
    "null",
    "NaN",
]
_NUMBERS = ["0", "1", "20", "100", "101", "-1", "1e3", "1.0", "9223372036854775807", "9223372036854775808", "9" * 400]
_ODD = [
    "",
    " ",
    "\t",
    "\x00",
    "\x7f",
    "\u2028",
    "\u202e",
    "é",
    "\U0001f98a",
    "%",
    "%2",
    "%zz",
    "%00",
    "%0d%0a",
    "'",
    '"',
    "\\",
]
_TYPES = ["application/json", "application/json; charset=utf-8", "text/plain", "", "application/json, text/html", "*/*"]


class Grammar:
    """Makes requests that are nearly right: quick, and the same for the same seed.

    Args:
        seed: Of its source of randomness.
        key: A valid key.
    """

    def __init__(self, seed: int, key: str) -> None:
        self._random = random.Random(seed)
        self._key = key

    def request(self) -> Request:
        """Make one."""
        choose = self._random.choice
        method = choose(["GET", "GET", "GET", "POST", "POST", "POST", "POST", "DELETE"])
        path = "/v1/pets" + choose(["", "", "", "", "" if method == "POST" else "/1", "/" + quote(self._atom())])
        query = "&".join(f"{self._word()}={quote(self._atom())}" for _ in range(self._random.randrange(4)))
        headers = [("Host", "127.0.0.1"), ("Authorization", self._authorization())]
        if self._random.random() < 0.5:
            headers.append(("Content-Type", choose(_TYPES)))
        if self._random.random() < 0.2:
            headers.append(("Idempotency-Key", choose(["k", '"k"', "", " ", "k" * 256, self._atom()])))
        return Request(method, path, query, headers, self._body(), "HTTP/1.1", "127.0.0.1", 80)

    def _word(self) -> str:
        return self._random.choice(_TOKENS)

    def _atom(self) -> str:
        return self._random.choice([self._word, lambda: self._random.choice(_NUMBERS), self._odd])()

    def _odd(self) -> str:
        return "".join(self._random.choice([*_ODD, *string.printable]) for _ in range(self._random.randrange(8)))

    def _authorization(self) -> str:
        right = f"Bearer {self._key}"
        return right if self._random.random() < 0.8 else self._random.choice([right[:-1], self._key, "", self._atom()])

    def _value(self, depth: int) -> Any:
        kind = self._random.randrange(8 if depth else 6)
        if kind < 2:
            return self._atom()
        if kind < 4:
            return self._random.choice([0, 1, -1, 2**63 - 1, 2**63, 1.5, True, False, None])
        if kind < 6:
            return self._random.choice([[], {}, "x" * 257, " ", "\ud800"])
        if kind == 6:
            return [self._value(depth - 1) for _ in range(3)]
        return {self._word(): self._value(depth - 1) for _ in range(3)}

    def _body(self) -> bytes:
        draw = self._random.random()
        if draw < 0.2:
            return b""
        if draw < 0.3:
            return self._random.randbytes(self._random.randrange(64))
        animal: dict[str, Any] = {"name": "Rex", "categoryId": 1}
        for _ in range(self._random.randrange(3)):
            animal[self._word()] = self._value(2)
        text = json.dumps(animal).encode()
        if draw < 0.5:
            at = self._random.randrange(len(text))
            text = text[:at] + self._random.randbytes(1) + text[at + 1 :]
        elif draw < 0.55:
            text = text[:-1] + b', "name": "twice"}'
        return text


def _hypothesis_requests(key: str) -> st.SearchStrategy[Request]:
    """Draw requests of any shape: any JSON, any text in the query and in headers, any path."""
    scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
    values = st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8)
    animals = st.fixed_dictionaries(
        {"name": st.text() | values, "categoryId": st.integers() | values}, optional={"status": values, "id": values}
    )
    bodies = st.binary() | (animals | values).map(lambda value: json.dumps(value).encode())
    latin = st.text(st.characters(min_codepoint=32, max_codepoint=255, exclude_characters="\x7f"))
    authorizations = st.just(f"Bearer {key}") | latin
    headers = st.tuples(
        st.just(("Host", "127.0.0.1")),
        st.tuples(st.just("Authorization"), authorizations),
        st.tuples(st.sampled_from(["Idempotency-Key", "Content-Type", "Authorization", "X-Forwarded-Proto"]), latin),
    )
    paths = (
        st.just("/v1/pets")
        | st.sampled_from(["/v1/pets", "/v1/pets/1"])
        | st.text().map(lambda text: "/v1/pets/" + quote(text, safe=""))
    )
    queries = st.dictionaries(st.sampled_from(["limit", "status", "cursor"]) | st.text(), st.text()).map(
        lambda pairs: "&".join(f"{quote(name)}={quote(value)}" for name, value in pairs.items())
    )
    methods = st.sampled_from(["GET", "POST"])
    return st.builds(
        Request, methods, paths, queries, headers, bodies, st.just("HTTP/1.1"), st.just("127.0.0.1"), st.just(80)
    )


class InProcess:
    """The gateway and the handlers in this process, with a canned store."""

    def __init__(self) -> None:
        self.handlers = Handlers()
        template = load_template()
        functions = {loaded.definition.logical_id: loaded for loaded in self.handlers.functions.values()}
        self._gateway = Gateway(template, functions, OutputLines(lambda *_: None), ThreadPoolExecutor(1))
        self._template = template
        self._runner = asyncio.Runner()

    def send(self, request: Request, row: Row, statuses: Counter[int]) -> None:
        """Send a request and judge the answer."""
        match = self._template.find(request.method, request.path)
        allowed = _ALLOWED[request.method, match.route.resource] if match else {400, 404}
        begin = time.monotonic()
        answer = self._runner.run(self._gateway.handle(request))
        seconds = time.monotonic() - begin
        headers = {name.lower(): value for name, value in answer.headers}
        problem = contract_problem(answer.status, headers, answer.body, allowed)
        row.runs += 1
        statuses[answer.status] += 1
        row.check(problem is None, f"{problem}: {request}")
        row.check(seconds < _HANG_S, f"{seconds:.1f} s: {request}")


def _generated(count: int, hypotheses: int) -> list[Row]:
    service, key = InProcess(), api_key.generate("test")
    bulk, statuses = Row(PART, "requests from a grammar of nearly right ones"), Counter[int]()
    grammar = Grammar(1, key)
    for _ in range(count):
        service.send(grammar.request(), bulk, statuses)
    bulk.remark = ", ".join(f"{status}: {number:,}" for status, number in sorted(statuses.items()))

    drawn, drawn_statuses = Row(PART, "requests drawn by Hypothesis"), Counter[int]()

    @settings(
        max_examples=hypotheses,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(_hypothesis_requests(key))
    def draw(request: Request) -> None:
        service.send(request, drawn, drawn_statuses)

    draw()
    drawn.remark = ", ".join(f"{status}: {number:,}" for status, number in sorted(drawn_statuses.items()))
    return [bulk, drawn, _timing(service, 400 if hypotheses < 1000 else 4000)]


_SERIES = 4


def _timing(service: InProcess, pairs: int) -> Row:
    """Measure nearly right keys against wrong ones, in turn: neither may take longer more often than chance has it."""
    row = Row(PART, "pairs of a nearly right and a wrong key, timed")
    right = api_key.generate("test")
    service.handlers.store.known = False

    def seconds(key: str) -> float:
        from tests.reliability.memory import _event

        event = _event("list", key)
        begin = time.perf_counter_ns()
        status = service.handlers.invoke("list", event)
        elapsed = time.perf_counter_ns() - begin
        row.check(status == 401, f"{status}", "leaks")
        return elapsed

    def share_slower() -> float:
        slower = 0
        for number in range(pairs):
            near, far = _alike(right), api_key.generate("test")
            first, second = (near, far) if number % 2 else (far, near)
            one, other = seconds(first), seconds(second)
            slower += (one > other) == (first == near)
        row.runs += pairs
        return slower / pairs

    # A busy machine slows many calls in a row, so one series beyond chance says little: a trend is there every time.
    deviation = 0.5 / sqrt(pairs)
    shares = [share_slower()]
    while abs(shares[-1] - 0.5) >= 4 * deviation and len(shares) < _SERIES:
        shares.append(share_slower())
    service.handlers.store.known = True
    said = " then ".join(f"{share:.1%}" for share in shares)
    row.remark = f"the nearly right one was slower in {said}; by chance 50 % ± {4 * deviation:.1%} (4 sigma)"
    trend = min(shares) >= 0.5 + 4 * deviation or max(shares) <= 0.5 - 4 * deviation
    row.check(not trend, row.remark, "leaks")
    return row


def _alike(key: str) -> str:
    """Make a well-formed key that differs from another in its last random characters and in the checksum alone."""
    while True:
        body = key[: -6 - 4] + "".join(random.choices(string.ascii_letters + string.digits, k=4))
        made = body + api_key._checksum(body)
        if made != key:
            return made


# -- on the socket -----------------------------------------------------------------------------------------------------


class Wire:
    """Raw HTTP to a running service.

    Args:
        service: The service.
    """

    def __init__(self, service: RunningService) -> None:
        parts = urlsplit(service.base_url)
        self._host, self._port = parts.hostname or "", parts.port or 0
        self.key = service.api_key

    async def send(self, raw: bytes, *, unfinished: bool = False) -> tuple[int, dict[str, str], bytes] | None:
        """Send bytes and read the first answer.

        Args:
            raw: The bytes.
            unfinished: Whether they may be the beginning of a request: the client then hangs up its half.

        Returns:
            Status, headers and body; None when the connection was closed without an answer.

        Raises:
            TimeoutError: Nothing came within 5 seconds.
        """
        reader, writer = await asyncio.open_connection(self._host, self._port)
        data = b""
        try:
            async with asyncio.timeout(_HANG_S):
                writer.write(raw)
                if unfinished:
                    with suppress(TimeoutError):
                        data = await asyncio.wait_for(reader.read(1 << 20), _PATIENCE_S)
                    writer.write_eof()
                while more := await reader.read(1 << 20):
                    data += more
        except ConnectionError:
            pass  # what came before the reset counts
        finally:
            writer.close()
        return _parsed(data)

    def request(
        self,
        target: str | bytes = "/v1/pets",
        *headers: bytes,
        method: bytes = b"GET",
        body: bytes = b"",
        authorization: bytes | None = None,
    ) -> bytes:
        """Write a request with the valid key unless another header is given."""
        encoded = target if isinstance(target, bytes) else target.encode("utf-8", "surrogateescape")
        given = authorization if authorization is not None else b"Authorization: Bearer " + self.key.encode()
        lines = [
            method + b" " + encoded + b" HTTP/1.1",
            b"Host: 127.0.0.1",
            b"Connection: close",
            f"Content-Length: {len(body)}".encode(),
            *([given] if given else []),
            *headers,
        ]
        return b"\r\n".join(lines) + b"\r\n\r\n" + body


def _parsed(data: bytes) -> tuple[int, dict[str, str], bytes] | None:
    head, _, body = data.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    match = re.fullmatch(r"HTTP/1\.[01] (\d{3}) .*", lines[0])
    if match is None:
        return None
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
    return int(match[1]), headers, body[: int(headers.get("content-length", len(body)))]


def _forgeries(key: str) -> Iterator[tuple[bytes, str, bool]]:
    """Make Authorization headers that are not right, the target they go to, and whether HTTP itself forbids them."""
    right = key.encode()
    bearer = b"Authorization: Bearer "
    for length in range(len(key)):
        yield bearer + right[:length], "/v1/pets", False
    for at in range(len("animal_test_"), len(key)):
        yield bearer + right[:at] + right[at : at + 1].swapcase() + right[at + 1 :], "/v1/pets", not key[at].isalpha()
    for at in range(len(key)):
        changed = b"0" if right[at : at + 1] != b"0" else b"1"
        yield bearer + right[:at] + changed + right[at + 1 :], "/v1/pets", False
    for _ in range(50):
        yield bearer + _alike(key).encode(), "/v1/pets", False
        yield bearer + api_key.generate("live").encode(), "/v1/pets", False
    for wrong in (
        bearer + right + b"0",
        bearer + right + right,
        bearer + right + b", " + right,
        bearer + right + b"," + b"Basic x",
        bearer + b'"' + right + b'"',
        bearer + right + b" " + right,
        bearer + b"=" + right,
        bearer + right.replace(b"a", "\u0430".encode()),  # a Cyrillic letter
        bearer + right.replace(b"t", "\uff54".encode()),  # a full-width letter
        bearer + right.replace(b"_", b"\xad"),
        bearer + quote(key.replace("_", "%5F")).encode(),
        bearer + base64.b64encode(right),
        b"Authorization: Basic " + base64.b64encode(right + b":"),
        b"Authorization: Basic " + base64.b64encode(b":" + right),
        b"Authorization: Digest " + right,
        b"Authorization: Token " + right,
        b"Authorization: Bearer:" + right,
        b"Authorization: " + right,
        b"Authorization: Bearer\xa0" + right,
        b"Authorization: Bearer",
        b"Authorization:",
        b"X-Api-Key: " + right,
        b"X-Authorization: Bearer " + right,
        b"Proxy-Authorization: Bearer " + right,
        b"Cookie: Authorization=Bearer " + right,
        bearer + right + b"\r\n" + bearer + right,
        bearer + right + b"\r\nauthorization: Bearer x",
        b"Authorization: x\r\n" + bearer + right,
    ):
        yield wrong, "/v1/pets", False
    for name in ("access_token", "api_key", "key", "Authorization"):
        yield b"", f"/v1/pets?{name}={key}", False
    yield bearer + right[:-1] + b"\x00", "/v1/pets", True
    yield bearer + right + b"\x00", "/v1/pets", True
    yield bearer + b"\x00" + right, "/v1/pets", True
    yield bearer + b"\x0b" + right, "/v1/pets", True
    yield b"Authorization : Bearer " + right, "/v1/pets", True
    yield b"Auth\x00orization: Bearer " + right, "/v1/pets", True


async def _keys(wire: Wire) -> Row:
    row, malformed = Row(PART, "forged keys, all refused"), 0
    good = await wire.send(wire.request())
    row.check(good is not None and good[0] == 200, f"the right key: {good}")
    for authorization, target, forbidden in _forgeries(wire.key):
        if authorization == b"Authorization: Bearer " + wire.key.encode():
            continue  # a digit has no other case
        answer = await wire.send(wire.request(target, authorization=authorization))
        row.runs += 1
        # What HTTP forbids is no request, so nobody is asked for a key: 400.
        malformed += answer is not None and answer[0] == 400
        row.check(answer is None or answer[0] >= 400, f"let in with {authorization!r}", "leaks")
        allowed = {400, 401} if forbidden else {401}
        problem = "no answer" if answer is None else contract_problem(*answer, allowed)
        row.check(problem is None, f"{problem}: {authorization!r} {target}")
    row.remark = f"401 to {row.runs - malformed:,}; 400 to {malformed} that are no HTTP"
    return row


async def _cursors(wire: Wire) -> Row:
    """Change every bit of a cursor; use it with another filter; use one of another stage."""
    row = Row(PART, "cursors: every bit flipped, other filters, another stage, forged")
    for number in range(3):
        body = json.dumps({"name": f"cursor {number}", "categoryId": number, "status": "sold"}).encode()
        await wire.send(wire.request(method=b"POST", body=body))
    page = await wire.send(wire.request("/v1/pets?limit=1"))
    assert page is not None
    found = re.search(r"cursor=([^&>]+)", page[1]["link"])
    assert found is not None
    cursor = found[1].replace("%3D", "=")
    raw = base64.urlsafe_b64decode(cursor)
    share_environment(load_template().functions.values())
    os.environ.update(STAGE="another", ANIMALS_TABLE="another", API_KEYS_TABLE="another")
    os.environ.update(POWERTOOLS_SERVICE_NAME="animal-store", POWERTOOLS_METRICS_NAMESPACE="AnimalStore")
    from animal_store import cursor as foreign

    forged = [
        base64.urlsafe_b64encode(bytes(byte ^ (1 << bit) * (at == here) for here, byte in enumerate(raw))).decode()
        for at in range(len(raw))
        for bit in range(8)
    ]
    forged += [cursor[:length] for length in range(len(cursor))]
    forged += [cursor + "A", cursor + "=", cursor.lower(), cursor.upper(), cursor[::-1], cursor[:-1] + "\u00e9"]
    forged += [secrets.token_urlsafe(18) for _ in range(100)]
    forged += [foreign.encode(1, None), foreign.encode(0, None), foreign.encode(2**62, "sold")]
    for target in (
        *(f"/v1/pets?cursor={quote(text)}" for text in forged if text != cursor),
        f"/v1/pets?cursor={cursor}&status=sold",
        f"/v1/pets?cursor={cursor}&status=available",
        f"/v1/pets?cursor={cursor}&cursor={cursor}",
    ):
        row.runs += 1
        answer = await wire.send(wire.request(target))
        row.check(answer is not None and answer[0] == 400, f"{answer and answer[0]} for {target}", "leaks")
    good = await wire.send(wire.request(f"/v1/pets?cursor={cursor}"))
    row.check(good is not None and good[0] == 200, f"the right cursor: {good}")
    return row


async def _bombs(wire: Wire) -> Row:
    row = Row(PART, "JSON bombs and huge requests: answered within 5 s, by 4xx")
    depth, wide = 100_000, 200_000
    bodies = {
        "deep arrays": b"[" * depth + b"]" * depth,
        "deep objects": b'{"name":' * depth + b"1" + b"}" * depth,
        "deep in a member": b'{"name":"a","categoryId":1,"x":' + b"[" * depth + b"]" * depth + b"}",
        "unclosed": b"[" * 1_000_000,
        "digits": b'{"name":"a","categoryId":' + b"9" * 2_000_000 + b"}",
        "exponent": b'{"name":"a","categoryId":1e999999999}',
        "long name": b'{"name":"' + b"a" * 5_000_000 + b'","categoryId":1}',
        "escapes": b'{"name":"' + b"\\u0000" * 500_000 + b'","categoryId":1}',
        "many members twice": b"{" + b",".join(b'"a":1' for _ in range(wide)) + b"}",
        "a member twice": b'{"name":"a","name":"b","categoryId":1}',
        "a nested member twice": b'{"name":"a","categoryId":1,"x":{"y":1,"y":2}}',
        "an escaped member twice": b'{"name":"a","\\u006eame":"b","categoryId":1}',
        "too large": b" " * (11 * 1024 * 1024),
    }
    for title, body in bodies.items():
        row.runs += 1
        begin = time.monotonic()
        answer = await wire.send(wire.request(method=b"POST", body=body))
        problem = "no answer" if answer is None else contract_problem(*answer, {400, 413})
        row.check(problem is None or (title == "too large" and answer is None), f"{problem}: {title}")
        row.check(time.monotonic() - begin < _HANG_S, f"late: {title}")
    for raw in (
        wire.request("/v1/pets", b"X-Big: " + b"a" * 100_000),
        wire.request("/v1/pets", *(f"X-{number}: a".encode() for number in range(5000))),
        wire.request("/v1/pets?limit=" + "1" * 100_000),
        wire.request("/v1/pets/" + "9" * 100_000),
    ):
        row.runs += 1
        answer = await wire.send(raw)
        row.check(answer is None or 400 <= answer[0] < 500, f"{answer and answer[0]} for {raw[:40]!r}")
    return row


async def _injections(wire: Wire) -> Row:
    """Try to break out of a header, a log line or a path."""
    row = Row(PART, "control characters and line ends in path, query, headers and body")
    payloads = [
        "\r\nX-Injected: 1",
        "\nX-Injected: 1",
        "\r\n\r\n<html>",
        "\x1b[2J",
        "\u2028{}",
        '"}\n{"level":"ERROR"',
        "\x00",
    ]
    for payload in payloads:
        encoded = quote(payload, safe="")
        body = json.dumps({"name": payload + "x", "categoryId": 1, payload: payload}).encode()
        for raw in (
            wire.request(f"/v1/pets/{encoded}"),
            wire.request(f"/v1/pets?cursor={encoded}"),
            wire.request(f"/v1/pets?status={encoded}&limit={encoded}"),
            wire.request(f"/v1/pets?{encoded}={encoded}"),
            wire.request(method=b"POST", body=body),
            wire.request("/v1/pets", b"Idempotency-Key: a" + payload.encode(), method=b"POST", body=body),
            wire.request("/v1/pets", b"Content-Type: a" + payload.encode(), method=b"POST", body=body),
            wire.request("/v1/pets", b"User-Agent: a" + payload.encode()),
            wire.request("/v1/pets", b"X-Forwarded-Proto: a" + payload.encode(), b"X-Forwarded-Port: a"),
            wire.request("/v1/pets", b"Host: evil" + payload.encode()),
        ):
            row.runs += 1
            answer = await wire.send(raw)
            statuses = {200, 201, 400, 401, 404, 415}
            problem = None if answer is None else contract_problem(*answer, statuses)
            row.check(
                problem is None, f"{problem}: {raw[:200]!r}", "leaks" if problem == "an injected header" else "other"
            )
    return row


class Damage:
    """Makes noise, cuts a good request off, or changes some bytes of it; the same each time.

    Args:
        good: The request.
    """

    def __init__(self, good: bytes) -> None:
        self._random = random.Random(2)
        self._good = good

    def make(self) -> bytes:
        """Make one."""
        source, kind = self._random, self._random.randrange(4)
        if kind == 0:
            return source.randbytes(source.randrange(1, 400))
        if kind == 1:
            return self._good[: source.randrange(1, len(self._good))]
        data = bytearray(self._good)
        for _ in range(source.randrange(1, 6)):
            at = source.randrange(len(data))
            data[at : at + source.randrange(2)] = source.choice(
                [b"\r", b"\n", b"\x00", b":", b" ", source.randbytes(2)]
            )
        return bytes(data)


async def _raw_bytes(wire: Wire, count: int) -> Row:
    row, closed = Row(PART, "raw bytes on the socket: answered by 4xx or closed, within 5 s"), 0
    damage = Damage(wire.request(method=b"POST", body=b'{"name":"Rex","categoryId":1}'))

    async def one(raw: bytes) -> None:
        nonlocal closed
        row.runs += 1
        try:
            answer = await wire.send(raw, unfinished=True)
        except TimeoutError:
            row.fail("other", f"hangs: {raw[:300]!r}")
            return
        if answer is None:
            closed += 1
            return
        problem = contract_problem(*answer, {200, 201, 400, 401, 404, 413, 415})
        # HEAD has no body; nor has what the client calls something else than HTTP/1.
        row.check(problem is None or not answer[2], f"{problem}: {raw[:300]!r}")

    for _ in range(count // 64):
        await asyncio.gather(*(one(damage.make()) for _ in range(64)))
    row.remark = f"{closed:,} closed without an answer"
    return row


async def _slow_clients(wire: Wire) -> Row:
    """Open connections that send a byte now and then; meanwhile others are served."""
    row = Row(PART, "requests beside 200 clients that never finish theirs")
    slow = []
    raw = wire.request(method=b"POST", body=b'{"name":"Rex","categoryId":1}')
    for number in range(200):
        _, writer = await asyncio.open_connection(wire._host, wire._port)
        writer.write(raw[: -1 - number % 100])
        slow.append(writer)
    latest = 0.0
    for _ in range(100):
        begin = time.monotonic()
        answer = await wire.send(wire.request())
        latest = max(latest, time.monotonic() - begin)
        row.runs += 1
        row.check(answer is not None and answer[0] == 200, f"{answer and answer[0]}")
    for writer in slow:
        writer.close()
    row.remark = f"the slowest took {latest:.2f} s"
    row.check(latest < _HANG_S, row.remark)
    return row


async def _secrets(wire: Wire, service: RunningService) -> Row:
    """Put a secret into every place that a client fills, then search all that the functions have written."""
    secret = f"sEcReT{secrets.token_hex(8)}"
    encoded = secret.encode()
    wrong_key = api_key.generate("live")
    for raw in (
        wire.request(f"/v1/pets/{secret}"),
        wire.request(f"/v1/pets?limit={secret}"),
        wire.request(f"/v1/pets?status={secret}"),
        wire.request(f"/v1/pets?cursor={secret}"),
        wire.request(f"/v1/pets?{secret}=1"),
        wire.request("/v1/pets", b"X-Secret: " + encoded),
        wire.request("/v1/pets", b"User-Agent: " + encoded),
        wire.request("/v1/pets", b"Cookie: " + encoded),
        wire.request("/v1/pets", b"Idempotency-Key: " + encoded, method=b"POST", body=b'{"name":"a","categoryId":1}'),
        wire.request("/v1/pets", b"Content-Type: " + encoded, method=b"POST", body=b"{}"),
        wire.request(method=b"POST", body=b'{"name":"' + encoded + b'","categoryId":1}'),
        wire.request(method=b"POST", body=b'{"name":1,"' + encoded + b'":"' + encoded + b'"}'),
        wire.request(method=b"POST", body=b'{"name":"a","categoryId":"' + encoded + b'"}'),
        wire.request(method=b"POST", body=b'{"name":"a","categoryId":1,"status":"' + encoded + b'"}'),
        wire.request(method=b"POST", body=encoded),
        wire.request(authorization=b"Authorization: Bearer " + encoded),
        wire.request(authorization=b"Authorization: Basic " + encoded),
        wire.request(authorization=b"Authorization: Bearer " + wrong_key.encode()),
    ):
        await wire.send(raw)
    lines = (service.data / "functions.log").read_text("utf-8").splitlines()
    row = Row(
        PART, "log lines and metrics searched for keys and secrets of all requests above; each is one JSON object"
    )
    for line in lines:
        row.runs += 1
        for needle in (secret, wire.key, wrong_key, "Bearer"):
            row.check(needle not in line, f"{needle[:6]}... in {line[:300]}", "leaks")
        try:
            json.loads(line.partition(" ")[2])
        except ValueError:
            row.fail("other", f"a log line is no JSON: {line[:300]}")
    return row


async def _on_the_socket(service: RunningService, raw: int) -> list[Row]:
    wire = Wire(service)
    rows = [await attack(wire) for attack in (_keys, _cursors, _bombs, _injections, _slow_clients)]
    rows.append(await _raw_bytes(wire, raw))
    rows.append(await _secrets(wire, service))
    return rows


def run(*, quick: bool) -> list[Row]:
    """Run this part; quick: a hundredth of the generated requests."""
    with tempfile.TemporaryDirectory(prefix="reliability-") as folder, run_service(Path(folder) / "data") as service:
        rows = asyncio.run(_on_the_socket(service, 320 if quick else 8000))
    from tests.reliability.memory import _silent

    with _silent():
        rows += _generated(*((1500, 300) if quick else (85_000, 15_000)))
    return rows
