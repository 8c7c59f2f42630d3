"""The reliability suite in its quick form: a part of `make test`, told apart by the marker `reliability`."""

import pytest

from tests.reliability.audit import Ledger
from tests.reliability.parts import PARTS, run_parts
from tests.reliability.report import Row, markdown, replace_generated

REX = {"name": "Rex", "categoryId": 1}


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    """What came of all parts, two of them at a time."""
    return run_parts(list(PARTS), quick=True)


@pytest.mark.reliability
@pytest.mark.parametrize("part", PARTS)
def test_part(part: str, rows: list[Row]) -> None:
    """Not a single loss, double, leak or other failure."""
    of_part = [row for row in rows if row.part == part]
    assert sum(row.runs for row in of_part) > 0
    assert [(row.tried, row.examples) for row in of_part if row.failures] == []


def audited(stored: list[dict[str, object]], *acknowledged: dict[str, object], keyed: bool = False) -> Row:
    row, ledger = Row("part", "tried"), Ledger()
    ledger.open(REX, row, keyed=keyed).acknowledged.extend(acknowledged)
    ledger.audit(stored)
    return row


def test_ledger_sees_a_loss() -> None:
    assert audited([], {"id": 1, **REX}).losses == 1


def test_ledger_sees_another_animal_under_the_id() -> None:
    assert audited([{"id": 1, "name": "Max", "categoryId": 1}], {"id": 1, **REX}).losses == 1


def test_ledger_sees_an_animal_twice() -> None:
    assert audited([{"id": 1, **REX}, {"id": 2, **REX}], {"id": 1, **REX}).doubles == 1


def test_ledger_sees_two_answers_to_one_key() -> None:
    stored = [{"id": 1, **REX}]
    assert audited(stored, {"id": 1, **REX}, {"id": 2, **REX}, keyed=True).doubles == 1


def test_ledger_sees_an_id_given_twice() -> None:
    first, second, ledger = Row("part", "first"), Row("part", "second"), Ledger()
    ledger.open(REX, first, keyed=False).acknowledged.append({"id": 1, **REX})
    ledger.open({**REX, "name": "Max"}, second, keyed=False).acknowledged.append({"id": 1, **REX, "name": "Max"})
    ledger.audit([{"id": 1, **REX}])
    assert first.failures == 0
    assert second.doubles == 1


def test_ledger_lets_an_unacknowledged_animal_be_there_or_not() -> None:
    assert audited([]).failures == audited([{"id": 1, **REX}]).failures == 0


def test_table_replaces_the_one_before() -> None:
    document = "a\n<!-- table: begin -->\nold\n<!-- table: end -->\nb\n"
    table = markdown([Row("part", "tried", runs=1234)])
    assert replace_generated(document, table) == document.replace("old", table)
    assert "| part | tried | 1,234 | 0 | 0 | 0 | 0 |  |" in table
    with pytest.raises(ValueError, match="table: begin"):
        replace_generated("no marks", table)
