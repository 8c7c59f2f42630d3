"""What a request costs: AWS's list prices, in dollars, at their date."""

from benchmarks.execution import Run
from benchmarks.operations import Operation
from benchmarks.packages import TEMPLATE

DATE, REGION = "2026-11-21", "us-east-1"

GATEWAY = 3.50  # a REST API, per million requests, https://aws.amazon.com/api-gateway/pricing/
HTTP_API = 1.00  # the same page
_LAMBDA = 0.20  # per million requests, https://aws.amazon.com/lambda/pricing/
_LAMBDA_GB_SECOND = 0.000_013_333_4  # arm64
# On demand, per million units, https://aws.amazon.com/dynamodb/pricing/on-demand/
_READ_UNIT, _WRITE_UNIT = 0.125, 0.625
_LOG_GB = 0.50  # ingestion, https://aws.amazon.com/cloudwatch/pricing/
_TRANSFER_GB = 0.09  # to the internet, https://aws.amazon.com/ec2/pricing/on-demand/
# Per million, of which X-Ray's default rule records 5 %, https://aws.amazon.com/xray/pricing/
_TRACES = 5.00 * 0.05

_PER_SECOND = 3.3e9  # instructions of a whole core
_STORE_SECONDS = 0.004  # a call from Lambda to DynamoDB, for which Lambda is paid too
_WHOLE_CORE_MB = (
    1769  # https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html
)
_HEADER_BYTES = 600  # of a response
_ACCESS_LOG_BYTES = (
    420  # a line of API Gateway's access log, in the format of template.yaml
)


def usd_per_million(run: Run, operation: Operation, instructions: float) -> float:
    """Price a million invocations like a run's last one that take this many instructions."""
    memory = TEMPLATE.functions["GetPetFunction"].memory_mb
    seconds = instructions / _PER_SECOND / min(1.0, memory / _WHOLE_CORE_MB)
    seconds += run.requests * _STORE_SECONDS
    usd = GATEWAY + _LAMBDA + _TRACES
    usd += seconds * 1e6 * memory / 1024 * _LAMBDA_GB_SECOND
    if run.requests:
        usd += operation.read_units * _READ_UNIT + operation.write_units * _WRITE_UNIT
    usd += (run.log_bytes + _ACCESS_LOG_BYTES) / 1000 * _LOG_GB
    usd += (run.body_bytes + _HEADER_BYTES) / 1000 * _TRANSFER_GB
    return round(usd, 2)
