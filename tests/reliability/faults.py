"""Every way to fail at every call of the store that the successful events make, in many processes at once.

Each run breaks one, two or all three attempts of one call, or kills the process before or after it. The SDK makes up
for one broken attempt, and for two unless both took the whole read timeout; what is broken throughout is answered by
503. In the end the store is compared with what the clients were told.
"""

import itertools
import json
import random
import re
import tempfile
import uuid
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tests import functions
from tests.fault_injection import TRANSIENT
from tests.functions import EVENTS, SUCCESSES, TEMPLATE, Response
from tests.reliability.audit import Audit, Creation
from tests.reliability.environment import IN_PROCESS, KILLS, Environment, Outcome, Plan
from tests.reliability.fault_server import STALLS, FaultServer, SocketFault
from tests.reliability.report import Row
from tools.local.dynamodb import Database

PART = "faults"
_ATTEMPTS = 3  # that the SDK makes
_TIMES = 10  # that each case is run
_LANES = 16  # runs at once; most of a stalled one is waiting
_NAME = "zq7name"  # every animal's name begins with it: no log line may have it
_SECRET = re.compile(rf"animal_(?:live|test)_[0-9A-Za-z]|{_NAME}|Bearer", re.IGNORECASE)
_MADE_UP_FOR = frozenset({*TRANSIENT, SocketFault.REFUSED, SocketFault.RESET_BEFORE, SocketFault.RESET_RESPONSE})


@dataclass(frozen=True)
class Run:
    """One request that meets a fault, and the row where its failures count."""

    name: str
    plan: Plan
    row: Row


