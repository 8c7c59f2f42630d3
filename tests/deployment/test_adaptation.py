"""The rehearsal changes of the template what the emulator needs, says what it was, and nothing else."""

import copy
from typing import Any

import pytest

from tools.deployment.adaptation import adapt, without_effect

METRIC: dict[str, Any] = {
    "Metric": {"Namespace": "AWS/X", "MetricName": "Count", "Dimensions": []},
    "Period": 60,
    "Stat": "p99",
}
RESPONSES = {"x-amazon-apigateway-gateway-responses": {"DEFAULT_4XX": {"responseTemplates": {"a/b": "{}"}}}}
RESOURCES: dict[str, Any] = {
    "Application": {"Type": "AWS::CodeDeploy::Application"},
    "Alias": {
        "Type": "AWS::Lambda::Alias",
        "DependsOn": ["Application", "Table"],
        "UpdatePolicy": {"CodeDeployLambdaAliasUpdate": {"ApplicationName": {"Ref": "Application"}}},
        "Properties": {"Name": "live"},
    },
    "Table": {"Type": "AWS::DynamoDB::Table", "Properties": {"PointInTimeRecoverySpecification": {}}},
    "Math": {
        "Type": "AWS::CloudWatch::Alarm",
        "Properties": {"Metrics": [{"Id": "rate", "Expression": "a/b"}, {"Id": "a", "MetricStat": METRIC}]},
    },
    "Api": {"Type": "AWS::ApiGateway::RestApi", "Properties": {"Body": RESPONSES}},
    "Deployment": {"Type": "AWS::ApiGateway::Deployment", "Properties": {"RestApiId": {"Ref": "Api"}}},
}


def test_what_the_emulator_does_not_take_is_left_out_or_reduced_and_told() -> None:
    template = {"Resources": copy.deepcopy(RESOURCES)}

    adapted, told = adapt(template)

    assert template == {"Resources": RESOURCES}
    resources = adapted["Resources"]
    assert set(told) == {"Application", "Math"}
    assert resources["Alias"] == {"Type": "AWS::Lambda::Alias", "DependsOn": ["Table"], "Properties": {"Name": "live"}}
    assert resources["Math"]["Properties"] == {**METRIC["Metric"], "Period": 60, "ExtendedStatistic": "p99"}
    assert resources["Api"]["Properties"] == RESOURCES["Api"]["Properties"]
    (response,) = resources["Deployment"]["DependsOn"]
    assert resources[response]["Properties"] == {
        "RestApiId": {"Ref": "Api"},
        "ResponseType": "DEFAULT_4XX",
        "ResponseTemplates": {"a/b": "{}"},
    }


@pytest.mark.parametrize(
    "reference", [{"Ref": "Application"}, {"Fn::GetAtt": ["Application", "Arn"]}, {"Fn::Sub": "x-${Application.Arn}"}]
)
def test_a_reference_to_what_was_left_out_is_an_error(reference: dict[str, Any]) -> None:
    resources = copy.deepcopy(RESOURCES)
    resources["Table"]["Properties"]["Tags"] = [reference]

    with pytest.raises(ValueError, match="refers to Application"):
        adapt({"Resources": resources})


def test_what_has_no_effect_is_told_if_it_was_made() -> None:
    lines = list(without_effect({"Resources": RESOURCES}, {"Table"}))

    assert lines == [
        "1 x AWS::DynamoDB::Table.PointInTimeRecoverySpecification: restores give the table as it is, not as it was"
    ]
