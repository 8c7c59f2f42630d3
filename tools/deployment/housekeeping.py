"""Remove what deployments leave: old versions of code, and the tables of a first deployment that failed."""

from collections.abc import Iterator

from tools.deployment.service import DeploymentError
from tools.deployment.stage import TABLES, Stage, client


def prune(stage: Stage, keep: int) -> Iterator[str]:
    """Delete all but the newest versions of functions and layer, and those that are in use; name each."""
    functions = client("lambda")
    stack = set(stage.resources().values())
    layers = set()
    for name in stage.functions().values():
        pages = functions.get_paginator("list_versions_by_function").paginate(FunctionName=name)
        versions = [one for page in pages for one in page["Versions"] if one["Version"] != "$LATEST"]
        in_use = set()
        for alias in functions.list_aliases(FunctionName=name)["Aliases"]:
            in_use |= {alias["FunctionVersion"], *alias.get("RoutingConfig", {}).get("AdditionalVersionWeights", {})}
        newest = sorted(versions, key=lambda one: int(one["Version"]), reverse=True)[:keep]
        for version in versions:
            if version in newest or version["Version"] in in_use or version["FunctionArn"] in stack:
                layers |= {layer["Arn"] for layer in version.get("Layers", ())}
            else:
                functions.delete_function(FunctionName=name, Qualifier=version["Version"])
                yield version["FunctionArn"]
    layer = f"{stage.stack}-common"
    for page in functions.get_paginator("list_layer_versions").paginate(LayerName=layer):
        for version in page["LayerVersions"]:
            if version["LayerVersionArn"] not in layers | stack:
                functions.delete_layer_version(LayerName=layer, VersionNumber=version["Version"])
                yield version["LayerVersionArn"]


def clean_up(stage: Stage) -> Iterator[str]:
    """Delete the stack of a first deployment that failed, and its tables: they are protected, but empty."""
    if not stage.status().startswith("ROLLBACK_"):
        raise DeploymentError(f"{stage.stack} is no first deployment that failed: {stage.status() or 'there is none'}")
    cloudformation, dynamodb = client("cloudformation"), client("dynamodb")
    resources = stage.resources()
    tables = [resources[table] for table in TABLES if resources.get(table)]
    tables = [table for table in tables if table in dynamodb.list_tables()["TableNames"]]
    for table in tables:
        if dynamodb.scan(TableName=table, Limit=1)["Items"]:
            raise DeploymentError(f"{table} is not empty: look at it first")
    cloudformation.delete_stack(StackName=stage.stack)
    cloudformation.get_waiter("stack_delete_complete").wait(StackName=stage.stack)
    yield stage.stack
    for table in tables:
        dynamodb.update_table(TableName=table, DeletionProtectionEnabled=False)
        dynamodb.get_waiter("table_exists").wait(TableName=table)
        dynamodb.delete_table(TableName=table)
        yield table
