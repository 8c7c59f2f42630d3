"""Expand a SAM template as CloudFormation does, and change it to what the emulator takes.

The emulator's process runs this with the Python of the sam command, where AWS's translator is
installed: JSON on stdin (template, parameters) to JSON on stdout (template).
`emulator.yaml` says what the emulator lacks.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

import yaml

from tools.packaging.translate import expand

LIMITATIONS = Path(__file__).with_name("emulator.yaml")
Template = dict[str, Any]


def adapt(template: Template) -> Template:
    """Leave out and replace what the emulator refuses, and serve the API at its endpoint."""
    resources = template["Resources"]
    limitations = yaml.safe_load(LIMITATIONS.read_text("utf-8"))
    refused = tuple(limitations["Left out, because it cannot be on the emulator"])
    for name in list(resources):
        if resources[name]["Type"].startswith(refused):
            del resources[name]
    for resource in resources.values():
        resource.pop("UpdatePolicy", None)  # of an alias: how CodeDeploy moves it
        others = resource.get("DependsOn", [])
        others = [others] if isinstance(others, str) else others
        resource["DependsOn"] = [other for other in others if other in resources]
    if "Api" in resources:
        _lift_gateway_responses(resources)
        gateway = f"http://127.0.0.1:{os.environ['GATEWAY_PORT']}/_aws/execute-api"
        url = {"Fn::Sub": f"{gateway}/${{Api}}/${{Stage}}/v1"}
        template["Outputs"]["BaseUrl"]["Value"] = url
    return template


def _lift_gateway_responses(resources: dict[str, Any]) -> None:
    """Make a resource of each gateway response, there before the deployment that takes it up."""
    (deployment,) = (
        resource
        for resource in resources.values()
        if resource["Type"] == "AWS::ApiGateway::Deployment"
    )
    body = resources["Api"]["Properties"]["Body"]
    for kind, response in body["x-amazon-apigateway-gateway-responses"].items():
        properties = {"RestApiId": {"Ref": "Api"}, "ResponseType": kind}
        for key, value in response.items():
            properties[key[0].upper() + key[1:]] = value
        name = f"Api{kind.replace('_', '')}"
        resources[name] = {
            "Type": "AWS::ApiGateway::GatewayResponse",
            "Properties": properties,
        }
        deployment["DependsOn"].append(name)


if __name__ == "__main__":
    json.dump(adapt(expand(**json.load(sys.stdin))), sys.stdout)
