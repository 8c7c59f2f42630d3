"""Every way to break a call of the store, at every call that the functions make, over HTTP.

Each run breaks the first, the first two, or all attempts of one call. The SDK makes up for one broken attempt, and for
two unless both took the whole read timeout; the service answers 503 for what is broken throughout. Afterwards the store
is read directly and held against what the clients were told.
"""

import asyncio
import gc
import itertools
import random
import time
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from tests.reliability.audit import Creation, Ledger
from tests.reliability.fault_proxy import STALLS, Fault, Plan
from tests.reliability.harness import FUNCTION_OF, SECRET_NAME, Answer, Environment, Pet, World, world
from tests.reliability.report import Row

PART = "faults"
_HERD = 30
_TIMEOUT_S = 10.0
_KEY_CACHE_S = 40.0  # an environment gets another key before it forgets the last, so that calls come in the known order
_COMPUTING = 5  # environments whose runs do not wait
_ALL = 3  # attempts that the SDK makes
_READABLE = frozenset({Fault.CUT_ANSWER, Fault.GARBLED_ANSWER})
_STATUSES = ("available", "pending", "sold", None)
KEY_CALL = "GetItem of a key"


@dataclass(frozen=True, slots=True)
class Cell:
    """A call that is broken, of an operation.

    Args:
        title: For the table.
        operation: The interface's name.
        call: The proxy's name of the call.
        predecessor: The call before it in an environment that knows the key.
        keyed: Whether the request has an Idempotency-Key.
    """

    title: str
    operation: str
    call: str
    predecessor: str | None = None
    keyed: bool = False
    filtered: bool = False


CELLS = (
    Cell("listPets: Query", "listPets", "Query"),
    Cell("listPets: Query of the index", "listPets", "Query", filtered=True),
    Cell("getPet: GetItem", "getPet", "GetItem"),
    Cell("listPets: GetItem of a key", "listPets", KEY_CALL),
    Cell("createPet: UpdateItem of the counter", "createPet", "UpdateItem", keyed=True),
    Cell("createPet: PutItem", "createPet", "PutItem", predecessor="UpdateItem"),
    Cell("createPet: TransactWriteItems", "createPet", "TransactWriteItems", predecessor="UpdateItem", keyed=True),
)


@dataclass(frozen=True, slots=True)
class Run:
    """One request that meets a fault."""

    cell: Cell
    fault: Fault
    attempts: int
    row: Row


