"""Versions of functions: compare what `live` runs with what was asked for, and delete old ones."""

from base64 import b64decode
from collections.abc import Iterator
from typing import Any

from tools.deployment.service import DeploymentError
from tools.deployment.stage import Stage, StageName, client
from tools.packaging.artifact import Artifact

# Set when a version is published, and so not the same on $LATEST.
_OF_THE_VERSION = {"Description"}


def check(stage: Stage, artifact: Artifact) -> None:
    """Refuse a stage whose parameters, throttling or functions are not what an artifact asks for."""
    asked, functions = stage.parameters(artifact.folder), stage.functions()
    wrong = [*_wrong_parameters(stage, asked), *_wrong_throttling(stage, asked)]
    for name, function in functions.items():
        expected = {
            "code": artifact.code[name],
            "layer": artifact.code["CommonLayer"],
            "reserved concurrency": asked["ReservedConcurrency"],
        }
        wrong += [f"{name}: {each}" for each in wrong_settings(function, expected)]
    if wrong:
        raise DeploymentError("\n".join([f"{stage.name} does not run what was asked for:", *wrong]))


def _wrong_parameters(stage: Stage, asked: dict[str, str]) -> Iterator[str]:
    used = stage.used_parameters()
    for name in sorted(asked.keys() - {"Canary"}):
        if used.get(name) != asked[name]:
            yield f"parameter {name} is {used.get(name)}, not {asked[name]}"


def _wrong_throttling(stage: Stage, asked: dict[str, str]) -> Iterator[str]:
    api = stage.resources()["Api"]
    settings = client("apigateway").get_stage(restApiId=api, stageName=stage.name)
    used = settings["methodSettings"]["*/*"]
    limits = {"throttlingRateLimit": "ThrottlingRate", "throttlingBurstLimit": "ThrottlingBurst"}
    for limit, parameter in limits.items():
        if float(used[limit]) != float(asked[parameter]):
            yield f"{limit} is {used[limit]}, not {asked[parameter]}"


def wrong_settings(function: str, expected: dict[str, str]) -> Iterator[str]:
    """Name what the version behind `live` has otherwise than expected, or than $LATEST.

    CloudFormation has set each property of $LATEST, and the version has to follow.
    """
    functions = client("lambda")
    latest = functions.get_function(FunctionName=function)
    live = functions.get_function(FunctionName=function, Qualifier="live")["Configuration"]
    layer = functions.get_layer_version_by_arn(Arn=live["Layers"][0]["Arn"])["Content"]
    alias = functions.get_alias(FunctionName=function, Name="live")
    reserved = latest.get("Concurrency", {}).get("ReservedConcurrentExecutions", 0)
    found = {
        "code": b64decode(live["CodeSha256"]).hex(),
        "layer": b64decode(layer["CodeSha256"]).hex(),
        "reserved concurrency": str(reserved),
    }
    for what, value in expected.items():
        if found[what] != value:
            yield f"{what} is {found[what]}, not {value}"
    if shares := alias.get("RoutingConfig", {}).get("AdditionalVersionWeights"):
        yield f"other versions have a share: {shares}"
    settings = functions.meta.service_model.operation_model("CreateFunction").input_shape.members
    for setting in sorted(set(settings) - _OF_THE_VERSION):
        on_latest = latest["Configuration"].get(setting)
        if live.get(setting) != on_latest:
            yield f"{setting} is {live.get(setting)}, not {on_latest}"


def prune(stage: StageName, keep: int = 3) -> None:
    """Delete old versions of functions and layer that nothing uses, but for the newest KEEP."""
    functions, in_use = client("lambda"), set(stage.resources().values())
    for name in stage.functions().values():
        versions = _numbered_versions(name)
        aliased = _aliased_versions(name)
        for version in versions[:-keep]:
            if version["Version"] not in aliased and version["FunctionArn"] not in in_use:
                functions.delete_function(FunctionName=name, Qualifier=version["Version"])
                print(f"deleted {version['FunctionArn']}")
        for version in _numbered_versions(name):
            in_use |= {layer["Arn"] for layer in version.get("Layers", ())}
    layer = f"{stage.stack}-common"
    for page in functions.get_paginator("list_layer_versions").paginate(LayerName=layer):
        for version in page["LayerVersions"]:
            if version["LayerVersionArn"] not in in_use:
                functions.delete_layer_version(LayerName=layer, VersionNumber=version["Version"])
                print(f"deleted {version['LayerVersionArn']}")


def _numbered_versions(function: str) -> list[dict[str, Any]]:
    """Return the versions of a function, the newest last."""
    pages = client("lambda").get_paginator("list_versions_by_function")
    versions = [
        version
        for page in pages.paginate(FunctionName=function)
        for version in page["Versions"]
        if version["Version"] != "$LATEST"
    ]
    return sorted(versions, key=lambda version: int(version["Version"]))


def _aliased_versions(function: str) -> set[str]:
    """Return the numbers of the versions that an alias leads to, also for a share of the calls."""
    found: set[str] = set()
    for alias in client("lambda").list_aliases(FunctionName=function)["Aliases"]:
        weights = alias.get("RoutingConfig", {}).get("AdditionalVersionWeights", {})
        found |= {alias["FunctionVersion"], *weights}
    return found
