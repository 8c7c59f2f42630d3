"""Measure a deployed stage on AWS at several memory sizes: `make bench-aws STAGE=staging`.

Never run: nobody who worked on it had an AWS account. It changes $LATEST of listPets, which no
client is sent to, and changes it back; each change makes the next invocation a cold start.
"""

import base64
import json
import os
from typing import Any

import boto3

from benchmarks.operations import LIST_20

SIZES = (256, 512, 768, 1024, 1280, 1769)
WARM = 20


def _report(client: Any, function: str, event: bytes) -> dict[str, Any]:
    """Invoke a function, and return the metrics of Lambda's own report."""
    answer = client.invoke(FunctionName=function, Payload=event, LogType="Tail")
    status = json.load(answer["Payload"]).get("statusCode")
    if status != LIST_20.status:
        raise SystemExit(
            f"{function} answers {status}: is API_KEY a key of this stage?"
        )
    for line in base64.b64decode(answer["LogResult"]).decode().splitlines():
        if "platform.report" in line:
            metrics: dict[str, Any] = json.loads(line)["record"]["metrics"]
            return metrics
    raise SystemExit(
        "Lambda sent no report: are its logs JSON, and the system's level INFO?"
    )


def main() -> None:
    """For each size, print the reports of one cold and the last of several warm invocations."""
    stack = f"animal-store-{os.environ['STAGE']}"
    resource = boto3.client("cloudformation").describe_stack_resource(
        StackName=stack, LogicalResourceId="ListPetsFunction"
    )
    function = resource["StackResourceDetail"]["PhysicalResourceId"]
    client = boto3.client("lambda")
    before = client.get_function_configuration(FunctionName=function)
    event = LIST_20.event()
    event["headers"]["Authorization"] = f"Bearer {os.environ['API_KEY']}"
    event["multiValueHeaders"]["Authorization"] = [event["headers"]["Authorization"]]
    logging = before["LoggingConfig"]

    def configure(size: int, level: str) -> None:
        client.update_function_configuration(
            FunctionName=function,
            MemorySize=size,
            LoggingConfig={**logging, "SystemLogLevel": level},
        )
        client.get_waiter("function_updated_v2").wait(FunctionName=function)

    try:
        for size in SIZES:
            configure(size, "INFO")
            for number in range(1 + WARM):
                report = _report(client, function, json.dumps(event).encode())
                if number in (0, WARM):
                    print(size, "warm" if number else "cold", report)
    finally:
        configure(before["MemorySize"], logging["SystemLogLevel"])


if __name__ == "__main__":
    main()
