"""Compare what a stage runs with an artifact."""

from base64 import b64decode
from collections.abc import Iterator

from tools.deployment.stage import DeploymentError, Stage
from tools.packaging.artifact import Artifact

# $LATEST has these as CloudFormation set them, and Environment differs in each deployment.
_SETTINGS = (
    "Architectures",
    "Environment",
    "Layers",
    "MemorySize",
    "Runtime",
    "Timeout",
)


def check(stage: Stage, artifact: Artifact) -> None:
    """Refuse a stage whose parameters or functions are not those of an artifact."""
    asked, used, wrong = stage.parameters(artifact.folder), stage.used_parameters(), []
    for name, value in asked.items():
        if name != "Canary" and used.get(name) != value:
            wrong.append(f"parameter {name} is {used.get(name)}, not {value}")
    resources, codes = stage.resources(), dict(artifact.code)
    layer, reserved = codes.pop("CommonLayer"), int(asked["ReservedConcurrency"])
    for name, code in codes.items():
        found = differences(stage, resources[name], code, layer, reserved)
        wrong += [f"{name}: {difference}" for difference in found]
    if wrong:
        message = f"{stage.name} does not run what was asked for:"
        raise DeploymentError("\n".join([message, *wrong]))


def differences(
    stage: Stage, function: str, code: str, layer: str, reserved: int
) -> Iterator[str]:
    """Say what is not as it should be in a function and the version behind `live`.

    Args:
        stage: The stage.
        function: The function's name.
        code: The SHA-256 of its code, in hexadecimal.
        layer: The SHA-256 of its layer, in hexadecimal.
        reserved: Its reserved concurrency; 0 for none.
    """
    aws = stage.client("lambda")
    live = aws.get_function(FunctionName=function, Qualifier="live")["Configuration"]
    answer = aws.get_function(FunctionName=function)
    latest, concurrency = answer["Configuration"], answer.get("Concurrency", {})
    layer_version = aws.get_layer_version_by_arn(Arn=live["Layers"][0]["Arn"])
    alias = aws.get_alias(FunctionName=function, Name="live")
    if _hexadecimal(live["CodeSha256"]) != code:
        yield f"the code is not {code}"
    if _hexadecimal(layer_version["Content"]["CodeSha256"]) != layer:
        yield f"the layer is not {layer}"
    if shares := alias.get("RoutingConfig", {}).get("AdditionalVersionWeights"):
        yield f"other versions have a share: {shares}"
    # None where nothing is reserved, and 0 if somebody has stopped the function by hand.
    used = concurrency.get("ReservedConcurrentExecutions")
    if used != (reserved or None):
        yield f"reserved concurrency is {used}, not {reserved or None}"
    for setting in _SETTINGS:
        if live.get(setting) != latest.get(setting):
            yield f"{setting} is {live.get(setting)}, not {latest.get(setting)}"


def _hexadecimal(sha256: str) -> str:
    return b64decode(sha256).hex()
