"""What the emulator needs changed in a stack's template, what it only stores, and a sentence on each for the report.

Every entry was seen on the emulator that locks/ministack.txt pins; look again when that changes.
"""

import copy
import json
from collections.abc import Container, Iterator
from typing import Any

Template = dict[str, Any]

_STATISTICS = {"Average", "Maximum", "Minimum", "SampleCount", "Sum"}
_GATEWAY_RESPONSES = "x-amazon-apigateway-gateway-responses"

REFUSED = {
    "AWS::CodeDeploy::": "no CodeDeploy: the alias moves at once, without canary",
    "AWS::CloudWatch::CompositeAlarm": "no composite alarms in a stack",
    "AWS::Budgets::Budget": "no budgets",
    "AWS::IAM::OIDCProvider": "no identity provider",
    "AWS::S3::BucketPolicy": "it asks for TLS, which the emulator has not",
    "AWS::WAFv2::WebACLAssociation": "no firewall in front of a stage",
}
"""Why resources cannot be on the emulator, by the beginning of their type."""

METRIC_MATH = "no metric math in a stack: kept with the first of its metrics alone"

_WITHOUT_EFFECT = {
    ("AWS::DynamoDB::Table", "PointInTimeRecoverySpecification"): "restores give the table as it is, not as it was",
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
    ("AWS::WAFv2::WebACL", ""): "stored; no request is inspected",
}
"""Why a property of a type (or, without one, the type as a whole) is taken and then does nothing."""

COMPLETED = (
    "gateway responses: the emulator reads none from the API's definition; each is made a resource of its own here",
    "reserved concurrency: the emulator leaves it out of a stack, and does not apply it to versions",
    "proxy events: the emulator leaves requestContext.domainName and the X-Forwarded headers out; they are put in here",
)
"""What the rehearsal adds so that the rest can be tried."""


NOT_TRIED = ("arm64 code", "custom domain and certificate", "real IAM trust (root assumed the roles)")
"""What the emulator has no part in."""


def adapt(template: Template) -> tuple[Template, dict[str, str]]:
    """Make a translated template one that the emulator takes; return it, and what was left out or reduced, and why."""
    adapted = copy.deepcopy(template)
    resources: Template = adapted["Resources"]
    changed = {
        name: why
        for name, resource in resources.items()
        for kind, why in REFUSED.items()
        if resource["Type"].startswith(kind)
    }
    for name in changed:
        del resources[name]
    for name, resource in resources.items():
        resource.pop("UpdatePolicy", None)  # of an alias: how CodeDeploy moves it
        resource["DependsOn"] = [other for other in _list(resource.get("DependsOn")) if other in resources]
        if _reduce_metric_math(resource):
            changed[name] = METRIC_MATH
    _lift_gateway_responses(resources)
    text = json.dumps(resources)
    for name in set(template["Resources"]) - set(resources):
        if any(reference in text for reference in (f'"Ref": "{name}"', f'["{name}", "', f"${{{name}")):
            raise ValueError(f"something refers to {name}, which cannot be on the emulator")
    return adapted, changed


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
            for kind, response in api["Properties"]["Body"].get(_GATEWAY_RESPONSES, {}).items():
                properties = {key[0].upper() + key[1:]: value for key, value in response.items()}
                properties |= {"RestApiId": {"Ref": name}, "ResponseType": kind}
                made[f"{name}{kind.title().replace('_', '')}Response"] = {
                    "Type": "AWS::ApiGateway::GatewayResponse",
                    "Properties": properties,
                }
    for resource in resources.values():
        if resource["Type"] == "AWS::ApiGateway::Deployment":
            resource["DependsOn"] += made
    resources.update(made)


def without_effect(template: Template, made: Container[str]) -> Iterator[str]:
    """Tell what of a template the emulator takes and does nothing with; `made` are resources whose conditions held."""
    resources = [resource for name, resource in template["Resources"].items() if name in made]
    for (kind, property_), why in _WITHOUT_EFFECT.items():
        found = [one for one in resources if one["Type"] == kind and (not property_ or property_ in one["Properties"])]
        if found:
            yield f"{len(found)} x {kind}{f'.{property_}' if property_ else ''}: {why}"


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value] if value else []
