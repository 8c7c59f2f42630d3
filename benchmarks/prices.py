"""What a million requests cost in dollars: AWS's list prices of us-east-1 in November 2026, without free tiers.

Not in here, because no request changes it: alarms, custom metrics, stored data, backups; nor Lambda's own log lines,
which template.yaml switches off (`SystemLogLevel`).
"""

import re

from benchmarks.execution import Run
from benchmarks.fake_dynamodb import TEMPLATE
from tools import ROOT

DATE, REGION = "2026-11-21", "us-east-1"

_GATEWAY = 3.50  # a REST API, per million requests, https://aws.amazon.com/api-gateway/pricing/
_LAMBDA = 0.20  # per million requests, https://aws.amazon.com/lambda/pricing/
_LAMBDA_GB_SECOND = 0.000_013_333_4  # arm64
_READ_UNIT, _WRITE_UNIT = (
    0.125,
    0.625,
)  # on demand, per million, https://aws.amazon.com/dynamodb/pricing/on-demand/
_LOG_GB = 0.50  # ingestion, https://aws.amazon.com/cloudwatch/pricing/
_TRANSFER_GB = 0.09  # to the internet, https://aws.amazon.com/ec2/pricing/on-demand/
_TRACES = (
    5.00 * 0.05
)  # per million, of which X-Ray's default rule records 5 %, https://aws.amazon.com/xray/pricing/

STORE_SECONDS = 0.004  # a call of DynamoDB from Lambda, for which Lambda is paid too
WHOLE_CORE_MB = 1769  # https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html
_HEADER_BYTES = 600  # of a response
_VALUE_BYTES = 16  # of a value in a line of API Gateway's access log, on average


def compute(seconds: float, memory_mb: int) -> float:
    """Price a million times that many seconds of Lambda."""
    return seconds * 1e6 * memory_mb / 1024 * _LAMBDA_GB_SECOND


def usd_per_million(run: Run, cpu_us: float) -> float:
    """Price a million invocations like the last of a run that take so many microseconds of a whole core."""
    memory = next(iter(TEMPLATE.functions.values())).memory_mb
    cost = run.costs[-1]
    seconds = cpu_us / 1e6 / min(1.0, memory / WHOLE_CORE_MB) + cost.requests * STORE_SECONDS
    store = cost.read_units * _READ_UNIT + cost.write_units * _WRITE_UNIT
    # API Gateway logs a line, too, in the format of template.yaml.
    template = (ROOT / "template.yaml").read_text()
    access = "".join(re.findall(r"^ +Format: >-\n((?: {10}.*\n)+)", template, re.MULTILINE))
    log_bytes = run.log_bytes + len(re.sub(r"\$context\.[\w.]+", "x" * _VALUE_BYTES, access))
    transfer = (run.body_bytes + _HEADER_BYTES) / 1000 * _TRANSFER_GB
    return round(
        _GATEWAY
        + _LAMBDA
        + compute(seconds, memory)
        + store
        + log_bytes / 1000 * _LOG_GB
        + transfer
        + _TRACES,
        2,
    )
