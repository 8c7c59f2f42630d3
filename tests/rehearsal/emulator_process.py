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


def serve_stages(app, gateway):
    """Serve each stage of an API at `/STAGE` too, as execute-api does; pass on everything else."""

    async def serve(scope, receive, send):
        stage = scope["path"].split("/")[1] if scope["type"] == "http" else ""
        for api in [
            api for api, stages in gateway._stages_v1.items() if stage in stages
        ]:
            given = [
                (b"x-forwarded-port", os.environb[b"GATEWAY_PORT"]),
                (b"x-forwarded-proto", b"http"),
            ]
            headers, path = (
                [*scope["headers"], *given],
                f"/_aws/execute-api/{api}{scope['path']}",
            )
            scope = {**scope, "headers": headers, "path": path}
        await app(scope, receive, send)

    return serve


def complete_events(gateway):
    """Give proxy events the domain name, which the emulator leaves out.

    https://docs.aws.amazon.com/lambda/latest/dg/services-apigateway.html#apigateway-example-event
    """
    build = gateway._build_lambda_event_v1

    def complete(*arguments, **options):
        event = build(*arguments, **options)
        event["requestContext"]["domainName"] = (
            event["headers"].get("host", "").partition(":")[0]
        )
        return event

    gateway._build_lambda_event_v1 = complete


def expand_templates(changesets, engine, root, python):
    """Let CloudFormation expand SAM's transform, and leave out what the emulator refuses."""

    def expand(template, provided, previous):
        parameters = engine._transform_parameters(template, provided, previous)
        endpoint = f"http://127.0.0.1:{os.environ['GATEWAY_PORT']}"
        request = json.dumps(
            {"template": template, "parameters": parameters, "endpoint": endpoint}
        )
        command = [python, "-m", "tests.rehearsal.transform"]
        return json.loads(
            subprocess.check_output(command, cwd=root, input=request.encode())
        )

    changesets._apply_transforms = expand


def reserve_concurrency(provisioners, functions):
    """Give functions of a stack their reserved concurrency, and let it hold for versions too."""
    handlers = provisioners._RESOURCE_HANDLERS["AWS::Lambda::Function"]

    def complete(handle, properties):
        def handle_and_reserve(*arguments, **options):
            name, attributes = handle(*arguments, **options)
            reserved = arguments[properties].get("ReservedConcurrentExecutions")
            functions._functions[name]["concurrency"] = reserved and int(reserved)
            return name, attributes

        return handle_and_reserve

    handlers["create"] = complete(handlers["create"], 1)
    handlers["update"] = complete(handlers["update"], 2)
    functions._reserved_concurrency = lambda _, config: functions._functions[
        config["FunctionName"]
    ]["concurrency"]


def correct_permissions(evaluator, wrongly_refused):
    """Allow what the emulator refuses because it asks for another permission than AWS does."""
    enforce = evaluator.enforce

    def correct(access_key, action, *arguments, **options):
        if action in wrongly_refused:
            return None
        return enforce(access_key, action, *arguments, **options)

    evaluator.enforce = correct


def main(packages, listener, root, python, *wrongly_refused):
    """Serve on a listening socket, by its number, what is installed in a folder."""
    sys.path.append(packages)
    from hypercorn.asyncio import serve
    from hypercorn.config import Config
    from ministack.app import app
    from ministack.core import iam_evaluator
    from ministack.services import apigateway_v1, lambda_svc
    from ministack.services.cloudformation import changesets, engine, provisioners

    complete_events(apigateway_v1)
    expand_templates(changesets, engine, root, python)
    reserve_concurrency(provisioners, lambda_svc)
    correct_permissions(iam_evaluator, wrongly_refused)
    # Only the parent's idle connections are left at the end.
    options = {"loglevel": "WARNING", "keep_alive_timeout": 75, "graceful_timeout": 0.2}
    config = Config.from_mapping(bind=[f"fd://{listener}"], **options)
    end = partial(asyncio.to_thread, sys.stdin.read)
    asyncio.run(serve(serve_stages(app, apigateway_v1), config, shutdown_trigger=end))


if __name__ == "__main__":
    main(*sys.argv[1:])
