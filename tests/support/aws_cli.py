"""Reads the AWS CLI commands that `animal-store` prints."""

import json
import shlex
from typing import Any


def parse(text: str) -> dict[str, Any]:
    """Return the parameters of the first AWS CLI command in a text."""
    command = text.partition("\naws ")[2].replace("\\\n", "")
    _service, _operation, *words = shlex.split(command)
    parameters = {}
    for option, value in zip(words[::2], words[1::2], strict=True):
        name = option.title().replace("-", "")
        parameters[name] = json.loads(value) if value.startswith("{") else value
    return parameters
