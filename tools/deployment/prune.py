"""Delete old versions of functions and layer: each deployment leaves its own, so that there is a way back."""

from collections.abc import Iterator

from tools.deployment.stage import Stage, client


def prune(stage: Stage, keep: int) -> Iterator[str]:
    """Delete all but the newest versions, those that are in use, and those that the stack knows; name each."""
    functions, stack = client("lambda"), set(stage.resources().values())
    kept = set(stack)
    for name in stage.functions().values():
        pages = functions.get_paginator("list_versions_by_function").paginate(FunctionName=name)
        versions = [one for page in pages for one in page["Versions"] if one["Version"] != "$LATEST"]
        in_use = {one["Version"] for one in sorted(versions, key=lambda one: -int(one["Version"]))[:keep]}
        for alias in functions.list_aliases(FunctionName=name)["Aliases"]:
            in_use |= {alias["FunctionVersion"], *alias.get("RoutingConfig", {}).get("AdditionalVersionWeights", {})}
        for version in versions:
            if version["Version"] in in_use or version["FunctionArn"] in stack:
                kept |= {layer["Arn"] for layer in version.get("Layers", ())}
            else:
                functions.delete_function(FunctionName=name, Qualifier=version["Version"])
                yield version["FunctionArn"]
    layer = f"{stage.stack}-common"
    for page in functions.get_paginator("list_layer_versions").paginate(LayerName=layer):
        for version in page["LayerVersions"]:
            if version["LayerVersionArn"] not in kept:
                functions.delete_layer_version(LayerName=layer, VersionNumber=version["Version"])
                yield version["LayerVersionArn"]
