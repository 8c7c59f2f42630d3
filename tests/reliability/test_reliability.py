"""The reliability suite in its quick form: a part of `make test`, told apart by the marker `reliability`."""

from typing import Any

import pytest

from tests.reliability.audit import Audit
from tests.reliability.parts import PARTS, run_part
from tests.reliability.report import Row, markdown, replace_generated

REX = {"name": "Rex", "categoryId": 1}


@pytest.mark.reliability
@pytest.mark.parametrize("part", PARTS)
def test_part(part: str) -> None:
    """Not a single loss, double, leak or other failure."""
    rows = run_part(part, quick=True)
    assert sum(row.runs for row in rows) > 0
    assert [(row.tried, row.examples) for row in rows if row.failures] == []


STORED = [{"id": 1, **REX}]


@pytest.mark.parametrize(
    ("stored", "acknowledged", "failures"),
    [
        ([], [], {}),
        (STORED, [], {}),
        (STORED, STORED, {}),
        ([], STORED, {"losses": 1}),
        ([{"id": 1, "name": "Max", "categoryId": 1}], STORED, {"losses": 1}),
        ([*STORED, {"id": 2, **REX}], STORED, {"doubles": 1}),
        (STORED, [*STORED, {"id": 2, **REX}], {"losses": 1, "doubles": 1}),
    ],
    ids=["nothing", "unacknowledged", "good", "lost", "another animal", "twice in the store", "two responses to a key"],
)
def test_audit_finds(stored: list[Any], acknowledged: list[Any], failures: dict[str, int]) -> None:
    row, audit = Row("part", "tried"), Audit()
    audit.open(REX, row, keyed=True).acknowledged.extend(acknowledged)
    audit.close(stored)
    assert {"losses": row.losses, "doubles": row.doubles} == {"losses": 0, "doubles": 0} | failures


def test_audit_finds_an_id_that_was_given_twice() -> None:
    row, audit = Row("part", "tried"), Audit()
    for new in (REX, {**REX, "name": "Max"}):
        audit.open(new, row, keyed=False).acknowledged.append({"id": 1, **new})
    audit.close(STORED)
    assert row.doubles == 1


def test_table_replaces_the_one_before() -> None:
    document = "a\n<!-- table: begin -->\nold\n<!-- table: end -->\nb\n"
    table = markdown([Row("part", "tried", runs=1234)])
    assert replace_generated(document, table) == document.replace("old", table)
    assert "| part | tried | 1,234 | 0 | 0 | 0 | 0 |  |" in table
    with pytest.raises(ValueError, match="table: begin"):
        replace_generated("no marks", table)
