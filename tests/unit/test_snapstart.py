"""What happens around a SnapStart snapshot."""

import random
import sys
from collections.abc import Callable
from types import ModuleType

import pytest
from animal_store import dynamodb, snapstart

from tests.unit.conftest import Clock, Output
from tests.unit.fault_injection import DENIED, Wire


@pytest.fixture
def hooks(monkeypatch: pytest.MonkeyPatch) -> dict[str, Callable[[], None]]:
    """Give the hooks that were registered with the runtime, by when they run."""
    registered: dict[str, Callable[[], None]] = {}
    runtime = ModuleType("snapshot_restore_py")
    runtime.register_before_snapshot = lambda hook: registered.update(before=hook)  # type: ignore[attr-defined]
    runtime.register_after_restore = lambda hook: registered.update(after=hook)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "snapshot_restore_py", runtime)
    snapstart.register()
    return registered


def test_hooks_are_registered_where_the_runtime_has_any(hooks: dict[str, Callable[[], None]]) -> None:
    assert hooks == {"before": snapstart.prime, "after": snapstart.restore}


def test_runtime_without_hooks_is_none_the_worse(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "snapshot_restore_py", None)

    snapstart.register()


@pytest.mark.usefixtures("tables", "clock")
def test_snapshot_is_taken_after_one_call_and_without_a_connection(
    wire: Wire, output: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[list[str]] = []
    monkeypatch.setattr(dynamodb.client, "close", lambda: closed.append(list(wire.sent)))

    snapstart.prime()

    assert wire.sent == ["GetItem"]
    assert closed == [["GetItem"]]
    assert output.lines == []


@pytest.mark.usefixtures("tables", "clock")
def test_store_that_does_not_answer_spoils_no_snapshot(
    wire: Wire, output: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[bool] = []
    monkeypatch.setattr(dynamodb.client, "close", lambda: closed.append(True))
    wire.fail("GetItem", DENIED)

    snapstart.prime()

    (entry,) = output.lines
    assert (entry["level"], entry["message"]) == ("WARNING", "The store did not answer before the snapshot.")
    assert "AccessDeniedException" in entry["exception"]
    assert closed == [True]


def test_priming_has_time_to_retry(clock: Clock, wire: Wire) -> None:
    wire.fail("GetItem", DENIED)

    snapstart.prime()

    assert dynamodb.budget.get().deadline == clock.uptime + 10


def test_copies_of_a_snapshot_do_not_pause_alike() -> None:
    state = random.getstate()
    pauses = set()
    for _ in range(5):
        random.setstate(state)
        snapstart.restore()
        pauses.add(random.random())

    assert len(pauses) == 5
