"""The runbook's queries ask for members that log lines have."""

import json
import re

import pytest

from tests.support import handlers
from tests.support.fault_injection import THROTTLED, FaultyStore
from tests.support.stack import load
from tools import ROOT
from tools.local.events import EXAMPLE_KEY

RUNBOOK = (ROOT / "docs/runbook.md").read_text()
QUERIES = re.findall(r"(?m)^    (?:fields|filter) (?:.+\n)+?(?=\n)", RUNBOOK)
WORDS = {"and", "as", "asc", "by", "count", "desc", "fields", "filter", "in"}
WORDS |= {"ispresent", "latest", "limit", "or", "sort", "stats"}
# Of Logs Insights itself, of Lambda's own lines, and of a query.
OTHERS = {"@timestamp", "@message", "record.requestId", "requests", "last"}


@pytest.fixture(scope="module")
def of_the_access_log() -> set[str]:
    """Return the members of the access log's lines."""
    api = load("template.yaml")["Resources"]["Api"]["Properties"]
    return set(re.findall(r'"(\w+)":', api["AccessLogSetting"]["Format"]))


def test_there_are_queries() -> None:
    assert len(QUERIES) >= 8


@pytest.mark.parametrize("query", QUERIES)
def test_query_asks_for_members_that_lines_have(
    query: str,
    store: FaultyStore,
    output: pytest.CaptureFixture[str],
    of_the_access_log: set[str],
) -> None:
    handlers.add_key(EXAMPLE_KEY)
    handlers.send("create-201")
    store.fail("Query", THROTTLED, THROTTLED, THROTTLED)
    handlers.send("list-200")
    members = of_the_access_log | OTHERS | {"ColdStart"}  # only the first line has it
    for line in output.readouterr().out.splitlines():
        members |= json.loads(line).keys()

    text = re.sub('"[^"]*"', "", query)
    names = set(re.findall(r"@?[A-Za-z_][\w.]*", text)) - WORDS

    assert names - members == set()
