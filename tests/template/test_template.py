"""What template.yaml promises, read from the CloudFormation that AWS makes of it."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.template.conftest import Template, parameters
from tools import ROOT
from tools.packaging.translate import TEMPLATE, translate

FUNCTIONS = {"ListPets": "listPets", "CreatePet": "createPet", "GetPet": "getPet"}

# Every responseType of https://docs.aws.amazon.com/apigateway/latest/api/API_GatewayResponse.html
GATEWAY_STATUS = {
    "ACCESS_DENIED": 401,
    "API_CONFIGURATION_ERROR": 500,
    "AUTHORIZER_CONFIGURATION_ERROR": 500,
    "AUTHORIZER_FAILURE": 500,
    "BAD_REQUEST_BODY": 400,
    "BAD_REQUEST_PARAMETERS": 400,
    "EXPIRED_TOKEN": 401,
    "INTEGRATION_FAILURE": 504,
    "INTEGRATION_TIMEOUT": 504,
    "INVALID_API_KEY": 401,
    "INVALID_SIGNATURE": 404,
    "MISSING_AUTHENTICATION_TOKEN": 404,
    "QUOTA_EXCEEDED": 429,
    "REQUEST_TOO_LARGE": 413,
    "RESOURCE_NOT_FOUND": 404,
    "THROTTLED": 429,
    "UNAUTHORIZED": 401,
    "UNSUPPORTED_MEDIA_TYPE": 415,
    "WAF_FILTERED": 400,
}
# Without a StatusCode: one here would change that of every other type.
GATEWAY_DEFAULTS = {"DEFAULT_4XX": 400, "DEFAULT_5XX": 502}
CODES = {
    400: "invalid_request",
    401: "unauthorized",
    404: "not_found",
    413: "payload_too_large",
    415: "unsupported_media_type",
    429: "too_many_requests",
    500: "internal_error",
    502: "internal_error",
    504: "timeout",
}

# Dimensions that the services publish: an alarm on any other set never sees a value.
DIMENSIONS = {
    "AWS/ApiGateway": [{"ApiName", "Stage"}],
    "AWS/Lambda": [{"FunctionName", "Resource"}],
    "AnimalStore": [{"Stage", "Operation", "Code"}],
    ("AWS/DynamoDB", "SystemErrors"): [{"TableName", "Operation"}],
    ("AWS/DynamoDB", "ReadThrottleEvents"): [{"TableName"}, {"TableName", "GlobalSecondaryIndexName"}],
    ("AWS/DynamoDB", "WriteThrottleEvents"): [{"TableName"}, {"TableName", "GlobalSecondaryIndexName"}],
}


def of_type(stack: Template, kind: str) -> dict[str, Any]:
    """Resources of one type, by logical id."""
    return {name: resource for name, resource in stack["Resources"].items() if resource["Type"] == kind}


def only(stack: Template, kind: str) -> Any:
    """Properties of the one resource of a type."""
    (resource,) = of_type(stack, kind).values()
    return resource["Properties"]


def statements(stack: Template) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every statement of every role's policies, with the role's logical id."""
    for name, role in of_type(stack, "AWS::IAM::Role").items():
        for policy in role["Properties"].get("Policies", []):
            for statement in policy["PolicyDocument"]["Statement"]:
                yield name, statement


def as_list(value: Any) -> list[Any]:
    """The value, as a list where it is none."""
    return value if isinstance(value, list) else [value]


# -- permissions -------------------------------------------------------------------------------------------------------


def test_each_function_may_do_what_it_does_and_nothing_else(stack: Template) -> None:
    animals, keys = {"Fn::GetAtt": ["AnimalsTable", "Arn"]}, {"Fn::GetAtt": ["ApiKeysTable", "Arn"]}
    by_status = {"Fn::Sub": "${AnimalsTable.Arn}/index/by-status"}
    expected = {
        "ListPetsRole": [(["dynamodb:Query"], [animals, by_status]), (["dynamodb:GetItem"], [keys])],
        "CreatePetRole": [(["dynamodb:PutItem", "dynamodb:UpdateItem"], [animals]), (["dynamodb:GetItem"], [keys])],
        "GetPetRole": [(["dynamodb:GetItem"], [animals]), (["dynamodb:GetItem"], [keys])],
    }
    found: dict[str, list[Any]] = {name: [] for name in expected}
    for role, statement in statements(stack):
        actions = as_list(statement["Action"])
        if actions[0].startswith("dynamodb:"):
            found[role].append((actions, as_list(statement["Resource"])))
        else:
            assert statement["Sid"] in {"WriteOwnLog", "SendTraces"}
    assert found == expected


