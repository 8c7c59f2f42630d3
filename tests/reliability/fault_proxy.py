"""A TCP proxy between the SDK and the store that breaks chosen calls in chosen ways.

One port serves one execution environment, which makes one call at a time; so one plan at a time is enough.
"""

import asyncio
import json
import socket
import struct
import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum

HOST = "127.0.0.1"
_TARGET = "DynamoDB_20120810."
_STALL_S = 12.0  # longer than any read timeout, and than any function lives
_REFUSALS_S = (0.001, 0.02, 60.0)  # how long connections are refused: the SDK pauses up to 25, then 50 ms


class Fault(StrEnum):
    """A way to break a call."""

    REFUSED = "connection refused"
    RESET_BEFORE = "reset before the store gets the call"
    LOST_ANSWER = "committed, answer dropped"
    RESET_ANSWER = "committed, reset in the middle of the answer"
    CUT_ANSWER = "committed, connection closed in the middle of the answer"
    GARBLED_ANSWER = "committed, half of the answer under the checksum of the whole"
    STALL_BEFORE = "not committed, no answer within the read timeout"
    STALL_AFTER = "committed, no answer within the read timeout"
    THROTTLED = "throttled (400)"
    FAILED_BEFORE = "500, not committed"
    FAILED_AFTER = "500, committed all the same"


STALLS = frozenset({Fault.STALL_BEFORE, Fault.STALL_AFTER})
_BEFORE = frozenset({Fault.RESET_BEFORE, Fault.STALL_BEFORE, Fault.THROTTLED, Fault.FAILED_BEFORE})
_THROTTLES = ("ThrottlingException", "ProvisionedThroughputExceededException", "RequestLimitExceeded")


@dataclass(slots=True)
class Plan:
    """What to do to a call.

    Args:
        call: Which: operation and, for the key table, `of a key`: `PutItem`, `GetItem of a key`.
        fault: How to break it.
        attempts: How many attempts of it, the SDK's retries included; more than it makes for all.
        predecessor: For REFUSED: the call after whose answer the port closes; None closes it at once.
        hits: How often it was broken.
    """

    call: str
    fault: Fault
    attempts: int
    predecessor: str | None = None
    hits: int = 0


@dataclass(frozen=True, slots=True)
class Message:
    """An HTTP message: its start line and headers as sent, and its body."""

    head: bytes
    body: bytes

    def header(self, name: str) -> str | None:
        """Find a header."""
        for line in self.head.decode("latin-1").split("\r\n")[1:]:
            key, _, value = line.partition(":")
            if key.lower() == name:
                return value.strip()
        return None

    @property
    def raw(self) -> bytes:
        """All of it."""
        return self.head + self.body


Watcher = Callable[[str, str], "asyncio.Future[None] | None"]
"""Is told of each call, `before` the store gets it and `after` it has answered; what it returns is awaited."""


@dataclass(slots=True)
class FaultProxy:
    """A port in front of the store.

    Args:
        upstream: The store's port.
        watcher: Is told of every call.
    """

    upstream: int
    watcher: Watcher | None = None
    plan: Plan | None = None
    calls: list[str] = field(default_factory=list)
    port: int = 0
    _reserved: socket.socket | None = None
    _server: asyncio.Server | None = None
    _writers: set[asyncio.StreamWriter] = field(default_factory=set)
    _reopening: asyncio.TimerHandle | None = None
    _opening: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def url(self) -> str:
        """For `AWS_ENDPOINT_URL_DYNAMODB`."""
        return f"http://{HOST}:{self.port}"

    async def open(self) -> None:
        """Start to listen."""
        # A bound socket that never listens keeps the port while connections to it are refused.
        self._reserved = _bound(0)
        self.port = self._reserved.getsockname()[1]
        await self._listen()

    async def close(self) -> None:
        """Stop, with all connections."""
        if self._reopening:
            self._reopening.cancel()
        self._refuse(None)
        if self._reserved:
            self._reserved.close()

    async def use(self, plan: Plan | None) -> None:
        """Break calls by this plan from now on."""
        self.plan, self.calls = plan, []
        if self._reopening:
            self._reopening.cancel()
        await self._listen()
        if plan and plan.fault is Fault.REFUSED and plan.predecessor is None:
            self._refuse_for_a_while(plan, keep=None)

    async def _listen(self, ending: Plan | None = None) -> None:
        """Open the port; to end a refusal, only if its plan is not over: else the port is another plan's business."""
        async with self._opening:
            if self._server is None and (ending is None or ending is self.plan):
                self._server = await asyncio.start_server(self._serve, sock=_bound(self.port))

    def _refuse(self, keep: asyncio.StreamWriter | None) -> None:
        """Close the port, and every connection but one."""
        if self._server:
            self._server.close()
            self._server = None
        for writer in self._writers:
            if writer is not keep:
                writer.transport.abort()

    def _refuse_for_a_while(self, plan: Plan, keep: asyncio.StreamWriter | None) -> None:
        plan.hits += 1
        self._refuse(keep)
        loop = asyncio.get_running_loop()
        delay = _REFUSALS_S[min(plan.attempts, len(_REFUSALS_S)) - 1]
        self._reopening = loop.call_later(delay, lambda: loop.create_task(self._listen(plan)))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        store: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        try:
            while request := await _read(reader):
                if store is None:
                    store = await asyncio.open_connection(HOST, self.upstream)
                if not await self._exchange(request, store, writer):
                    break
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # one of the two sides has hung up
        finally:
            self._writers.discard(writer)
            for one in (writer, store[1] if store else None):
                if one:
                    one.transport.abort()

    async def _exchange(
        self, request: Message, store: tuple[asyncio.StreamReader, asyncio.StreamWriter], writer: asyncio.StreamWriter
    ) -> bool:
        """Pass one call on, or break it; tell whether the connection goes on."""
        call = _call(request)
        self.calls.append(call)
        await self._tell(call, "before")
        plan = self.plan
        fault = None
        if plan and plan.fault is not Fault.REFUSED and call == plan.call and plan.hits < plan.attempts:
            plan.hits += 1
            fault = plan.fault
        answer = None
        if fault not in _BEFORE:
            store[1].write(request.raw)
            answer = _with_checksum(await _answer(store[0]))
        await self._tell(call, "after")
        if plan and plan.fault is Fault.REFUSED and plan.predecessor == call and not plan.hits:
            self._refuse_for_a_while(plan, keep=writer)
            assert answer is not None
            writer.write(answer.raw)
            await writer.drain()
            return False
        if fault is not None:
            return await _break(fault, len(self.calls), answer, writer)
        assert answer is not None
        writer.write(answer.raw)
        await writer.drain()
        return True

    async def _tell(self, call: str, when: str) -> None:
        if self.watcher:
            waiting = self.watcher(call, when)
            if waiting:
                await waiting


