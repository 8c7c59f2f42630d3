"""Versions of functions: compare what the alias `live` runs with what was asked for, and delete old ones."""

from base64 import b64decode
from collections.abc import Iterator, Mapping
from string import Template
from typing import Any

import yaml

from tools.deployment.service import DeploymentError
from tools.deployment.stage import Stage, StageName, client
from tools.packaging.artifact import Artifact


def check(stage: Stage, artifact: Artifact) -> None:
    """Refuse a stage whose parameters, throttling or functions are not what an artifact asks for."""
    asked, made = stage.parameters(artifact.folder), artifact.code
    template = yaml.safe_load((artifact.folder / "template.yaml").read_text("utf-8"))
    resources = template["Resources"]
    used, api = stage.used_parameters(), stage.resources()["Api"]
    throttling = client("apigateway").get_stage(restApiId=api, stageName=stage.name)[
        "methodSettings"
    ]["*/*"]
    compared = {
        f"parameter {name}": (used.get(name), asked[name]) for name in asked.keys() - {"Canary"}
    }
    compared["throttling rate"] = throttling["throttlingRateLimit"], asked["ThrottlingRate"]
    compared["throttling burst"] = throttling["throttlingBurstLimit"], asked["ThrottlingBurst"]
    for name, function in stage.functions().items():
        # It holds every parameter that the function depends on: see template.yaml.
        version = Template(
            resources[name]["Properties"]["VersionDescription"]["Fn::Sub"]
        ).substitute(asked)
        of_function = {"version": version, "code": made[name], "layer": made["CommonLayer"]}
        pairs = _function(function, of_function | {"concurrency": asked["ReservedConcurrency"]})
        compared |= {f"{name}: {what}": pair for what, pair in pairs.items()}
    if wrong := list(differences(compared)):
        raise DeploymentError("\n".join([f"{stage.name} does not run what was asked for:", *wrong]))


def differences(compared: Mapping[str, tuple[Any, Any]]) -> Iterator[str]:
    """Name what differs of what was found and expected; CloudFormation keeps numbers as text."""
    for what, (found, expected) in sorted(compared.items()):
        if found != expected and str(found).removesuffix(".0") != expected:
            yield f"{what} is {found}, not {expected}"


def _function(function: str, asked: Mapping[str, str]) -> dict[str, tuple[Any, Any]]:
    functions = client("lambda")
    routing = functions.get_alias(FunctionName=function, Name="live").get("RoutingConfig", {})
    latest = functions.get_function(FunctionName=function)
    live = functions.get_function(FunctionName=function, Qualifier="live")["Configuration"]
    layer = functions.get_layer_version_by_arn(Arn=live["Layers"][0]["Arn"])["Content"]
    reserved = latest.get("Concurrency", {}).get("ReservedConcurrentExecutions", 0)
    # Whatever can be set of a function: CloudFormation has set it on $LATEST, and a version has to follow.
    settings = functions.meta.service_model.operation_model("CreateFunction").input_shape.members
    changed = set(settings) & {*live, *latest["Configuration"]} - {"Description"}
    return {
        **{
            setting: (live.get(setting), latest["Configuration"].get(setting))
            for setting in changed
        },
        "shares of other versions": (routing.get("AdditionalVersionWeights", {}), {}),
        "version": (live["Description"], asked["version"]),
        "reserved concurrency": (reserved, asked["concurrency"]),
        "code": (b64decode(live["CodeSha256"]).hex(), asked["code"]),
        "layer": (b64decode(layer["CodeSha256"]).hex(), asked["layer"]),
    }


def prune(stage: StageName, keep: int = 3) -> None:
    """Delete old versions of functions and layer: all but the newest, those in use, and those that the stack knows."""
    functions, kept = client("lambda"), set(stage.resources().values())
    for name in stage.functions().values():
        pages = functions.get_paginator("list_versions_by_function").paginate(FunctionName=name)
        versions = [
            one for page in pages for one in page["Versions"] if one["Version"] != "$LATEST"
        ]
        in_use = {
            one["Version"] for one in sorted(versions, key=lambda one: -int(one["Version"]))[:keep]
        }
        for alias in functions.list_aliases(FunctionName=name)["Aliases"]:
            in_use |= {
                alias["FunctionVersion"],
                *alias.get("RoutingConfig", {}).get("AdditionalVersionWeights", {}),
            }
        for version in versions:
            if version["Version"] in in_use or version["FunctionArn"] in kept:
                kept |= {layer["Arn"] for layer in version.get("Layers", ())}
            else:
                functions.delete_function(FunctionName=name, Qualifier=version["Version"])
                print(f"deleted {version['FunctionArn']}")
    layer = f"{stage.stack}-common"
    for page in functions.get_paginator("list_layer_versions").paginate(LayerName=layer):
        for version in page["LayerVersions"]:
            if version["LayerVersionArn"] not in kept:
                functions.delete_layer_version(LayerName=layer, VersionNumber=version["Version"])
                print(f"deleted {version['LayerVersionArn']}")
