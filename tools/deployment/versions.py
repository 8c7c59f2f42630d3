"""Versions of functions: compare what the alias `live` runs with what was asked for, and delete old ones."""

from base64 import b64decode
from collections.abc import Iterator, Mapping
from pathlib import Path
from string import Template
from typing import Any

import yaml

from tools.deployment import release
from tools.deployment.service import DeploymentError
from tools.deployment.stage import Stage, StageName, client
from tools.packaging.artifact import Artifact


def check(stage: Stage, path: Path) -> None:
    """Refuse a stage that does not run an artifact with its parameters."""
    with release.unpacked(path) as artifact:
        if found := list(differences(stage, artifact)):
            raise DeploymentError("\n".join([f"{stage.name} does not run what was asked for:", *found]))


def differences(stage: Stage, artifact: Artifact) -> Iterator[str]:
    """Name what differs: the stack's parameters, versions of functions, code, throttling."""
    asked, used = stage.parameters(artifact.folder), stage.used_parameters()
    for name in asked.keys() - {"Canary"}:
        yield from _compare(f"parameter {name}", used.get(name), asked[name])
    resources = yaml.safe_load((artifact.folder / "template.yaml").read_text("utf-8"))["Resources"]
    for name, function in stage.functions().items():
        # It holds every parameter that the function depends on: see template.yaml.
        version = Template(resources[name]["Properties"]["VersionDescription"]["Fn::Sub"]).substitute(asked)
        yield from _function(name, function, asked, {**artifact.code, "version": version})
    methods = client("apigateway").get_stage(restApiId=stage.resources()["Api"], stageName=stage.name)["methodSettings"]
    yield from _compare("throttling rate", methods["*/*"]["throttlingRateLimit"], asked["ThrottlingRate"])
    yield from _compare("throttling burst", methods["*/*"]["throttlingBurstLimit"], asked["ThrottlingBurst"])


def _function(name: str, function: str, asked: Mapping[str, str], made: Mapping[str, str]) -> Iterator[str]:
    functions = client("lambda")
    routing = functions.get_alias(FunctionName=function, Name="live").get("RoutingConfig", {})
    latest = functions.get_function(FunctionName=function)
    live = functions.get_function(FunctionName=function, Qualifier="live")["Configuration"]
    layer = functions.get_layer_version_by_arn(Arn=live["Layers"][0]["Arn"])["Content"]
    reserved = latest.get("Concurrency", {}).get("ReservedConcurrentExecutions", 0)
    compared: dict[str, tuple[Any, Any]] = {
        "shares of other versions": (routing.get("AdditionalVersionWeights", {}), {}),
        "version": (live["Description"], made["version"]),
        "memory": (live["MemorySize"], asked["MemorySize"]),
        "architecture": (live["Architectures"], [asked["Architecture"]]),
        "reserved concurrency": (reserved, asked["ReservedConcurrency"]),
        "code": (b64decode(live["CodeSha256"]).hex(), made[name]),
        "layer": (b64decode(layer["CodeSha256"]).hex(), made["CommonLayer"]),
    }
    # Whatever can be set of a function: CloudFormation has set it on $LATEST, and a version has to follow.
    settings = functions.meta.service_model.operation_model("CreateFunction").input_shape.members
    for setting in set(settings) & {*live, *latest["Configuration"]} - {"Description"}:
        compared[setting] = (live.get(setting), latest["Configuration"].get(setting))
    for what, (found, expected) in sorted(compared.items()):
        yield from _compare(f"{name}: {what}", found, expected)


def _compare(what: str, found: object, expected: object) -> Iterator[str]:
    # CloudFormation keeps numbers as text.
    if found != expected and str(found).removesuffix(".0") != expected:
        yield f"{what} is {found}, not {expected}"


def prune(stage: StageName, keep: int = 3) -> Iterator[str]:
    """Delete old versions of functions and layer: all but the newest, those in use, and those that the stack knows."""
    functions, kept = client("lambda"), set(stage.resources().values())
    for name in stage.functions().values():
        pages = functions.get_paginator("list_versions_by_function").paginate(FunctionName=name)
        versions = [one for page in pages for one in page["Versions"] if one["Version"] != "$LATEST"]
        in_use = {one["Version"] for one in sorted(versions, key=lambda one: -int(one["Version"]))[:keep]}
        for alias in functions.list_aliases(FunctionName=name)["Aliases"]:
            in_use |= {alias["FunctionVersion"], *alias.get("RoutingConfig", {}).get("AdditionalVersionWeights", {})}
        for version in versions:
            if version["Version"] in in_use or version["FunctionArn"] in kept:
                kept |= {layer["Arn"] for layer in version.get("Layers", ())}
            else:
                functions.delete_function(FunctionName=name, Qualifier=version["Version"])
                yield f"deleted {version['FunctionArn']}"
    layer = f"{stage.stack}-common"
    for page in functions.get_paginator("list_layer_versions").paginate(LayerName=layer):
        for version in page["LayerVersions"]:
            if version["LayerVersionArn"] not in kept:
                functions.delete_layer_version(LayerName=layer, VersionNumber=version["Version"])
                yield f"deleted {version['LayerVersionArn']}"