def test_a_wildcard_stands_only_where_aws_knows_no_resource(stack: Template) -> None:
    for role, statement in statements(stack):
        assert statement["Effect"] == "Allow"
        assert all("*" not in action for action in as_list(statement["Action"])), role
        for resource in as_list(statement["Resource"]):
            if "*" in json.dumps(resource):
                log_streams = f"${{{role.removesuffix('Role')}LogGroup}}:log-stream:*"
                assert statement["Sid"] == "SendTraces" or resource["Fn::Sub"].endswith(log_streams), role
    explained = re.search(r"# .*X-Ray's two actions know no resource", TEMPLATE.read_text())
    assert explained


def test_functions_take_no_managed_policy(stack: Template) -> None:
    for name in FUNCTIONS:
        assert "ManagedPolicyArns" not in stack["Resources"][f"{name}Role"]["Properties"]
        assert stack["Resources"][f"{name}Function"]["Properties"]["Role"] == {"Fn::GetAtt": [f"{name}Role", "Arn"]}


# -- functions ---------------------------------------------------------------------------------------------------------


def test_there_is_one_function_per_operation(stack: Template) -> None:
    assert set(of_type(stack, "AWS::Lambda::Function")) == {f"{name}Function" for name in FUNCTIONS}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_runs_as_decided(stack: Template, name: str) -> None:
    properties = stack["Resources"][f"{name}Function"]["Properties"]
    assert properties["Runtime"] == "python3.13"
    assert properties["Handler"] == "app.handler"
    assert properties["Architectures"] == [{"Ref": "Architecture"}]
    assert properties["TracingConfig"] == {"Mode": "Active"}
    assert properties["LoggingConfig"] == {"LogFormat": "JSON", "LogGroup": {"Ref": f"{name}LogGroup"}}
    assert "RetentionInDays" in stack["Resources"][f"{name}LogGroup"]["Properties"]
    assert set(properties["Environment"]["Variables"]) >= {"ANIMALS_TABLE", "API_KEYS_TABLE", "STAGE"}


def test_waiting_ends_inside_the_gateways_29_seconds(stack: Template) -> None:
    timeouts = {function["Properties"]["Timeout"] for function in of_type(stack, "AWS::Lambda::Function").values()}
    assert timeouts == {10}
    # The alarm on the duration warns before the timeout.
    assert stack["Resources"]["FunctionDurationAlarm"]["Properties"]["Threshold"] < 10_000


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_api_calls_the_alias_that_deployments_shift(stack: Template, name: str) -> None:
    resources = stack["Resources"]
    alias = resources[f"{name}FunctionAliaslive"]
    group = resources[alias["UpdatePolicy"]["CodeDeployLambdaAliasUpdate"]["DeploymentGroupName"]["Ref"]]["Properties"]
    assert group["AlarmConfiguration"] == {"Alarms": [{"Name": {"Ref": f"{name}ErrorsAlarm"}}], "Enabled": True}
    assert group["AutoRollbackConfiguration"]["Enabled"] is True
    assert "DEPLOYMENT_STOP_ON_ALARM" in group["AutoRollbackConfiguration"]["Events"]
    uris = [
        operation["x-amazon-apigateway-integration"]["uri"]["Fn::Sub"]
        for path in only(stack, "AWS::ApiGateway::RestApi")["Body"]["paths"].values()
        for operation in path.values()
    ]
    assert sum(f"${{{name}FunctionAliaslive}}" in uri for uri in uris) == 1


@pytest.mark.parametrize("change", ["layer", "environment"])
def test_a_change_outside_the_code_reaches_the_alias(tmp_path: Path, change: str) -> None:
    text = TEMPLATE.read_text()
    changed = {
        "layer": text.replace("ContentUri: layers/common/", "ContentUri: s3://bucket/other-layer"),
        "environment": text.replace("POWERTOOLS_LOG_LEVEL: INFO", "POWERTOOLS_LOG_LEVEL: DEBUG"),
    }[change]
    assert changed != text
    other = tmp_path / "template.yaml"
    other.write_text(changed)
    before, after = (translate(parameters("staging"), template) for template in (TEMPLATE, other))
    versions = [set(of_type(stack, "AWS::Lambda::Version")) for stack in (before, after)]
    assert len(versions[0]) == len(FUNCTIONS)
    assert not versions[0] & versions[1]


# -- API ---------------------------------------------------------------------------------------------------------------


def test_the_api_has_the_interfaces_operations(stack: Template) -> None:
    paths = only(stack, "AWS::ApiGateway::RestApi")["Body"]["paths"]
    assert {path: set(methods) for path, methods in paths.items()} == {
        "/v1/pets": {"get", "post"},
        "/v1/pets/{petId}": {"get"},
    }


def test_there_is_one_stage(stack: Template) -> None:
    stage = only(stack, "AWS::ApiGateway::Stage")
    assert stage["StageName"] == {"Ref": "Stage"}
    assert "StageName" not in only(stack, "AWS::ApiGateway::Deployment")


