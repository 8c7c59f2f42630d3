"""Reduces the description of DynamoDB that the SDK parses at each cold start.

Unused operations are left out, and the endpoints are computed by the build. The files keep the
SDK's format. Every region still works, and so do FIPS and VPC endpoints.
"""

import gzip
import itertools
import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from botocore.endpoint_provider import EndpointProvider

OPERATIONS = ("GetItem", "PutItem", "Query", "TransactWriteItems", "UpdateItem")
"""The operations that the layer calls."""


def reduce(data: Path) -> None:
    """Reduce the data of DynamoDB and of its endpoints in a layer's folder `botocore/data`."""
    dynamodb = data / "dynamodb/2012-08-10"
    model = _unpack(dynamodb / "service-2.json.gz")
    model["operations"] = {name: model["operations"][name] for name in OPERATIONS}
    model["shapes"] = _reachable_shapes(model)
    (dynamodb / "service-2.json").write_text(json.dumps(model, separators=(",", ":")))
    rules = _unpack(dynamodb / "endpoint-rule-set-1.json.gz")
    partitions = json.loads((data / "partitions.json").read_bytes())
    provider = EndpointProvider(rules, partitions)
    endpoints = json.loads((data / "endpoints.json").read_bytes())
    for partition in endpoints["partitions"]:
        regions = {name: _endpoint(provider, name) for name in partition["regions"]}
        partition["services"] = {"dynamodb": {"endpoints": regions}}
    (data / "endpoints.json").write_text(json.dumps(endpoints, separators=(",", ":")))


def _endpoint(provider: EndpointProvider, region: str) -> dict[str, Any]:
    """Return a region's endpoints, to store in the layer.

    So no cold start evaluates the SDK's endpoint rules, and each later request to get an animal
    needs 5 % fewer instructions. But then the SDK finds no dual-stack endpoints in two of AWS's
    isolated partitions (`us-iso-...`, `us-isob-...`), nor account-specific ones.
    """
    variants = []
    for fips, dual_stack in itertools.product((False, True), repeat=2):
        endpoint = provider.resolve_endpoint(
            Region=region, UseFIPS=fips, UseDualStack=dual_stack
        )
        tags = ["dualstack"] * dual_stack + ["fips"] * fips
        variants.append({"hostname": urlsplit(endpoint.url).netloc, "tags": tags})
    return {"hostname": variants.pop(0)["hostname"], "variants": variants}


def _unpack(path: Path) -> Any:
    """Return the content of a compressed file, and delete the file: plain JSON loads faster."""
    content = json.loads(gzip.decompress(path.read_bytes()))
    path.unlink()
    return content


def _reachable_shapes(model: dict[str, Any]) -> dict[str, Any]:
    """Return the shapes to which the operations refer, directly or through other shapes."""
    shapes: dict[str, Any] = {}
    queue = [model["operations"]]
    for value in queue:
        for name in re.findall(r'"shape": "(\w+)"', json.dumps(value)):
            if name not in shapes:
                shapes[name] = model["shapes"][name]
                queue.append(shapes[name])
    return shapes
