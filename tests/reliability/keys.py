"""Keys that are revoked, expired, unknown or cannot be looked up: no entry, and never 401 for a key store that fails.

The waits are real: nothing in the service is told another time.
"""

import asyncio
import time

from animal_store import api_key

from tests.reliability.fault_proxy import Fault, Plan
from tests.reliability.harness import FUNCTION_OF, Environment, Store, World, world
from tests.reliability.report import Row

PART = "keys"
_PROMISE_S = 60.0
_GRACE_S = 2.0
_POLL_S = 0.5


async def _status(world: World, environment: Environment, key: str) -> int:
    answer = await environment.send(world.session, key, "GET", "/pets?limit=1")
    return answer.status


def _revoke(store: Store, key: str) -> None:
    store.dynamodb.update_item(
        TableName=store.keys,
        Key={"hash": {"S": api_key.digest(key)}},
        UpdateExpression="SET revoked = :now",
        ExpressionAttributeValues={":now": {"N": str(int(time.time()))}},
    )


async def _revoked_in_a_warm_process(world: World, environment: Environment, count: int) -> Row:
    """Revoke keys that the process has just let in; ask until it refuses them."""
    row = Row(PART, "revoked keys in a warm process, asked every half second until refused", runs=count)
    keys = [world.store.add_key() for _ in range(count)]
    for key in keys:
        row.check(await _status(world, environment, key) == 200, "a valid key was refused")
        _revoke(world.store, key)
    revoked = time.monotonic()
    latest = 0.0
    pending = set(keys)
    while pending and time.monotonic() - revoked < _PROMISE_S + _GRACE_S + 5:
        await asyncio.sleep(_POLL_S)
        for key in sorted(pending):
            if await _status(world, environment, key) == 401:
                pending.discard(key)
                latest = time.monotonic() - revoked
    for _ in pending:
        row.fail("leaks", "a revoked key is let in after more than 60 s")
    row.check(latest <= _PROMISE_S + _GRACE_S, f"the last one was refused after {latest:.1f} s", "leaks")
    row.remark = f"the last one refused {latest:.0f} s after its revocation"
    return row


async def _expiring_in_a_warm_process(world: World, environment: Environment, count: int) -> Row:
    """Let keys expire that the process knows: the time is compared at each request, so at once."""
    row = Row(PART, "keys that expire in a warm process, refused from that second on", runs=count)
    expires = int(time.time()) + 5
    keys = [world.store.add_key(expires=expires) for _ in range(count)]
    for key in keys:
        row.check(await _status(world, environment, key) == 200, "a valid key was refused")
    await asyncio.sleep(max(0.0, expires - time.time()) + 0.05)
    for key in keys:
        row.check(await _status(world, environment, key) == 401, "an expired key is let in", "leaks")
    return row


async def _never_valid(world: World, environment: Environment, count: int) -> Row:
    """Ask with keys that are unknown, revoked or expired from the start."""
    row = Row(PART, "unknown, revoked and expired keys, well-formed", runs=3 * count)
    now = int(time.time())
    for _ in range(count):
        for key in (
            api_key.generate("test"),
            world.store.add_key(revoked=now - 1),
            world.store.add_key(expires=now - 1),
        ):
            row.check(await _status(world, environment, key) == 401, "let in", "leaks")
    return row


async def _failing_key_store(world: World, environment: Environment, count: int) -> Row:
    """Let each look-up fail for good, of valid and of unknown keys alike."""
    faults = [fault for fault in Fault if fault is not Fault.REFUSED]
    row = Row(PART, "key store that fails in every way, for valid and for unknown keys: 503 for both")
    for number in range(count):
        for known in (True, False):
            key = world.store.add_key() if known else api_key.generate("test")
            await environment.proxy.use(Plan("GetItem of a key", faults[number % len(faults)], attempts=9))
            status = await _status(world, environment, key)
            await environment.proxy.use(None)
            row.runs += 1
            row.check(
                status == 503,
                f"{status} for a {'valid' if known else 'unknown'} key",
                "leaks" if status < 400 else "other",
            )
    return row


async def _flood(world: World, environment: Environment, count: int) -> Row:
    """Send keys that no store need be asked for, then one unknown key again and again."""
    row = Row(PART, "flood of malformed keys, then of one unknown key: store reads")
    await environment.proxy.use(None)
    for number in range(count):
        good = api_key.generate("test")
        wrong = good[:-1] + ("0" if good[-1] != "0" else "1")
        row.check(await _status(world, environment, wrong) == 401, "let in", "leaks")
        row.runs += 1
        row.check(not environment.proxy.calls, f"a malformed key (number {number}) was looked up")
    unknown = api_key.generate("test")
    for _ in range(count):
        row.check(await _status(world, environment, unknown) == 401, "let in", "leaks")
        row.runs += 1
    row.check(len(environment.proxy.calls) == 1, f"{len(environment.proxy.calls)} look-ups of one unknown key")
    row.remark = f"0 for malformed keys, {len(environment.proxy.calls)} for {count:,} requests with the unknown one"
    return row


async def _run(*, quick: bool) -> list[Row]:
    async with world(16) as made:

        async def in_its_own(act: object, count: int) -> Row:
            async with made.environment(FUNCTION_OF["listPets"]) as environment:
                row: Row = await act(made, environment, count)  # type: ignore[operator]
                return row

        checks = [
            (_expiring_in_a_warm_process, 20),
            (_never_valid, 10 if quick else 100),
            (_failing_key_store, 10 if quick else 60),
            (_flood, 100 if quick else 2000),
        ]
        if not quick:
            checks.append((_revoked_in_a_warm_process, 20))
        rows = await asyncio.gather(*(in_its_own(act, count) for act, count in checks))
        return [*rows, made.leaks.row(PART)]


def run(*, quick: bool) -> list[Row]:
    """Run this part; quick: without the wait of a minute that a revocation takes."""
    return asyncio.run(_run(quick=quick))