def test_requests_are_limited_and_logged(stack: Template) -> None:
    stage = only(stack, "AWS::ApiGateway::Stage")
    (settings,) = stage["MethodSettings"]
    assert (settings["ResourcePath"], settings["HttpMethod"]) == ("/*", "*")
    assert settings["ThrottlingRateLimit"] == {"Ref": "ThrottlingRate"}
    assert settings["ThrottlingBurstLimit"] == {"Ref": "ThrottlingBurst"}
    assert settings["DataTraceEnabled"] is False
    log_format = stage["AccessLogSetting"]["Format"]
    assert "\n" not in log_format
    assert all(value.startswith("$context.") for value in json.loads(log_format).values())
    # No key in the log, not even a part of one.
    assert "authoriz" not in log_format.lower()


def test_every_error_of_the_gateway_is_the_error_object(stack: Template) -> None:
    responses = only(stack, "AWS::ApiGateway::RestApi")["Body"]["x-amazon-apigateway-gateway-responses"]
    assert set(responses) == GATEWAY_STATUS.keys() | GATEWAY_DEFAULTS.keys()
    for kind, response in responses.items():
        status = (GATEWAY_STATUS | GATEWAY_DEFAULTS)[kind]
        assert response.get("statusCode") == (str(status) if kind in GATEWAY_STATUS else None), kind
        body = json.loads(response["responseTemplates"]["application/json"])
        assert set(body) == {"code", "message", "status"}
        assert (body["code"], body["status"]) == (CODES[status], status), kind
        headers = response["responseParameters"]
        assert headers["gatewayresponse.header.Cache-Control"] == "'no-store'"
        assert headers["gatewayresponse.header.X-Content-Type-Options"] == "'nosniff'"
        assert ("gatewayresponse.header.WWW-Authenticate" in headers) == (status == 401), kind
        assert ("gatewayresponse.header.Retry-After" in headers) == (status in {429, 504}), kind


def test_the_base_url_ends_in_v1(stack: Template) -> None:
    plain, with_domain = (
        stack["Outputs"]["BaseUrl"]["Value"]["Fn::If"][2],
        stack["Outputs"]["BaseUrl"]["Value"]["Fn::If"][1],
    )
    assert plain["Fn::Sub"].endswith("/${Stage}/v1")
    assert with_domain["Fn::Sub"] == "https://${DomainName}/v1"
    assert "BasePath" not in only(stack, "AWS::ApiGateway::BasePathMapping")


# -- data --------------------------------------------------------------------------------------------------------------


