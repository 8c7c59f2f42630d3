"""What is getPet's alone: a consistent read, and the announcement of its end."""

import json

import pytest

from tests.support import handlers
from tests.support.fault_injection import FaultyStore

pytestmark = pytest.mark.usefixtures("store")


def test_animal_is_read_consistently(store: FaultyStore) -> None:
    handlers.send("get-200")

    assert store.calls[-1][1]["ConsistentRead"] is True


def test_holders_of_keys_who_still_call_it_are_counted(
    output: pytest.CaptureFixture[str],
) -> None:
    handlers.send("get-200")
    handlers.send("get-200", headers={"Authorization": []})

    served, refused = map(json.loads, output.readouterr().out.splitlines())
    assert (served["KeyLabel"], served["DeprecatedCalls"]) == ("tests", 1)
    assert "DeprecatedCalls" not in refused


def test_id_is_not_logged(output: pytest.CaptureFixture[str]) -> None:
    response = handlers.send("get-200", pathParameters={"petId": "Confidential"})

    assert "Confidential" not in response.text + output.readouterr().out
