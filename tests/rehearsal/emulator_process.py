"""Runs the emulator, ministack, with changes where it differs from AWS (see emulator.yaml).

The argument is the number of a listening socket. The process ends when its stdin ends, which also
happens when its parent is killed.
"""
# mypy: ignore-errors
# ruff: noqa: ANN001, ANN002, ANN003, ANN201

import asyncio
import os
import sys
from functools import partial
from pathlib import Path

import yaml
from hypercorn.asyncio import serve
from hypercorn.config import Config
from ministack.app import app
from ministack.core import iam_evaluator
from ministack.services import apigateway_v1, dynamodb
from ministack.services.cloudformation import changesets

SCRIPT = Path(__file__)
# The emulator expands SAM templates with the translator of the sam command.
sys.path += map(str, SCRIPT.parents[2].glob(".tools/sam/lib/*/site-packages"))
DIFFERENCES = yaml.safe_load(SCRIPT.with_name("emulator.yaml").read_text())
REMOVED_TYPES = tuple(DIFFERENCES["Left out"])
ALLOWED_ACTIONS = DIFFERENCES["Allowed by emulator_process.py"]
PORT = os.environ["GATEWAY_PORT"]
GATEWAY_PATH = "/_aws/execute-api/"


def replaces(module, name):
    """Replace a function of the emulator by one whose first argument is the original function."""
    original_function = getattr(module, name)
    return lambda function: setattr(module, name, partial(function, original_function))


@replaces(apigateway_v1, "_build_lambda_event_v1")
def build_event(build, *arguments, **options):
    """Give proxy events the domain name, the whole path, and two headers of API Gateway.

    https://docs.aws.amazon.com/lambda/latest/dg/services-apigateway.html#apigateway-example-event
    """
    event = build(*arguments, **options)
    context, headers = event["requestContext"], event["multiValueHeaders"]
    context["domainName"] = "127.0.0.1"
    context["path"] = f"{GATEWAY_PATH}{context['apiId']}{context['path']}"
    headers["X-Forwarded-Proto"] = ["http"]
    headers["X-Forwarded-Port"] = [PORT]
    return event


@replaces(apigateway_v1, "_import_rest_api")
def import_api(create, body, *arguments):
    """Create an API with the gateway responses of its definition."""
    api = create(body, *arguments)
    for kind, response in body["x-amazon-apigateway-gateway-responses"].items():
        apigateway_v1._put_gateway_response(api, kind, response)
    return api


@replaces(apigateway_v1, "_media_type_matches")
def media_type_matches(match, media_type, binary_types):
    """Read binary media types as CloudFormation writes them: `application~1json`."""
    return match(media_type, [kind.replace("~1", "/") for kind in binary_types or []])


@replaces(changesets, "_apply_transforms")
def adapt_template(expand, *arguments):
    """Remove resources as emulator.yaml says, and set BaseUrl to the emulator's URL."""
    template = expand(*arguments)
    resources = template["Resources"]
    for name, resource in list(resources.items()):
        resource.pop("UpdatePolicy", None)  # needs CodeDeploy, which is left out
        if resource["Type"].startswith(REMOVED_TYPES):
            del resources[name]
    if "Api" in resources:
        url = f"http://127.0.0.1:{PORT}{GATEWAY_PATH}${{Api}}/${{Stage}}/v1"
        template["Outputs"]["BaseUrl"]["Value"] = {"Fn::Sub": url}
    return template


@replaces(iam_evaluator, "enforce")
def enforce(check, access_key, action, *arguments, **options):
    """Allow the actions that emulator.yaml lists."""
    if action in ALLOWED_ACTIONS:
        return None
    return check(access_key, action, *arguments, **options)


@replaces(dynamodb, "_table_description")
def describe_table(describe, name):
    """Add to the description of `TABLE-copy-1` that it was restored from TABLE, and when."""
    table = describe(name)
    source, _, copy = name.partition("-copy-")
    if copy:
        table["RestoreSummary"] = {
            "SourceTableArn": f"table/{source}",
            "RestoreDateTime": table["CreationDateTime"],
        }
    return table


# At the end, only idle connections of the parent process are open, so wait only 0.2 s.
OPTIONS = {"loglevel": "WARNING", "keep_alive_timeout": 75, "graceful_timeout": 0.2}
CONFIG = Config.from_mapping(bind=[f"fd://{sys.argv[1]}"], **OPTIONS)
asyncio.run(
    serve(app, CONFIG, shutdown_trigger=lambda: asyncio.to_thread(sys.stdin.read))
)