def test_tables_are_kept_and_protected(stack: Template) -> None:
    tables = of_type(stack, "AWS::DynamoDB::Table")
    assert set(tables) == {"AnimalsTable", "ApiKeysTable"}
    for table in tables.values():
        assert table["DeletionPolicy"] == table["UpdateReplacePolicy"] == "Retain"
        properties = table["Properties"]
        assert properties["DeletionProtectionEnabled"] is True
        assert properties["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}
        assert properties["SSESpecification"] == {"SSEEnabled": True}
        assert properties["BillingMode"] == "PAY_PER_REQUEST"
    ttl = tables["AnimalsTable"]["Properties"]["TimeToLiveSpecification"]
    assert ttl == {"AttributeName": "expires", "Enabled": True}
    # A key that expired would vanish from the administrator's list.
    assert "TimeToLiveSpecification" not in tables["ApiKeysTable"]["Properties"]


# -- stages ------------------------------------------------------------------------------------------------------------


def test_stages_differ_in_parameters_only(stages: dict[str, Template]) -> None:
    def plain(template: Template) -> str:
        # SAM writes parameter values into the deployment configuration's name, and hashes them into logical ids.
        text = re.sub(r'"ConfigName": "\w+"', "", json.dumps(template, sort_keys=True))
        return re.sub(r"(Version|Deployment|CommonLayer)[0-9a-f]{10}\b", r"\1", text)

    assert plain(stages["staging"]) == plain(stages["production"])
    assert parameters("staging") != parameters("production")
    assert parameters("staging").keys() == parameters("production").keys()


def test_production_is_careful() -> None:
    production = parameters("production")
    assert production["SnapStart"] == "PublishedVersions"
    assert production["DeploymentType"].startswith("Canary")


def test_every_given_parameter_exists(stack: Template) -> None:
    for stage in ("staging", "production"):
        assert parameters(stage).keys() <= stack["Parameters"].keys()


# -- watching ----------------------------------------------------------------------------------------------------------


def metrics(alarm: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The metrics of an alarm, those inside metric math too."""
    if "Metrics" not in alarm:
        yield alarm
    for entry in alarm.get("Metrics", []):
        if "MetricStat" in entry:
            yield entry["MetricStat"]["Metric"]


def test_every_alarm_watches_a_metric_that_exists(stack: Template) -> None:
    alarms = of_type(stack, "AWS::CloudWatch::Alarm")
    assert {f"{name}ErrorsAlarm" for name in FUNCTIONS} < set(alarms)
    for name, alarm in alarms.items():
        properties = alarm["Properties"]
        for metric in metrics(properties):
            key = (metric["Namespace"], metric["MetricName"])
            known = DIMENSIONS.get(key) or DIMENSIONS[metric["Namespace"]]
            assert {dimension["Name"] for dimension in metric["Dimensions"]} in known, name
        assert properties["TreatMissingData"] == "notBreaching"
        assert properties["AlarmActions"] == [{"Ref": "AlarmTopic"}]
        assert len(properties["AlarmDescription"]) > 60, name


def test_metric_math_uses_what_it_declares(stack: Template) -> None:
    for name, alarm in of_type(stack, "AWS::CloudWatch::Alarm").items():
        entries = alarm["Properties"].get("Metrics", [])
        expressions = [entry for entry in entries if "Expression" in entry]
        assert len(expressions) == (1 if entries else 0)
        for expression in expressions:
            used = set(re.findall(r"\b[a-z]\w*", expression["Expression"]))
            assert used == {entry["Id"] for entry in entries if "MetricStat" in entry}, name


def test_an_alarm_that_fills_gaps_does_not_hang_on_the_newest_minute(stack: Template) -> None:
    filling = [
        alarm["Properties"]
        for alarm in of_type(stack, "AWS::CloudWatch::Alarm").values()
        if any("FILL(" in entry.get("Expression", "") for entry in alarm["Properties"].get("Metrics", []))
    ]
    assert filling
    for properties in filling:
        # The newest minute has no data yet, so FILL makes it 0: an alarm of that minute alone never rings.
        assert properties.get("DatapointsToAlarm", properties["EvaluationPeriods"]) < properties["EvaluationPeriods"]


@pytest.mark.parametrize(("name", "operation"), FUNCTIONS.items())
def test_a_canary_is_judged_by_the_alias_and_by_our_own_500s(stack: Template, name: str, operation: str) -> None:
    crashes, bugs = metrics(stack["Resources"][f"{name}ErrorsAlarm"]["Properties"])
    assert crashes["Dimensions"] == [
        {"Name": "FunctionName", "Value": {"Ref": f"{name}Function"}},
        {"Name": "Resource", "Value": {"Fn::Sub": f"${{{name}Function}}:live"}},
    ]
    values = {dimension["Name"]: dimension["Value"] for dimension in bugs["Dimensions"]}
    assert values == {
        "Stage": {"Ref": "Stage"},
        "Operation": operation,
        "Code": "internal_error",
    }


def test_the_dashboard_can_be_drawn(stack: Template) -> None:
    body = only(stack, "AWS::CloudWatch::Dashboard")["DashboardBody"]["Fn::Sub"]
    names = re.findall(r"\$\{([^!}]+)\}", body)
    known = stack["Resources"].keys() | stack["Parameters"].keys()
    assert all(name.startswith("AWS::") or name.split(".")[0] in known for name in names)
    widgets = json.loads(re.sub(r"\$\{([^}]+)\}", r"<\1>", body))["widgets"]
    for widget in widgets:
        assert widget["x"] + widget["width"] <= 24
    alarms = next(widget for widget in widgets if widget["type"] == "alarm")["properties"]["alarms"]
    assert alarms == [f"<{name}.Arn>" for name in of_type(stack, "AWS::CloudWatch::Alarm")]
    assert all(f'MetricName=\\"{name}\\"' in body for name in ("Latency", "ColdStart", "DeprecatedCalls"))


def test_each_metric_of_the_dashboard_is_one_that_the_layer_counts(stack: Template) -> None:
    body = only(stack, "AWS::CloudWatch::Dashboard")["DashboardBody"]["Fn::Sub"]
    telemetry = (ROOT / "layers/common/animal_store/telemetry.py").read_text()
    assert '["Stage", "Operation", dimension]' in telemetry
    counted = {
        (dimension, name)
        for dimension, metrics in re.findall(r'_directive\("(\w+)", (.*)\)', telemetry)
        for name in re.findall(r"\w+", metrics)
    }
    shown = re.findall(r"SEARCH\('\{AnimalStore,Stage,Operation,(\w+)\}.*?MetricName=\\\"(\w+)\\\"", body)
    assert len(shown) == body.count("SEARCH('{AnimalStore,")
    assert set(shown) <= counted


def test_the_outputs_are_what_tools_read(stack: Template) -> None:
    assert set(stack["Outputs"]) == {"BaseUrl", "AnimalsTableName", "ApiKeysTableName", "DashboardUrl"}
