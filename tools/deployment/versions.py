"""Compare what a stage runs with what was asked for."""

from base64 import b64decode
from collections.abc import Iterator

from tools.deployment.service import DeploymentError
from tools.deployment.stage import Stage, client
from tools.packaging.artifact import Artifact

# Set when a version is published, and so not the same on $LATEST.
_OF_THE_VERSION = {"Description"}


def check(stage: Stage, artifact: Artifact) -> None:
    """Refuse a stage whose parameters, throttling or functions are not those of an artifact."""
    asked = stage.parameters(artifact.folder)
    wrong = [*_wrong_parameters(stage, asked), *_wrong_throttling(stage, asked)]
    for name, function in stage.functions().items():
        expected = {
            "code": artifact.code[name],
            "layer": artifact.code["CommonLayer"],
            "reserved concurrency": asked["ReservedConcurrency"],
        }
        wrong += [f"{name}: {each}" for each in wrong_settings(function, expected)]
    if wrong:
        raise DeploymentError(
            "\n".join([f"{stage.name} does not run what was asked for:", *wrong])
        )


def _wrong_parameters(stage: Stage, asked: dict[str, str]) -> Iterator[str]:
    used = stage.used_parameters()
    for name in sorted(asked.keys() - {"Canary"}):
        if used.get(name) != asked[name]:
            yield f"parameter {name} is {used.get(name)}, not {asked[name]}"


def _wrong_throttling(stage: Stage, asked: dict[str, str]) -> Iterator[str]:
    api = stage.resources()["Api"]
    settings = client("apigateway").get_stage(restApiId=api, stageName=stage.name)
    used = settings["methodSettings"]["*/*"]
    limits = {
        "throttlingRateLimit": "ThrottlingRate",
        "throttlingBurstLimit": "ThrottlingBurst",
    }
    for limit, parameter in limits.items():
        if float(used[limit]) != float(asked[parameter]):
            yield f"{limit} is {used[limit]}, not {asked[parameter]}"


def wrong_settings(function: str, expected: dict[str, str]) -> Iterator[str]:
    """Name what the version behind `live` has otherwise than expected, or than $LATEST.

    CloudFormation has set each property of $LATEST, and the version has to follow.
    """
    functions = client("lambda")
    latest = functions.get_function(FunctionName=function)
    live = functions.get_function(FunctionName=function, Qualifier="live")[
        "Configuration"
    ]
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
    settings = functions.meta.service_model.operation_model(
        "CreateFunction"
    ).input_shape.members
    for setting in sorted(set(settings) - _OF_THE_VERSION):
        on_latest = latest["Configuration"].get(setting)
        if live.get(setting) != on_latest:
            yield f"{setting} is {live.get(setting)}, not {on_latest}"
