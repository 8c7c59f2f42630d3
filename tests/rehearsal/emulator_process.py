"""The emulator's process: ministack, completed where it does less than AWS.

Run by an interpreter without any library: functions run by it too, and on Lambda they find only
what their layer has. It ends with stdin, and so with its parent however that dies.
"""
# mypy: ignore-errors
# ruff: noqa: ANN001, ANN002, ANN003, ANN201, ANN202

import asyncio
import json
import os
import subprocess
import sys
from functools import partial
from http import HTTPStatus


def complete_events(gateway):
    """Give proxy events the domain name, the whole path, and the headers of API Gateway.

    https://docs.aws.amazon.com/lambda/latest/dg/services-apigateway.html#apigateway-example-event
    """
    build = gateway._build_lambda_event_v1

    def complete(*arguments, **options):
        event = build(*arguments, **options)
        context, headers = event["requestContext"], event["multiValueHeaders"]
        context["domainName"] = "127.0.0.1"
        context["path"] = f"/_aws/execute-api/{context['apiId']}{context['path']}"
        headers["X-Forwarded-Proto"] = ["http"]
        headers["X-Forwarded-Port"] = [os.environ["GATEWAY_PORT"]]
        return event

    gateway._build_lambda_event_v1 = complete


def expand_templates(changesets, engine, root):
    """Let CloudFormation expand SAM's transform, and leave out what the emulator refuses."""
    command = [f"{root}/.tools/sam/bin/python", "-m", "tests.rehearsal.transform"]

    def expand(template, provided, previous):
        parameters = engine._transform_parameters(template, provided, previous)
        request = json.dumps({"template": template, "parameters": parameters})
        expanded = subprocess.check_output(command, cwd=root, input=request.encode())
        return json.loads(expanded)

    changesets._apply_transforms = expand


def correct_permissions(evaluator, wrongly_refused):
    """Allow what the emulator refuses because it asks for another permission than AWS does."""
    enforce = evaluator.enforce

    def correct(access_key, action, *arguments, **options):
        if action in wrongly_refused:
            return None
        return enforce(access_key, action, *arguments, **options)

    evaluator.enforce = correct


def describe_restores(dynamodb):
    """Say of a copy which table and moment it is from."""
    restore, describe = (
        dynamodb._restore_table_to_point_in_time,
        dynamodb._table_description,
    )

    def noting(data):
        response = restore(data)
        if response[0] == HTTPStatus.OK:
            dynamodb._tables[data["TargetTableName"]]["RestoreSummary"] = {
                "SourceTableArn": dynamodb._tables[data["SourceTableName"]]["TableArn"],
                "RestoreDateTime": data["RestoreDateTime"],
            }
        return response

    def describing(name):
        made = dynamodb._tables[name].get("RestoreSummary")
        return describe(name) | ({"RestoreSummary": made} if made else {})

    dynamodb._restore_table_to_point_in_time = noting
    dynamodb._table_description = describing


def main(packages, listener, root, *wrongly_refused):
    """Serve on a listening socket, by its number, what is installed in a folder."""
    sys.path.append(packages)
    from hypercorn.asyncio import serve
    from hypercorn.config import Config
    from ministack.app import app
    from ministack.core import iam_evaluator
    from ministack.services import apigateway_v1, dynamodb
    from ministack.services.cloudformation import changesets, engine

    complete_events(apigateway_v1)
    expand_templates(changesets, engine, root)
    correct_permissions(iam_evaluator, wrongly_refused)
    describe_restores(dynamodb)
    # Only the parent's idle connections are left at the end.
    options = {"loglevel": "WARNING", "keep_alive_timeout": 75, "graceful_timeout": 0.2}
    config = Config.from_mapping(bind=[f"fd://{listener}"], **options)
    end = partial(asyncio.to_thread, sys.stdin.read)
    asyncio.run(serve(app, config, shutdown_trigger=end))


if __name__ == "__main__":
    main(*sys.argv[1:])