class Faults:
    """The state of this part."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.ledger = Ledger()
        self.key = world.store.add_key()
        self.numbers = itertools.count(1)
        self.outcomes: Counter[str] = Counter()
        self.seeded_pets: list[Pet] = []
        self.repeated = 0

    def new(self) -> Pet:
        """Make up an animal whose name no other has."""
        number = next(self.numbers)
        status = _STATUSES[number % len(_STATUSES)]
        return {"name": f"{SECRET_NAME} {number}", "categoryId": number} | ({"status": status} if status else {})

    async def populate(self, environment: Environment, row: Row) -> None:
        """Create the animals that reads are held against."""
        for _ in range(_HERD):
            new = self.new()
            creation = self.ledger.open(new, row, keyed=False)
            answer = await environment.send(self.world.session, self.key, "POST", "/pets", new)
            assert answer.status == 201, answer
            creation.acknowledged.append(answer.body)
            self.seeded_pets.append(answer.body)

    async def perform(self, run: Run, environment: Environment, key: str) -> bool:
        """Send one request under its fault, and judge the answer.

        Returns:
            Whether it counts: not when it missed its fault, or when this process stood still meanwhile. What its client
            was told is audited all the same.
        """
        cell, row = run.cell, run.row
        if cell.call == KEY_CALL:
            key = self.world.store.add_key()
        plan = Plan(cell.call, run.fault, run.attempts, cell.predecessor)
        await environment.proxy.use(plan)
        method, path, body, headers, expected = self._request(cell)
        creation = self.ledger.open(body, row, keyed=cell.keyed) if body else None
        begin = time.monotonic()
        answer = await environment.send(self.world.session, key, method, path, body, headers)
        await environment.proxy.use(None)
        counts = plan.hits > 0 and not self.world.heartbeat.paused_since(begin)
        if counts:
            row.runs += 1
            self.outcomes[f"{answer.status}"] += 1
            self._judge(run, answer)
        if creation:
            await self._settle(creation, answer, environment, key, headers)
        elif answer.status == 200:
            row.check(answer.body == expected, f"{cell.title}: {answer.body} instead of {expected}", "losses")
        return counts

    def _request(self, cell: Cell) -> tuple[str, str, Pet | None, dict[str, str], object]:
        """Make a request, and say what a read must answer."""
        if cell.operation == "createPet":
            return "POST", "/pets", self.new(), {"Idempotency-Key": str(uuid.uuid4())} if cell.keyed else {}, None
        if cell.operation == "getPet":
            pet = random.choice(self.seeded_pets)
            return "GET", f"/pets/{pet['id']}", None, {}, pet
        if cell.filtered:
            status = random.choice(_STATUSES[:-1])
            expected = [pet for pet in self.seeded_pets if pet.get("status") == status]
            return "GET", f"/pets?status={status}&limit=100", None, {}, expected
        return "GET", "/pets", None, {}, self.seeded_pets[:20]

    def _judge(self, run: Run, answer: Answer) -> None:
        """Hold status, form and time of an answer against what the fault allows."""
        row, context = run.row, f"{run.cell.title}, {run.fault} x{run.attempts}: {answer}"
        row.check(answer.problem() is None, f"{answer.problem()} in {context}")
        row.check(answer.seconds < _TIMEOUT_S, f"late: {context}")
        row.check(answer.status in _allowed(run), context)

    async def _settle(
        self, creation: Creation, answer: Answer, environment: Environment, key: str, headers: dict[str, str]
    ) -> None:
        """Note what the client was told; with an Idempotency-Key, repeat the request until it is told the animal."""
        if answer.status == 201:
            creation.acknowledged.append(answer.body)
            creation.row.check("idempotency-replayed" not in answer.headers, f"its own creation as a replay: {answer}")
        if not creation.keyed:
            return
        begin = time.monotonic()
        again = await environment.send(self.world.session, key, "POST", "/pets", creation.new, headers)
        paused = self.world.heartbeat.paused_since(begin)
        creation.row.check(again.status == 201 or paused, f"repeated without a fault: {again}")
        if again.status == 201:
            creation.acknowledged.append(again.body)
            if answer.status == 201:
                creation.row.check(again.headers.get("idempotency-replayed") == "true", f"no replay: {again}")


def _allowed(run: Run) -> set[int]:
    """Which statuses the service may answer with."""
    good, unavailable = {200, 201}, {503}
    if run.fault is Fault.REFUSED and run.attempts < _ALL:
        return good | unavailable  # the pauses between attempts are random: all of them may end within the refusal
    if run.fault in STALLS and run.attempts == _ALL - 1:
        return good | unavailable  # there may be no time left for the third attempt
    if run.fault in _READABLE and run.cell.call in {"PutItem", "TransactWriteItems"}:
        return good | unavailable  # the status alone, which arrives, tells that it is committed
    if run.fault in _READABLE and run.cell.call == "UpdateItem":
        return good | unavailable if run.attempts < _ALL else unavailable
    return unavailable if run.attempts == _ALL else good


@asynccontextmanager
async def _pool(world: World, function: str, size: int) -> AsyncIterator[list[Environment]]:
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(world.environment(function)) for _ in range(size)]


async def _work(faults: Faults, environment: Environment, runs: list[Run]) -> None:
    """Take one run after the other, in an environment that knows its key and has all its retries."""
    key, known = "", 0.0
    while runs:
        run = runs.pop()
        if time.monotonic() - known > _KEY_CACHE_S:
            key, known = faults.world.store.add_key(), time.monotonic()
            await _warm(faults, environment, key)
        environment.refill()
        if not await faults.perform(run, environment, key):
            faults.repeated += 1
            runs.append(run)


async def _warm(faults: Faults, environment: Environment, key: str) -> None:
    """Let the environment look the key up, so that the next request's first call is the operation's own."""
    path = {"ListPetsFunction": "/pets?limit=1", "GetPetFunction": "/pets/1"}.get(environment.function)
    method, path = ("GET", path) if path else ("POST", "/pets")
    await environment.send(faults.world.session, key, method, path)


async def _run(count: int, waiters: int) -> list[Row]:
    rows = {(cell, fault): Row(PART, f"{cell.title}: {fault}") for cell in CELLS for fault in Fault}
    seeded_pets = Row(PART, "animals that reads were held against", runs=_HERD)
    async with world(waiters + _COMPUTING) as made:
        faults = Faults(made)
        async with made.environment(FUNCTION_OF["createPet"]) as environment:
            await faults.populate(environment, seeded_pets)
        # Reads first, while the table is small: the local store reads all of it for a query by the index.
        for function, cells in itertools.groupby(CELLS, key=lambda cell: FUNCTION_OF[cell.operation]):
            runs = _runs(list(cells), rows, count)
            # What waits may be many at once; what computes shares one processor, and would be late if it were many.
            quick = [run for run in runs if run.fault not in STALLS]
            waiting = [run for run in runs if run.fault in STALLS]
            async with _pool(made, function, _COMPUTING) as few, _pool(made, function, waiters) as many:
                gc.collect()
                gc.freeze()  # so that collections, which stop everything, pass over all these copies of the layer
                await asyncio.gather(
                    *(_work(faults, environment, quick) for environment in few),
                    *(_work(faults, environment, waiting) for environment in many),
                )
        counts = faults.ledger.audit(made.store.pets())
        remark = ", ".join(f"{number:,} {what}" for what, number in [*counts.items(), *faults.outcomes.items()])
        remark += f"; {faults.repeated} runs repeated, because this machine paused"
        summary = Row(PART, "creations audited in the store", runs=sum(counts.values()), remark=remark)
        return [*_merge(rows), summary, made.leaks.row(PART)]


def _runs(cells: Sequence[Cell], rows: dict[tuple[Cell, Fault], Row], count: int) -> list[Run]:
    runs = [
        Run(cell, fault, 1 + number % 3, rows[cell, fault])
        for cell in cells
        for fault in Fault
        for number in range(count)
    ]
    random.shuffle(runs)
    return runs


def _merge(rows: dict[tuple[Cell, Fault], Row]) -> list[Row]:
    """Make one row per fault of the rows per call."""
    merged = []
    for fault in Fault:
        of_fault = [row for (_, other), row in rows.items() if other is fault]
        row = Row(PART, f"{fault}, at each of {len(CELLS)} calls")
        fewest = min(one.runs for one in of_fault)
        row.remark = f"at least {fewest:,} at each"
        for one in of_fault:
            row.runs += one.runs
            row.losses += one.losses
            row.doubles += one.doubles
            row.leaks += one.leaks
            row.other += one.other
            row.examples += one.examples
        merged.append(row)
    return merged


def run(*, quick: bool) -> list[Row]:
    """Run this part; quick: a few runs of each kind."""
    return asyncio.run(_run(3, 8) if quick else _run(201, 40))
