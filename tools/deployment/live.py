"""Compare what the alias `live` of each function runs with what was asked for."""

from collections.abc import Iterator, Mapping
from base64 import b64decode
from typing import Any

from tools.deployment.service import DeploymentError
from tools.deployment.stage import Stage, client
from tools.packaging.artifact import Artifact


def check(stage: Stage, artifact: Artifact) -> None:
    """Refuse a stage that does not run an artifact with its parameters."""
    if found := list(differences(stage, artifact)):
        raise DeploymentError("\n".join([f"{stage.name} does not run what was asked for:", *found]))


def differences(stage: Stage, artifact: Artifact) -> Iterator[str]:
    """Name what differs: parameters from samconfig.toml, versions from functions, code from the artifact."""
    asked = stage.parameters(artifact.folder / "samconfig.toml")
    used = stage.used_parameters()
    for name in sorted(set(asked) - {"Canary"}):
        yield from _compare(f"parameter {name}", used.get(name), asked[name])
    for logical_id, function in stage.functions().items():
        yield from _function(logical_id, function, used, artifact.code)
    methods = client("apigateway").get_stage(restApiId=stage.resources()["Api"], stageName=stage.name)["methodSettings"]
    yield from _compare("throttling rate", methods["*/*"]["throttlingRateLimit"], used["ThrottlingRate"])
    yield from _compare("throttling burst", methods["*/*"]["throttlingBurstLimit"], used["ThrottlingBurst"])


def _function(logical_id: str, function: str, used: Mapping[str, str], code: Mapping[str, str]) -> Iterator[str]:
    functions = client("lambda")
    routing = functions.get_alias(FunctionName=function, Name="live").get("RoutingConfig", {})
    yield from _compare(f"{logical_id}: shares of other versions", routing.get("AdditionalVersionWeights", {}), {})
    live = functions.get_function(FunctionName=function, Qualifier="live")["Configuration"]
    stack = functions.get_function(FunctionName=function)
    latest = stack["Configuration"]
    # Whatever can be set of a function: CloudFormation has set it on $LATEST, and a version has to follow.
    settings = functions.meta.service_model.operation_model("CreateFunction").input_shape.members
    for name in sorted(set(settings) & {*live, *latest} - {"Description"}):
        yield from _compare(f"{logical_id}: {name}", live.get(name), latest.get(name))
    yield from _compare(f"{logical_id}: MemorySize", live["MemorySize"], used["MemorySize"])
    yield from _compare(f"{logical_id}: architecture", live["Architectures"], [used["Architecture"]])
    reserved = stack.get("Concurrency", {}).get("ReservedConcurrentExecutions", 0)
    yield from _compare(f"{logical_id}: reserved concurrency", reserved, used["ReservedConcurrency"])
    arn, _, number = live["Layers"][0]["Arn"].rpartition(":")
    layer = functions.get_layer_version(LayerName=arn, VersionNumber=int(number))["Content"]
    yield from _compare(f"{logical_id}: code", _hexadecimal(live), code[logical_id])
    yield from _compare(f"{logical_id}: layer", _hexadecimal(layer), code["CommonLayer"])


def _hexadecimal(content: Mapping[str, Any]) -> str:
    return b64decode(content["CodeSha256"]).hex()


def _compare(what: str, found: object, expected: object) -> Iterator[str]:
    if found != expected and _number(found) != _number(expected):
        yield f"{what} is {found}, not {expected}"


def _number(value: object) -> object:
    """Read numbers, which CloudFormation keeps as text."""
    try:
        return float(str(value))
    except ValueError:
        return value
