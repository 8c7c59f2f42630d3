"""Reduce the SDK's own descriptions to what the layer calls: they are parsed as JSON at each cold start.

The SDK reads the reduced files like its own; none of its code changes, and every region, FIPS and VPC endpoint stays.
"""

import gzip
import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from botocore.endpoint_provider import EndpointProvider

OPERATIONS = ("GetItem", "PutItem", "Query", "TransactWriteItems", "UpdateItem")
"""What `catalogue` and `auth` call."""


def reduce(data: Path) -> None:
    """Rewrite the descriptions in a layer's `botocore/data` in place."""
    dynamodb = data / "dynamodb/2012-08-10"
    model = _unpack(dynamodb / "service-2.json.gz")
    model["operations"] = {name: model["operations"][name] for name in OPERATIONS}
    model["shapes"] = {name: model["shapes"][name] for name in sorted(set(_shapes(model)))}
    _write(dynamodb / "service-2.json", _without_documentation(model))

    rules = _unpack(dynamodb / "endpoint-rule-set-1.json.gz")
    provider = EndpointProvider(rules, json.loads((data / "partitions.json").read_bytes()))
    endpoints = json.loads((data / "endpoints.json").read_bytes())
    for partition in endpoints["partitions"]:
        partition["services"] = {
            "dynamodb": {"endpoints": {region: _endpoint(provider, region) for region in partition["regions"]}}
        }
    _write(data / "endpoints.json", endpoints)


def _endpoint(provider: EndpointProvider, region: str) -> dict[str, Any]:
    """Evaluate the SDK's rules for a region once, instead of for each request (4 % of a get, 5 % of a creation).

    The list of endpoints cannot express dual-stack in AWS's closed partitions (`us-iso...`), nor endpoints by account.
    """

    def host(*, fips: bool, dual_stack: bool) -> str:
        endpoint = provider.resolve_endpoint(Region=region, UseFIPS=fips, UseDualStack=dual_stack)
        return urlsplit(endpoint.url).netloc

    variants = [
        {"hostname": host(fips=fips, dual_stack=dual_stack), "tags": ["dualstack"] * dual_stack + ["fips"] * fips}
        for fips, dual_stack in itertools.product((False, True), repeat=2)
    ]
    return {"hostname": variants.pop(0)["hostname"], "variants": variants}


def _unpack(path: Path) -> Any:
    """Read a compressed description and remove it: unpacked, it starts faster and zips as well."""
    content = json.loads(gzip.decompress(path.read_bytes()))
    path.unlink()
    return content


def _write(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, separators=(",", ":")))


def _shapes(model: dict[str, Any]) -> Iterator[str]:
    """Name every shape that the operations reach, input, output and errors alike."""
    waiting = [*_references(list(model["operations"].values()))]
    seen: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting.extend(_references(model["shapes"][name]))
            yield name


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("shape"), str):
            yield value["shape"]
        for child in value.values():
            yield from _references(child)
    elif isinstance(value, list):
        for child in value:
            yield from _references(child)


def _without_documentation(value: Any) -> Any:
    """Leave out the texts: a `documentation` that is a string, never a member of that name, which is an object."""
    if isinstance(value, dict):
        return {
            key: _without_documentation(child)
            for key, child in value.items()
            if not (key == "documentation" and isinstance(child, str))
        }
    if isinstance(value, list):
        return [_without_documentation(child) for child in value]
    return value
