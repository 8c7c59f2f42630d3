"""The function's process is killed around each of its calls of the store; a client with an Idempotency-Key repeats.

`before` a call: it is never sent. `after` a call: the store has done it, the process dies before the answer arrives.
"""

import asyncio
import itertools
import json
import os
import random
import signal
import sys
import uuid
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime

from tests.reliability.audit import Creation, Ledger
from tests.reliability.fault_proxy import FaultProxy
from tests.reliability.harness import SECRET_NAME, Pet, Store, store
from tests.reliability.report import Row
from tools import ROOT
from tools.local.events import Request, proxy_event
from tools.local.store import ENDPOINT_VARIABLE
from tools.local.template import Match, Route

PART = "kills"
_CALLS = 3  # key, counter, animal
_LANES = 3
_GIVE_UP_S = 30.0


@dataclass(frozen=True, slots=True)
class Point:
    """Where the process is killed.

    Args:
        call: The number of its call of the store, from 0.
        when: `before` or `after` the store does it.
    """

    call: int
    when: str


POINTS = [Point(call, when) for call in range(_CALLS) for when in ("before", "after")]


@dataclass(slots=True)
class Lane:
    """One process that forks, and the proxy that its children call.

    Args:
        store: Where the proxy leads.
        key: A valid API key.
    """

    store: Store
    key: str
    kills: int = 0
    _proxy: FaultProxy = field(init=False)
    _process: asyncio.subprocess.Process = field(init=False)
    _point: Point | None = None
    _seen: int = 0
    _pid: "asyncio.Future[int]" = field(init=False)

    async def open(self) -> None:
        """Start both."""
        self._proxy = FaultProxy(self.store.port, self._watch)
        await self._proxy.open()
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "tests.reliability.fork_server",
            cwd=ROOT,
            env={**os.environ, ENDPOINT_VARIABLE: self._proxy.url, "PYTHONPATH": f"{ROOT}:{ROOT / 'layers/common'}"},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=1 << 20,
        )

    async def close(self) -> None:
        """Stop both."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        await self._process.wait()
        await self._proxy.close()

    def _watch(self, _call: str, when: str) -> "asyncio.Future[None] | None":
        point, seen = self._point, self._seen
        if when == "after":
            self._seen += 1
        if point and (seen, when) == (point.call, point.when):
            return asyncio.ensure_future(self._kill())
        return None

    async def _kill(self) -> None:
        os.kill(await self._pid, signal.SIGKILL)
        self.kills += 1
        raise ConnectionError("the caller is dead")

    async def create(self, new: Pet, idempotency_key: str | None, point: Point | None) -> Pet | None:
        """Send a creation to a process of its own and kill it at a point.

        Returns:
            The animal of the 201 answer; None when there was no answer.
        """
        assert self._process.stdin is not None
        self._point, self._seen = point, 0
        self._pid = asyncio.get_running_loop().create_future()
        self._process.stdin.write((json.dumps(_event(self.key, new, idempotency_key)) + "\n").encode())
        pet: Pet | None = None
        while True:
            line = json.loads(await asyncio.wait_for(self._readline(), _GIVE_UP_S))
            if "pid" in line:
                self._pid.set_result(line["pid"])
            elif "answer" in line:
                if line["answer"]["statusCode"] == 201:
                    pet = json.loads(line["answer"]["body"])
            else:
                return pet

    async def _readline(self) -> bytes:
        assert self._process.stdout is not None
        return await self._process.stdout.readline()


def _event(key: str, new: Pet, idempotency_key: str | None) -> dict[str, object]:
    headers = [("Host", "127.0.0.1"), ("Authorization", f"Bearer {key}"), ("Content-Type", "application/json")]
    headers += [("Idempotency-Key", idempotency_key)] if idempotency_key else []
    body = json.dumps(new).encode()
    request = Request("POST", "/v1/pets", "", headers, body, "HTTP/1.1", "127.0.0.1", 80)
    match = Match(Route("POST", "/v1/pets", "CreatePetFunction"), {})
    return proxy_event(request, match, stage="local", request_id=str(uuid.uuid4()), now=datetime.now(UTC))


async def _attempt(lane: Lane, creation: Creation, idempotency_key: str | None, point: Point | None) -> bool:
    kills = lane.kills
    pet = await lane.create(creation.new, idempotency_key, point)
    killed = lane.kills > kills
    if point:
        creation.row.check(killed, f"{creation.new}: not killed at {point}")
    if pet:
        creation.acknowledged.append(pet)
    else:
        creation.row.check(killed, f"{creation.new}: no animal without a kill")
    return pet is not None


async def _perform(lane: Lane, ledger: Ledger, number: int, row: Row, point: Point, *, keyed: bool) -> None:
    new = {"name": f"{SECRET_NAME} {number}", "categoryId": number}
    creation = ledger.open(new, row, keyed=keyed)
    idempotency_key = str(uuid.uuid4()) if keyed else None
    row.runs += 1
    acknowledged = await _attempt(lane, creation, idempotency_key, point)
    if not keyed:
        return
    if random.random() < 0.5:
        # Killed where it looks the key up, or takes an id; a repetition may have no third call to be killed at.
        acknowledged |= await _attempt(lane, creation, idempotency_key, random.choice(POINTS[:4]))
    acknowledged |= await _attempt(lane, creation, idempotency_key, None)
    row.check(acknowledged, f"{new}: repeated, and no animal")
    row.check(len({pet["id"] for pet in creation.acknowledged}) == 1, f"{creation.acknowledged}", "doubles")


async def _run(count: int) -> list[Row]:
    rows = {
        (point, keyed): Row(
            PART,
            f"killed {point.when} call {point.call + 1} of {_CALLS} {'with' if keyed else 'without'} Idempotency-Key",
        )
        for keyed in (False, True)
        for point in POINTS
    }
    work = [case for case in rows for _ in range(count)]
    random.shuffle(work)
    queue, numbers, ledger = iter(work), itertools.count(1), Ledger()
    with store() as made:
        async with AsyncExitStack() as stack:
            lanes = [Lane(made, made.add_key()) for _ in range(_LANES)]
            for lane in lanes:
                await lane.open()
                stack.push_async_callback(lane.close)

            async def work_off(lane: Lane) -> None:
                for point, keyed in queue:
                    await _perform(lane, ledger, next(numbers), rows[point, keyed], point, keyed=keyed)

            await asyncio.gather(*map(work_off, lanes))
            kills = sum(lane.kills for lane in lanes)
        counts = ledger.audit(made.pets())
        remark = ", ".join(f"{number:,} {what}" for what, number in counts.items())
    summary = Row(PART, "creations audited in the store", runs=len(work), remark=f"{kills:,} kills; {remark}")
    return [*rows.values(), summary]


def run(*, quick: bool) -> list[Row]:
    """Run this part; quick: a few kills at each point."""
    return asyncio.run(_run(6 if quick else 201))
