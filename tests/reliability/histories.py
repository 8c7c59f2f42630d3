"""Random histories: what is done, and what each of its requests meets on the way to the store."""

import time
from collections.abc import Callable
from operator import methodcaller
from typing import Any

import pytest
from botocore.awsrequest import AWSResponse
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from tests.support import handlers
from tests.support.clock import Clock, install_clock
from tests.support.fault_injection import Attempt, Fault, FaultyStore

Plan = list[Any]
"""What requests meet, one after the other: a fault, or somebody who comes before one."""
DONE: Fault = Attempt.carry_out


class ProcessDiedError(BaseException):
    """The process that sent a request is gone."""


def die(_: Attempt) -> AWSResponse:
    raise ProcessDiedError


class Histories(RuleBasedStateMachine):
    """A store, and the plans of those who use it, the last of whom is at work."""

    clock: Clock

    def __init__(self) -> None:
        super().__init__()
        self.plans: list[Plan] = []
        self.store = FaultyStore(self.answer)

    def teardown(self) -> None:
        self.store.close()

    def answer(self, attempt: Attempt) -> AWSResponse | None:
        plan = self.plans[-1]
        while plan and isinstance(plan[0], methodcaller):
            plan.pop(0)(self)
        fault: Fault = plan.pop(0) if plan else DONE
        return fault(attempt)

    def perform(self, plan: Plan, action: Callable[[], Any]) -> Any:
        """Do something whose requests meet a plan; None if its process dies."""
        self.plans.append(plan)
        try:
            return action()
        except ProcessDiedError:
            return None
        finally:
            self.plans.pop()


def run(
    histories: type[Histories], monkeypatch: pytest.MonkeyPatch, *, examples: int
) -> None:
    """Try random histories, the same each time."""
    handlers.handler("CreatePetFunction")  # the modules that get the clock
    histories.clock = install_clock(monkeypatch)
    monkeypatch.setattr(time, "sleep", lambda _: None)  # nothing expires in a pause
    run_state_machine_as_test(
        histories,
        settings=settings(
            max_examples=examples,
            phases=[Phase.generate],  # to shrink a history takes minutes
            deadline=None,
            stateful_step_count=12,
            derandomize=True,
            suppress_health_check=list(HealthCheck),
        ),
    )
