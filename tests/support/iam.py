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
_PROGRAM = Path(__file__).with_name("evaluate_policies.mjs")


class Request(NamedTuple):
    """An action and ARNs: it is asked of each whose type it knows, or of `*` if it knows none."""

    action: str
    resources: tuple[str, ...]
    context: tuple[tuple[str, str], ...] = ()


def evaluate(policy: Policy, requests: Iterable[Request]) -> tuple[list[str], set[str]]:
    """Return which requests a policy refuses, and which of its entries allow none of them.

    Skips the test where Node.js is missing.
    """
    if not shutil.which("npm"):
        pytest.skip("Node.js and npm are not installed")
    folder = installed("iam")
    # Node.js looks for packages beside the program.
    program = shutil.copy(_PROGRAM, folder)
    asked = sorted(set(requests))
    question = [each._asdict() | {"context": dict(each.context)} for each in asked]
    answers = subprocess.check_output(
        ["node", program],
        input=json.dumps({"policy": policy, "requests": question}),
        text=True,
    )
    refused, unused = [], entries(policy)
    for request, answer in zip(asked, json.loads(answers), strict=True):
        refused += [f"{request.action} on {resource}" for resource in answer["refused"]]
        unused -= set(answer["used"])
    return refused, unused


def entries(policy: Policy) -> set[str]:
    """Name each action and resource of a policy, after its statement."""
    entries = set()
    for statement in policy["Statement"]:
        for element in ("Action", "Resource"):
            values = statement[element]
            for value in [values] if isinstance(values, str) else values:
                entries.add(f"{statement['Sid']}: {value}")
    return entries
