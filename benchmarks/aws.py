"""Measure a deployed stage on AWS at several memory sizes: `make bench-aws STAGE=staging`.

Never run: nobody who worked on it had an AWS account. It changes $LATEST of listPets, which no
client is sent to, and changes it back; each change makes the next invocation a cold start.
"""

import base64
import os
from typing import Any

import boto3

from tools import ROOT
from tools.local.events import EXAMPLE_KEY

_SIZES = (256, 512, 768, 1024, 1280, 1769)  # MB; the last is one whole processor
_WARM = 20


def main() -> None:
    """For each size, print the logs, with Lambda's reports, of a cold and a warm invocation."""
    stack = f"animal-store-{os.environ['STAGE']}"
    resource = boto3.resource("cloudformation").StackResource(stack, "ListPetsFunction")
    function = resource.physical_resource_id
    client = boto3.client("lambda")
    before = client.get_function_configuration(FunctionName=function)
    event = (ROOT / "events/list-200.json").read_text()
    payload = event.replace(EXAMPLE_KEY, os.environ["API_KEY"])

    def configure(size: int, logging: Any) -> None:
        client.update_function_configuration(
            FunctionName=function, MemorySize=size, LoggingConfig=logging
        )
        client.get_waiter("function_updated_v2").wait(FunctionName=function)

    try:
        for size in _SIZES:
            configure(size, before["LoggingConfig"] | {"SystemLogLevel": "INFO"})
            for number in range(1 + _WARM):
                answer = client.invoke(
                    FunctionName=function, Payload=payload, LogType="Tail"
                )
                if number in {0, _WARM}:
                    print(size, "MB:", base64.b64decode(answer["LogResult"]).decode())
    finally:
        configure(before["MemorySize"], before["LoggingConfig"])


if __name__ == "__main__":
    main()
