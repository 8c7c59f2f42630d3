"""Evaluate IAM policies with AWS' own reference data: what they refuse, what nobody uses."""

import json
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.support.processes import installed

Policy = dict[str, Any]
ACCOUNT, REGION = "123456789012", "eu-central-1"
_PROGRAM = "evaluate_policies.mjs"


class Request(NamedTuple):
    """An action and ARNs: it is asked of each whose type it knows, or of `*` if it knows none."""

    action: str
    resources: tuple[str, ...]
    context: tuple[tuple[str, str], ...] = ()


class Evaluation(NamedTuple):
    """What a policy refuses of some requests, and which of its entries allow none of them."""

    refused: list[str]
    unused: set[str]


def evaluate(
    policy: Policy, requests: Iterable[Request], boundary: Policy | None = None
) -> Evaluation:
    """Ask for each request; skip the test where Node.js is missing."""
    if not shutil.which("npm"):
        pytest.skip("Node.js and npm are not installed")
    folder = installed("iam")
    # Node.js looks for packages beside the program.
    shutil.copy(Path(__file__).with_name(_PROGRAM), folder / _PROGRAM)
    asked = sorted(set(requests))
    question = {
        "policy": policy,
        "boundary": boundary,
        "requests": [
            request._asdict() | {"context": dict(request.context)} for request in asked
        ],
    }
    answers = json.loads(
        subprocess.run(
            ["node", folder / _PROGRAM],
            input=json.dumps(question),
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        ).stdout
    )
    refused = []
    unused = _entries(policy)
    for request, answer in zip(asked, answers, strict=True):
        refused += [f"{request.action} on {resource}" for resource in answer["refused"]]
        unused -= set(answer["used"])
    return Evaluation(refused, unused)


def _entries(policy: Policy) -> set[str]:
    """Name each action and resource of a policy, after its statement."""
    entries = set()
    for statement in policy["Statement"]:
        for element in ("Action", "Resource"):
            values = statement[element]
            for value in [values] if isinstance(values, str) else values:
                entries.add(f"{statement['Sid']}: {value}")
    return entries
