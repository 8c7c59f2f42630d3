"""Reduce the SDK's descriptions to what the layer calls: they are parsed at each cold start.

The SDK reads the reduced files like its own; none of its code changes, and every region, FIPS and
VPC endpoint stays.
"""

import gzip
import itertools
import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from botocore.endpoint_provider import EndpointProvider

from tools import ROOT

_MODULES = (ROOT / "layers/common/animal_store").glob("*.py")
_SOURCE = "".join(module.read_text() for module in _MODULES)
_METHODS = set(re.findall(r"dynamodb\.client\.(\w+)(?![\w.])", _SOURCE))
OPERATIONS = sorted(method.title().replace("_", "") for method in _METHODS)
"""What the layer calls."""


def reduce(data: Path) -> None:
    """Rewrite the descriptions in a layer's `botocore/data` in place."""
    dynamodb = data / "dynamodb/2012-08-10"
    model = _unpack(dynamodb / "service-2.json.gz")
    model["operations"] = {name: model["operations"][name] for name in OPERATIONS}
    model["shapes"] = _reached(model)
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
    """Evaluate the SDK's rules for a region once: 4 % of each get, 5 % of each creation.

    The list of endpoints cannot express dual-stack in AWS's closed partitions (`us-iso...`), nor
    endpoints by account.
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
    """Read a compressed description without its texts, and remove it: it starts faster."""

    def without_text(value: dict[str, Any]) -> dict[str, Any]:
        # A member of that name is an object.
        if isinstance(value.get("documentation"), str):
            del value["documentation"]
        return value

    content = json.loads(gzip.decompress(path.read_bytes()), object_hook=without_text)
    path.unlink()
    return content


def _reached(model: dict[str, Any]) -> dict[str, Any]:
    """Return every shape that the operations reach, input, output and errors alike."""
    shapes: dict[str, Any] = {}
    waiting = [model["operations"]]
    for each in waiting:
        for name in re.findall(r'"shape": "(\w+)"', json.dumps(each)):
            if name not in shapes:
                shapes[name] = model["shapes"][name]
                waiting.append(shapes[name])
    return shapes