class Faults:
    """The state of this part: the store that all creations share, the log, and the audit."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder / "log"
        self.path, self.read_only = folder / "shared.sqlite", folder / "read-only.sqlite"
        functions.copy_database(self.path)
        functions.copy_database(self.read_only, pets=True)
        self.server = FaultServer()
        self.audit = Audit()
        self.rows: dict[str, Row] = {}
        self.numbers = itertools.count(1)
        self.statuses: Counter[int | None] = Counter()

    @cache  # noqa: B019 - there is one, for the whole run
    def expected(self, name: str) -> Outcome:
        """Send an event without a fault, to a store that has the animals of the events."""
        return self._alone(name, None)

    def perform(self, run: Run) -> None:
        """Send one request under its fault, and check what came of it."""
        good = self.expected(run.name).response
        assert good is not None
        if good.status == 201:
            response = self._create(run)
        else:
            response = self._alone(run.name, run.plan).response
            same = response is None or response.status == 503 or response.text == good.text
            run.row.check(same, f"{response} instead of {good}", "losses")
        run.row.runs += 1
        self.statuses[response.status if response else None] += 1
        self._judge(run, response, good)

    def _alone(self, name: str, plan: Plan | None) -> Outcome:
        """Send an event to the store that all reads share; what may change a store has one of its own."""
        path = self.read_only
        if EVENTS[name]["httpMethod"] != "GET":
            path = self.folder / f"{next(self.numbers)}.sqlite"
            functions.copy_database(path, pets=True)
        return Environment(path, self.log, self.server.url).run(EVENTS[name], plan)

    def _create(self, run: Run) -> Response | None:
        """Create an animal; with an Idempotency-Key, repeat it until the client knows the animal."""
        number = next(self.numbers)
        event = deepcopy(EVENTS[run.name])
        new = {"name": f"{_NAME} {number}", "categoryId": number}
        event["body"] = json.dumps(new)
        keyed = "Idempotency-Key" in event["multiValueHeaders"]
        if keyed:
            event["multiValueHeaders"]["Idempotency-Key"] = [str(uuid.uuid4())]
        creation = self.audit.open(new, run.row, keyed=keyed)
        first = response = self._send(event, creation, run.plan)
        if keyed:
            if run.plan.fault in KILLS and random.random() < 0.5:
                self._send(event, creation, Plan(random.randrange(2), random.choice([*KILLS]), 1))
            response = self._send(event, creation, None)
            run.row.check(response and response.status == 201, f"repeated without a fault: {response}")
            told = first is not None and first.status == 201
            replayed = response is not None and "Idempotency-Replayed" in response.headers
            run.row.check(replayed or not told, f"no replay: {response}")
            creation.written = replayed and not told
        return first

    def _send(self, event: dict[str, Any], creation: Creation, plan: Plan | None) -> Response | None:
        response = Environment(self.path, self.log, self.server.url).run(event, plan).response
        if response and response.status == 201:
            own = not creation.acknowledged and "Idempotency-Replayed" in response.headers and plan is not None
            creation.row.check(not own, f"its own creation as a replay: {response}")
            creation.acknowledged.append(response.body)
        return response

    def _judge(self, run: Run, response: Response | None, good: Response) -> None:
        """Check whether there is a response, its status, its form and its time."""
        plan, context = run.plan, f"{run.name}, {run.plan}: {response}"
        if plan.fault in KILLS or response is None:
            run.row.check((response is None) == (plan.fault in KILLS), context)
            return
        allowed = {good.status, 503}
        if plan.attempts < _ATTEMPTS and (plan.fault in _MADE_UP_FOR or (plan.fault in STALLS and plan.attempts == 1)):
            allowed = {good.status}
        elif plan.attempts == _ATTEMPTS and plan.fault in _MADE_UP_FOR | STALLS:
            allowed = {503}
        run.row.check(response.status in allowed, context)
        run.row.check(not (problems := functions.problems(EVENTS[run.name], response)), f"{problems} in {context}")
        run.row.check(response.seconds < TEMPLATE.functions["CreatePetFunction"].timeout_s, f"late: {context}")

    def runs(self, *, quick: bool) -> Iterator[Run]:
        """Make every run; each fault has a row of the table, and each place where a creation is killed."""
        several = (1, _ATTEMPTS) if quick else range(1, _ATTEMPTS + 1)
        for fault, name in itertools.product([*IN_PROCESS, *SocketFault], SUCCESSES):
            outcome = self.expected(name)
            for call, operation in enumerate(outcome.calls):
                killed = fault in KILLS and outcome.response and outcome.response.status == 201
                title = f"{name}: {fault} call {call + 1}, {operation}" if killed else fault
                row = self.rows.setdefault(title, Row(PART, title))
                for attempts in [1] if fault in KILLS else several:
                    yield from [Run(name, Plan(call, fault, attempts), row)] * (1 if quick else _TIMES)


def run(*, quick: bool) -> list[Row]:
    """Run this part; quick: every case once, without those of two attempts."""
    with tempfile.TemporaryDirectory(prefix="reliability-") as folder:
        faults = Faults(Path(folder))
        with faults.server.running(), ThreadPoolExecutor(_LANES) as lanes:
            runs = list(faults.runs(quick=quick))
            random.shuffle(runs)
            for _ in lanes.map(faults.perform, runs):
                pass
        remark = faults.audit.close(functions.pets(functions.client(Database(faults.path))))
        statuses = ", ".join(f"{number:,} {status or 'killed'}" for status, number in faults.statuses.items())
        summary = Row(PART, "creations compared with the store", len(faults.audit.creations))
        summary.remark = f"{remark}; {statuses}"
        lines = faults.log.read_text().splitlines()
        found = [line[max(0, match.start() - 200) :][:400] for line in lines if (match := _SECRET.search(line))]
        leaks = Row(PART, "log lines searched for keys, headers and names", len(lines), leaks=len(found))
        leaks.examples += found[:5]
    for title, row in faults.rows.items():
        row.remark = f"at {len({(run.name, run.plan.call) for run in runs if run.row is row})} calls"
        if ":" in title:
            written = [creation.written for creation in faults.audit.creations if creation.row is row]
            row.remark = f"{sum(written):,} written all the same"
    return [*faults.rows.values(), summary, leaks]
