"""What the emulator needs changed in the stack's template, what it only stores, and a sentence on each for the report.

Every entry was seen on the emulator that locks/ministack.txt pins; look again when that changes.
"""

import copy
import re
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass
from typing import Any

Template = dict[str, Any]
Resource = dict[str, Any]

_STATISTICS = {"Average", "Maximum", "Minimum", "SampleCount", "Sum"}
_GATEWAY_RESPONSES = "x-amazon-apigateway-gateway-responses"


@dataclass(frozen=True, slots=True)
class Refusal:
    """A kind of resource that the emulator refuses.

    Args:
        matches: Whether a resource is of this kind.
        reason: For the report.
    """

    matches: Callable[[Resource], bool]
    reason: str


REFUSALS = (
    Refusal(
        lambda r: r["Type"].startswith("AWS::CodeDeploy::"), "no CodeDeploy: the alias moves at once, without canary"
    ),
    Refusal(lambda r: r["Type"] == "AWS::CloudWatch::CompositeAlarm", "no composite alarms in a stack"),
    Refusal(lambda r: r["Type"] == "AWS::WAFv2::WebACLAssociation", "no firewall in front of a stage"),
)

METRIC_MATH = "no metric math in a stack: kept with the first of its metrics alone"

_WITHOUT_EFFECT = {
    ("AWS::DynamoDB::Table", "PointInTimeRecoverySpecification"): "no restore",
    ("AWS::DynamoDB::Table", "SSESpecification"): "nothing is encrypted",
    ("AWS::Lambda::Function", "Architectures"): "functions run on this machine's processor (built for x86_64)",
    ("AWS::Lambda::Function", "MemorySize"): "no limit",
    ("AWS::Lambda::Function", "TracingConfig"): "no traces",
    ("AWS::Lambda::Permission", ""): "the emulated API Gateway calls functions without it",
    ("AWS::Lambda::LayerVersion", "CompatibleArchitectures"): "not compared with the functions'",
    ("AWS::ApiGateway::RestApi", "EndpointConfiguration"): "one endpoint for all",
    ("AWS::ApiGateway::Stage", "AccessLogSetting"): "no access log is written",
    ("AWS::ApiGateway::Stage", "MethodSettings"): "no throttling, no metrics, no execution log",
    ("AWS::ApiGateway::Stage", "TracingEnabled"): "no traces",
    ("AWS::ApiGateway::RequestValidator", ""): "requests are not validated",
    ("AWS::ApiGateway::Account", ""): "logs are not written anyway",
    ("AWS::CloudWatch::Alarm", ""): "stored; nothing here makes it go off",
    ("AWS::CloudWatch::Dashboard", ""): "stored; not drawn",
    ("AWS::Logs::LogGroup", "RetentionInDays"): "nothing lives long enough",
    ("AWS::SNS::Subscription", ""): "no mail is sent",
}
"""Why a property of a type (or, without one, the type as a whole) is taken and then does nothing."""

COMPLETED = (
    "gateway responses: the emulator reads none from the API's definition; each is made a resource of its own here",
    "proxy events: the emulator leaves requestContext.domainName and the X-Forwarded headers out; they are put in here",
)
"""What the rehearsal adds so that the rest can be tried."""


@dataclass(frozen=True, slots=True)
class Adapted:
    """A template that the emulator takes.

    Args:
        template: The template.
        left_out: Logical id of each resource that was left out, and why.
        reduced: Logical id of each resource that lost a part, and why.
    """

    template: Template
    left_out: dict[str, str]
    reduced: dict[str, str]


def adapt(template: Template) -> Adapted:
    """Make a translated template one that the emulator takes.

    Args:
        template: CloudFormation, as the SAM translator writes it; it stays as it is.

    Raises:
        ValueError: What stays refers to something that is left out.
    """
    adapted = copy.deepcopy(template)
    resources: dict[str, Resource] = adapted["Resources"]
    left_out = {}
    for name, resource in list(resources.items()):
        for refusal in REFUSALS:
            if refusal.matches(resource):
                left_out[name] = refusal.reason
                resources.pop(name, None)
    for resource in resources.values():
        resource.pop("UpdatePolicy", None)  # of an alias: how CodeDeploy moves it
        depends = [name for name in _list(resource.get("DependsOn")) if name not in left_out]
        resource.pop("DependsOn", None)
        if depends:
            resource["DependsOn"] = depends
    reduced = {name: METRIC_MATH for name, resource in resources.items() if _reduce_metric_math(resource)}
    _lift_gateway_responses(resources)
    for name, resource in resources.items():
        if dangling := sorted(set(_references(resource)) & set(left_out)):
            raise ValueError(f"{name} refers to {', '.join(dangling)}, which the emulator refuses")
    return Adapted(adapted, left_out, reduced)


def _reduce_metric_math(resource: Resource) -> bool:
    """Make an alarm on metric math one on its first metric, so that what refers to it (the dashboard) can stay."""
    properties = resource.get("Properties", {})
    if resource["Type"] != "AWS::CloudWatch::Alarm" or "Metrics" not in properties:
        return False
    metric = next(query["MetricStat"] for query in properties.pop("Metrics") if "MetricStat" in query)
    statistic = "Statistic" if metric["Stat"] in _STATISTICS else "ExtendedStatistic"
    properties |= metric["Metric"] | {"Period": metric["Period"], statistic: metric["Stat"]}
    return True


def _lift_gateway_responses(resources: dict[str, Resource]) -> None:
    """Make a resource of each gateway response, there before the deployment that takes it up."""
    made: dict[str, Resource] = {}
    for name, api in resources.items():
        if api["Type"] != "AWS::ApiGateway::RestApi":
            continue
        for kind, response in api["Properties"]["Body"].get(_GATEWAY_RESPONSES, {}).items():
            made[f"{name}{kind.title().replace('_', '')}Response"] = {
                "Type": "AWS::ApiGateway::GatewayResponse",
                "Properties": {"RestApiId": {"Ref": name}, "ResponseType": kind}
                | {key[0].upper() + key[1:]: value for key, value in response.items()},
            }
    for resource in resources.values():
        if resource["Type"] == "AWS::ApiGateway::Deployment" and made:
            resource["DependsOn"] = [*resource.get("DependsOn", []), *made]
    resources.update(made)


def _references(value: Any) -> Iterator[str]:
    """Find every logical id that a value refers to."""
    if isinstance(value, list):
        for item in value:
            yield from _references(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            if key == "Ref":
                yield item
            elif key == "Fn::GetAtt":
                yield _list(item)[0].partition(".")[0]
            elif key == "Fn::Sub":
                text = _list(item)[0]
                yield from (match.partition(".")[0] for match in re.findall(r"\$\{([^!}]+)\}", text))
            yield from _references(item)


def without_effect(template: Template, made: Container[str]) -> Iterator[str]:
    """Tell what of a template the emulator takes and does nothing with, a line each.

    Args:
        template: What was deployed.
        made: Logical ids of the resources whose conditions held.
    """
    resources = [resource for name, resource in template["Resources"].items() if name in made]
    for (kind, property_), why in _WITHOUT_EFFECT.items():
        found = [
            resource
            for resource in resources
            if resource["Type"] == kind and (not property_ or property_ in resource.get("Properties", {}))
        ]
        if found:
            yield f"{len(found)} x {kind}{f'.{property_}' if property_ else ''}: {why}"


def _list(value: Any) -> list[Any]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]
