"""Every way to fail at every call of the store that the successful events make, in many processes at once.

Each run breaks one, two or all three attempts of one call, or kills the process before or after it. The SDK makes up
for one broken attempt, and for two unless both took the whole read timeout; what is broken throughout is answered by
503. In the end the store is compared with what the clients were told.
"""

import itertools
import json
import random
import re
import uuid
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.reliability.environment import FAULTS, KILLS, Outcome, Plan, invoke
from tests.reliability.socket_faults import SOCKET_FAULTS, STALLS
from tests.support import handlers
from tests.support.fault_injection import TRANSIENT
from tests.support.handlers import EVENTS, SUCCESSES, Response
from tools.local.dynamodb import Database

_ATTEMPTS = 3  # that the SDK makes
_TIMES = 8  # that each case is run in the long form
_LANES = 16  # runs at once; most of a stalled one is waiting
_NAME = "zq7name"  # every animal's name begins with it: no log line may have it
_SECRET = re.compile(rf"animal_(?:live|test)_[0-9A-Za-z]|{_NAME}|Bearer", re.IGNORECASE)
_MADE_UP_FOR = TRANSIENT.keys() | SOCKET_FAULTS.keys()


@dataclass(frozen=True)
class Creation:
    """What was sent, and the animal of each 201 response."""

    new: dict[str, Any]
    acknowledged: list[Any] = field(default_factory=list)


class Faults:
    """The store that all creations share, one that all reads share, the log, and what was found."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.log = folder, folder / "log"
        self.shared, self.read_only = folder / "shared.sqlite", folder / "read-only.sqlite"
        handlers.copy_database(self.shared)
        handlers.copy_database(self.read_only, pets=True)
        self.expected = {name: self.alone(name) for name in SUCCESSES}
        self.numbers = itertools.count(1)
        self.creations: list[Creation] = []
        self.failures: list[str] = []

    def check(self, holds: object, failure: str) -> None:
        if not holds:
            self.failures.append(failure)

    def alone(self, name: str, plan: Plan | None = None) -> Outcome:
        """Send an event to a store that has the animals of the events: one of its own if it may change it."""
        path = self.read_only
        if EVENTS[name]["httpMethod"] != "GET":
            path = self.folder / f"{uuid.uuid4()}.sqlite"
            handlers.copy_database(path, pets=True)
        return invoke(EVENTS[name], path, self.log, plan)

    def runs(self, *, long: bool) -> list[tuple[str, Plan]]:
        """List every run: those that wait first, the others in random order."""
        several = range(1, _ATTEMPTS + 1) if long else (1, _ATTEMPTS)
        runs = [
            (name, Plan(call, fault, attempts))
            for fault, name in itertools.product(FAULTS, SUCCESSES)
            for call in range(len(self.expected[name].calls))
            for attempts in ((1,) if fault in KILLS else several)
        ] * (_TIMES if long else 1)
        return sorted(runs, key=lambda run: (run[1].fault not in STALLS, random.random()))

    def perform(self, run: tuple[str, Plan], *, again: bool = True) -> None:
        """Send one request whose call fails, and check what came of it."""
        name, plan = run
        good = self.expected[name].response
        assert good is not None
        response = (
            self.create(name, plan) if good.status == 201 else self.alone(name, plan).response
        )
        context = f"{name}, {plan}: {response} instead of {good}"
        if plan.fault in KILLS or response is None:
            self.check(response is None and plan.fault in KILLS, context)
            return
        allowed = {good.status, 503}
        if plan.attempts < _ATTEMPTS and (
            plan.fault in _MADE_UP_FOR or (plan.fault in STALLS and plan.attempts == 1)
        ):
            allowed = {good.status}
        elif plan.attempts == _ATTEMPTS and plan.fault in _MADE_UP_FOR | STALLS.keys():
            allowed = {503}
        self.check(response.status != 200 or response.text == good.text, context)
        self.check(
            not (problems := handlers.problems(EVENTS[name], response)), f"{problems} in {context}"
        )
        good_run = response.status in allowed
        if (
            again and not good_run and response.status in {good.status, 503}
        ):  # the machine may have been busy
            self.perform(run, again=False)
        else:
            self.check(good_run, context)

    def create(self, name: str, plan: Plan) -> Response | None:
        """Create an animal; with an Idempotency-Key, repeat it until the client knows the animal."""
        number = next(self.numbers)
        event = deepcopy(EVENTS[name])
        new = {"name": f"{_NAME} {number}", "categoryId": number}
        event["body"] = json.dumps(new)
        creation = Creation(new)
        self.creations.append(creation)
        if keyed := "Idempotency-Key" in event["multiValueHeaders"]:
            event["multiValueHeaders"]["Idempotency-Key"] = [str(uuid.uuid4())]
        first = self.send(event, creation, plan)
        self.check(not first or "Idempotency-Replayed" not in first.headers, f"replayed: {first}")
        if keyed:
            if plan.fault in KILLS and random.random() < 0.5:
                self.send(event, creation, Plan(random.randrange(2), random.choice([*KILLS]), 1))
            told = bool(creation.acknowledged)
            again = self.send(event, creation)
            self.check(again and again.status == 201, f"repeated without a fault: {again}")
            self.check(
                not told or (again and "Idempotency-Replayed" in again.headers),
                f"not replayed: {again}",
            )
        return first

    def send(
        self, event: dict[str, Any], creation: Creation, plan: Plan | None = None
    ) -> Response | None:
        """Send a creation to the store that all share, and note what the client is told."""
        response = invoke(event, self.shared, self.log, plan).response
        if response and response.status == 201:
            creation.acknowledged.append(response.body)
        return response

    def audit(self) -> None:
        """Compare what the clients were told with what the store has, read past the service."""
        stored = defaultdict(list)
        database = Database(self.shared)
        for pet in handlers.pets(handlers.client(database)):
            stored[pet["name"]].append(pet)
        database.close()
        for creation in self.creations:
            there, told = stored[creation.new["name"]], creation.acknowledged
            self.check(len(there) <= 1, f"{creation} is there more than once: {there}")
            self.check(
                all(pet == {**creation.new, "id": pet["id"]} for pet in told + there),
                f"{creation}: {there}",
            )
            self.check(
                all([pet] == there for pet in told),
                f"{creation} is not there as acknowledged: {there}",
            )


def test_every_fault_at_every_call(tmp_path: Path, long: bool, record_property: Any) -> None:
    faults = Faults(tmp_path)
    runs = faults.runs(long=long)
    with ThreadPoolExecutor(_LANES) as lanes:
        list(lanes.map(faults.perform, runs))
    faults.audit()
    lines = faults.log.read_text().splitlines()
    faults.failures += [f"logged: {line}" for line in lines if _SECRET.search(line)]
    assert not faults.failures, "\n".join(faults.failures[:10])

    calls = sum(len(outcome.calls) for outcome in faults.expected.values())
    times = Counter(plan.fault for _, plan in runs)
    for fault in FAULTS:
        record_property(f"{fault}, at each of {calls} calls", times[fault])
    record_property("creations compared with the store afterwards", len(faults.creations))
    record_property(
        "of these never acknowledged", sum(not each.acknowledged for each in faults.creations)
    )
    record_property("log lines searched for keys, headers and animals' names", len(lines))
