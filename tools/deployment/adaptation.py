"""Change a stack's template so that the emulator takes it; emulator.yaml says what the emulator has not."""

import copy
import json
from collections.abc import Container, Iterator
from pathlib import Path
from typing import Any

import yaml

Template = dict[str, Any]

EMULATOR: Any = yaml.safe_load(Path(__file__).with_name("emulator.yaml").read_text("utf-8"))
_STATISTICS = {"Average", "Maximum", "Minimum", "SampleCount", "Sum"}


def adapt(template: Template) -> tuple[Template, dict[str, str]]:
    """Return a translated template as the emulator takes it, and what was left out or reduced, and why."""
    adapted = copy.deepcopy(template)
    resources: Template = adapted["Resources"]
    told = {}
    for name, resource in template["Resources"].items():
        for kind, why in EMULATOR["refused"].items():
            if resource["Type"].startswith(kind):
                told[name] = why
                del resources[name]
    for name, resource in resources.items():
        resource.pop("UpdatePolicy", None)  # of an alias: how CodeDeploy moves it
        resource["DependsOn"] = [other for other in _list(resource.get("DependsOn")) if other in resources]
        if _reduce_metric_math(resource):
            told[name] = "no metric math in a stack: kept with the first of its metrics alone"
    _lift_gateway_responses(resources)
    text = json.dumps(resources)
    for name in set(template["Resources"]) - set(resources):
        if any(reference in text for reference in (f'"Ref": "{name}"', f'["{name}", "', f"${{{name}")):
            raise ValueError(f"something refers to {name}, which cannot be on the emulator")
    return adapted, told


def _reduce_metric_math(resource: Template) -> bool:
    """Make an alarm on metric math one on its first metric, so that what refers to it (the dashboard) can stay."""
    properties = resource.get("Properties", {})
    if resource["Type"] != "AWS::CloudWatch::Alarm" or "Metrics" not in properties:
        return False
    metric = next(query["MetricStat"] for query in properties.pop("Metrics") if "MetricStat" in query)
    statistic = "Statistic" if metric["Stat"] in _STATISTICS else "ExtendedStatistic"
    properties |= metric["Metric"] | {"Period": metric["Period"], statistic: metric["Stat"]}
    return True


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


def without_effect(template: Template, made: Container[str]) -> Iterator[str]:
    """Tell what of a template the emulator takes and does nothing with; `made` are resources whose conditions held."""
    resources = [resource for name, resource in template["Resources"].items() if name in made]
    for what, why in EMULATOR["without effect"].items():
        kind, _, name = what.partition(".")
        found = [one for one in resources if one["Type"] == kind and (not name or name in one["Properties"])]
        if found:
            yield f"{len(found)} x {what}: {why}"


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value] if value else []
