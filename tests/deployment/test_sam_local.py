"""What `sam local invoke` printed is judged by the answer in it: sam's exit code is 0 whatever the function did."""

import json
from pathlib import Path
from typing import Any

import pytest

from tools.deployment.sam_local import problem_of, promised_status

ERROR = {"code": "not_found", "message": "x", "status": 404}


def printed(status: int, body: Any, **headers: str) -> str:
    """Write what sam prints: the function's own lines, and its answer last."""
    answer = {
        "statusCode": status,
        "headers": {"Content-Type": "application/json"} | headers,
        "body": json.dumps(body),
    }
    return f'{{"level": "INFO"}}\n{json.dumps(answer)}\n'


def test_the_name_of_an_event_promises_a_status() -> None:
    assert promised_status(Path("events/create-400-invalid-json.json")) == 400


def test_the_promised_answer_is_right() -> None:
    assert problem_of(printed(200, []), 200) is None
    assert problem_of(printed(404, ERROR), 404) is None


@pytest.mark.parametrize(
    ("output", "status"),
    [
        ("", 200),
        ("not JSON", 200),
        ('{"errorMessage": "boom", "errorType": "ValueError", "requestId": "1", "stackTrace": []}', 200),
        ("null", 200),
        ('{"statusCode": 200}', 200),
        (printed(200, []).replace('"[]"', '"["'), 200),
        (printed(500, ERROR | {"status": 500}), 200),
        (printed(404, {"message": "x"}), 404),
        (printed(404, ERROR | {"status": 400}), 404),
        (printed(404, ERROR | {"stack": "y"}), 404),
        (printed(200, [], **{"Content-Type": "text/html"}), 200),
    ],
)
def test_anything_else_is_a_problem(output: str, status: int) -> None:
    assert problem_of(output, status) is not None
