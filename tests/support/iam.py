"""Evaluate IAM policies with AWS' own reference data."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

from tests.support.processes import installed

Request = dict[str, Any]
_PROGRAM = Path(__file__).with_name("evaluate_policies.mjs")


def evaluate(policy: dict[str, Any], requests: list[Request]) -> list[Request]:
    """Return requests (action, resource, context), each with whether a policy has it allowed."""
    # Node.js looks for packages beside the program.
    program = shutil.copy(_PROGRAM, installed("iam").parent)
    question = json.dumps({"policy": policy, "requests": requests})
    answers = subprocess.check_output(["node", program], input=question, text=True)
    evaluated: list[Request] = json.loads(answers)
    return evaluated