async def _break(fault: Fault, number: int, answer: Message | None, writer: asyncio.StreamWriter) -> bool:
    """Answer a call as the fault has it; tell whether the connection goes on."""
    match fault:
        case Fault.THROTTLED:
            writer.write(_error(400, _THROTTLES[number % len(_THROTTLES)]))
            return True
        case Fault.FAILED_BEFORE | Fault.FAILED_AFTER:
            writer.write(_error(500, "InternalServerError"))
            return True
        case Fault.STALL_BEFORE | Fault.STALL_AFTER:
            await asyncio.sleep(_STALL_S)
        case Fault.RESET_BEFORE | Fault.LOST_ANSWER:
            _reset(writer)
        case Fault.GARBLED_ANSWER:
            assert answer is not None
            writer.write(_message(200, answer.body[: len(answer.body) // 2], zlib.crc32(answer.body)))
            return True
        case Fault.RESET_ANSWER | Fault.CUT_ANSWER:
            assert answer is not None
            writer.write(answer.raw[: len(answer.head) + len(answer.body) // 2])
            await writer.drain()
            await asyncio.sleep(0.005)
            if fault is Fault.RESET_ANSWER:
                _reset(writer)
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()
    return False


def _bound(port: int) -> socket.socket:
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    made.bind((HOST, port))
    return made


def _reset(writer: asyncio.StreamWriter) -> None:
    """Close with a RST instead of a FIN."""
    connection = writer.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def _read(reader: asyncio.StreamReader) -> Message | None:
    """Read a message that tells its length; None at the end of the connection."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    message = Message(head, b"")
    if (message.header("transfer-encoding") or "").lower() == "chunked":
        raise NotImplementedError("the store answers in chunks")
    return Message(head, await reader.readexactly(int(message.header("content-length") or 0)))


async def _answer(reader: asyncio.StreamReader) -> Message:
    answer = await _read(reader)
    if answer is None:
        raise ConnectionError("the store has hung up")
    return answer


def _call(request: Message) -> str:
    operation = (request.header("x-amz-target") or "").removeprefix(_TARGET)
    table = json.loads(request.body).get("TableName", "")
    return f"{operation} of a key" if "ApiKeys" in table else operation


def _with_checksum(answer: Message) -> Message:
    """Add the checksum that DynamoDB sends with every answer."""
    if answer.header("x-amz-crc32"):
        return answer
    return Message(answer.head[:-2] + f"x-amz-crc32: {zlib.crc32(answer.body)}\r\n\r\n".encode(), answer.body)


def _error(status: int, code: str) -> bytes:
    body = json.dumps({"__type": f"com.amazonaws.dynamodb.v20120810#{code}", "message": "Try again."}).encode()
    return _message(status, body, zlib.crc32(body))


def _message(status: int, body: bytes, checksum: int) -> bytes:
    head = f"HTTP/1.1 {status} OK\r\nContent-Type: application/x-amz-json-1.0\r\nContent-Length: {len(body)}\r\n"
    return f"{head}x-amz-crc32: {checksum}\r\n\r\n".encode() + body
