"""Change a stack's template so that the emulator takes it; emulator.yaml says what the emulator has not."""

import json
from pathlib import Path
from typing import Any

import yaml

from tools.packaging.translate import translate

Template = dict[str, Any]

EMULATOR: Any = yaml.safe_load(Path(__file__).with_name("emulator.yaml").read_text("utf-8"))


def adapt(path: Path, parameters: dict[str, str]) -> None:
    """Translate a template in place, and change it to what the emulator takes."""
    template = translate(parameters, path)
    resources: Template = template["Resources"]
    refused = tuple(EMULATOR["Left out, because it cannot be on the emulator"])
    for name in [name for name, resource in resources.items() if resource["Type"].startswith(refused)]:
        del resources[name]
    for resource in resources.values():
        resource.pop("UpdatePolicy", None)  # of an alias: how CodeDeploy moves it
        others = resource.get("DependsOn", [])
        others = [others] if isinstance(others, str) else others
        resource["DependsOn"] = [other for other in others if other in resources]
        properties = resource.get("Properties", {})
        if "Metrics" in properties:  # so that what refers to the alarm (the dashboard) can stay
            metric = next(query["MetricStat"] for query in properties.pop("Metrics") if "MetricStat" in query)
            statistic = "ExtendedStatistic" if metric["Stat"].startswith("p") else "Statistic"
            properties |= metric["Metric"] | {"Period": metric["Period"], statistic: metric["Stat"]}
    _lift_gateway_responses(resources)
    path.write_text(json.dumps(template), "utf-8")


def _lift_gateway_responses(resources: Template) -> None:
    """Make a resource of each gateway response, there before the deployment that takes it up."""
    made: Template = {}
    for name, api in resources.items():
        if api["Type"] == "AWS::ApiGateway::RestApi":
            for kind, response in api["Properties"]["Body"].get("x-amazon-apigateway-gateway-responses", {}).items():
                properties = {key[0].upper() + key[1:]: value for key, value in response.items()}
                properties |= {"RestApiId": {"Ref": name}, "ResponseType": kind}
                resource = {"Type": "AWS::ApiGateway::GatewayResponse", "Properties": properties}
                made[f"{name}{kind.title().replace('_', '')}Response"] = resource
    for resource in resources.values():
        if resource["Type"] == "AWS::ApiGateway::Deployment":
            resource["DependsOn"] += made
    resources.update(made)
