"""Compare what the alias `live` of each function runs with what was asked for."""

from base64 import b64decode
from collections.abc import Iterator, Mapping
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
    used = stage.used_parameters()
    for name, value in stage.parameters(artifact.folder / "samconfig.toml").items():
        if name != "Canary":
            yield from _compare(f"parameter {name}", used.get(name), value)
    for logical_id, function in stage.functions().items():
        yield from _function(logical_id, function, used, artifact.code)
    methods = client("apigateway").get_stage(restApiId=stage.resources()["Api"], stageName=stage.name)["methodSettings"]
    yield from _compare("throttling rate", methods["*/*"]["throttlingRateLimit"], used["ThrottlingRate"])
    yield from _compare("throttling burst", methods["*/*"]["throttlingBurstLimit"], used["ThrottlingBurst"])


def _function(logical_id: str, function: str, used: Mapping[str, str], code: Mapping[str, str]) -> Iterator[str]:
    functions = client("lambda")
    routing = functions.get_alias(FunctionName=function, Name="live").get("RoutingConfig", {})
    latest = functions.get_function(FunctionName=function)
    live = functions.get_function(FunctionName=function, Qualifier="live")["Configuration"]
    arn, _, number = live["Layers"][0]["Arn"].rpartition(":")
    layer = functions.get_layer_version(LayerName=arn, VersionNumber=int(number))["Content"]
    compared: dict[str, tuple[Any, Any]] = {
        "shares of other versions": (routing.get("AdditionalVersionWeights", {}), {}),
        "memory": (live["MemorySize"], used["MemorySize"]),
        "architecture": (live["Architectures"], [used["Architecture"]]),
        "reserved concurrency": (
            latest.get("Concurrency", {}).get("ReservedConcurrentExecutions", 0),
            used["ReservedConcurrency"],
        ),
        "code": (b64decode(live["CodeSha256"]).hex(), code[logical_id]),
        "layer": (b64decode(layer["CodeSha256"]).hex(), code["CommonLayer"]),
    }
    # Whatever can be set of a function: CloudFormation has set it on $LATEST, and a version has to follow.
    settings = functions.meta.service_model.operation_model("CreateFunction").input_shape.members
    for name in set(settings) & {*live, *latest["Configuration"]} - {"Description"}:
        compared[name] = (live.get(name), latest["Configuration"].get(name))
    for name, (found, expected) in sorted(compared.items()):
        yield from _compare(f"{logical_id}: {name}", found, expected)


def _compare(what: str, found: object, expected: object) -> Iterator[str]:
    if found != expected and _number(found) != _number(expected):
        yield f"{what} is {found}, not {expected}"


def _number(value: object) -> object:
    """Read numbers, which CloudFormation keeps as text."""
    try:
        return float(str(value))
    except ValueError:
        return value
