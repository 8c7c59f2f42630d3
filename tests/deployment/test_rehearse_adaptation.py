"""The rehearsal changes of the template what the emulator needs, says what it was, and nothing else."""

import copy
from typing import Any

import pytest

from tools.deployment.adaptation import adapt, without_effect

GATEWAY_RESPONSES = "x-amazon-apigateway-gateway-responses"
METRIC = {"Metric": {"Namespace": "AWS/X", "MetricName": "Count", "Dimensions": []}, "Period": 60, "Stat": "p99"}


@pytest.fixture
def template() -> dict[str, Any]:
    return {
        "Resources": {
            "Application": {"Type": "AWS::CodeDeploy::Application"},
            "Group": {"Type": "AWS::CodeDeploy::DeploymentGroup", "Properties": {"Role": {"Ref": "Application"}}},
            "Alias": {
                "Type": "AWS::Lambda::Alias",
                "DependsOn": ["Application", "Table"],
                "UpdatePolicy": {"CodeDeployLambdaAliasUpdate": {"ApplicationName": {"Ref": "Application"}}},
                "Properties": {"Name": "live"},
            },
            "Table": {"Type": "AWS::DynamoDB::Table", "Properties": {"SSESpecification": {"SSEEnabled": True}}},
            "Plain": {"Type": "AWS::CloudWatch::Alarm", "Properties": {"MetricName": "Errors"}},
            "Math": {
                "Type": "AWS::CloudWatch::Alarm",
                "Properties": {
                    "Threshold": 1,
                    "Metrics": [{"Id": "rate", "Expression": "a/b"}, {"Id": "a", "MetricStat": METRIC}],
                },
            },
            "Api": {
                "Type": "AWS::ApiGateway::RestApi",
                "Properties": {"Body": {GATEWAY_RESPONSES: {"DEFAULT_4XX": {"responseTemplates": {"a/b": "{}"}}}}},
            },
            "Deployment": {"Type": "AWS::ApiGateway::Deployment", "Properties": {"RestApiId": {"Ref": "Api"}}},
        }
    }


def test_what_is_refused_is_left_out_and_told(template: dict[str, Any]) -> None:
    adapted = adapt(template)

    assert set(adapted.left_out) == {"Application", "Group"}
    assert not set(adapted.left_out) & set(adapted.template["Resources"])
    assert all("CodeDeploy" in reason for reason in adapted.left_out.values())


def test_an_alias_loses_only_what_codedeploy_would_do(template: dict[str, Any]) -> None:
    alias = adapt(template).template["Resources"]["Alias"]

    assert alias == {"Type": "AWS::Lambda::Alias", "DependsOn": ["Table"], "Properties": {"Name": "live"}}


def test_metric_math_becomes_its_first_metric_and_is_told(template: dict[str, Any]) -> None:
    adapted = adapt(template)

    assert set(adapted.reduced) == {"Math"}
    assert adapted.template["Resources"]["Math"]["Properties"] == {
        "Threshold": 1,
        "Namespace": "AWS/X",
        "MetricName": "Count",
        "Dimensions": [],
        "Period": 60,
        "ExtendedStatistic": "p99",
    }


def test_gateway_responses_are_there_before_the_deployment(template: dict[str, Any]) -> None:
    resources = adapt(template).template["Resources"]

    (name,) = resources["Deployment"]["DependsOn"]
    assert resources[name] == {
        "Type": "AWS::ApiGateway::GatewayResponse",
        "Properties": {
            "RestApiId": {"Ref": "Api"},
            "ResponseType": "DEFAULT_4XX",
            "ResponseTemplates": {"a/b": "{}"},
        },
    }


def test_everything_else_stays(template: dict[str, Any]) -> None:
    before = copy.deepcopy(template)

    resources = adapt(template).template["Resources"]

    assert template == before
    for name in ("Table", "Plain", "Api"):
        assert resources[name] == before["Resources"][name]


@pytest.mark.parametrize(
    "reference",
    [{"Ref": "Group"}, {"Fn::GetAtt": ["Group", "Arn"]}, {"Fn::GetAtt": "Group.Arn"}, {"Fn::Sub": "x-${Group.Arn}"}],
)
def test_a_reference_to_what_was_left_out_is_an_error(template: dict[str, Any], reference: dict[str, Any]) -> None:
    template["Resources"]["Plain"]["Properties"]["AlarmActions"] = [reference]

    with pytest.raises(ValueError, match="Plain refers to Group"):
        adapt(template)


def test_what_has_no_effect_is_told_if_it_was_made(template: dict[str, Any]) -> None:
    lines = list(without_effect(template, {"Table", "Plain"}))

    assert lines == [
        "1 x AWS::DynamoDB::Table.SSESpecification: nothing is encrypted",
        "1 x AWS::CloudWatch::Alarm: stored; nothing here makes it go off",
    ]
