"""What template.yaml promises: a block for each operation, safeguards, and no other way in."""

import json
import re
from typing import Any

import botocore.session
import pytest

from tests.support import handlers, openapi
from tests.support.stack import (
    block_of,
    load,
    properties_by_name,
    properties_of,
    role_statements,
    staged,
)
from tools import ROOT

TEXT = (ROOT / "template.yaml").read_text()
PRODUCTION = staged(PermissionsBoundary="boundary", DomainName="api.example.com")
FIREWALL = properties_of(PRODUCTION, "AWS::WAFv2::WebACL")
API = properties_of(PRODUCTION, "AWS::Serverless::Api")
GATEWAY = botocore.session.get_session().get_service_model("apigateway")
ERRORS_OF_THE_GATEWAY = GATEWAY.shape_for("GatewayResponseType").enum  # type: ignore[attr-defined]
# A block, in this order.
BLOCK = [
    *(
        "Function",
        "Role",
        "LogGroup",
        "DeploymentAlarm",
        "FastBurnAlarm",
        "SlowBurnAlarm",
    ),
    *("RecentFailuresAlarm", "ThreeFailuresAlarm"),
    *("Heartbeat", "HeartbeatPermission", "HeartbeatAlarm"),
]
METHODS = {
    "ResourcePath": "/*",
    "HttpMethod": "*",
    "MetricsEnabled": False,
    "LoggingLevel": "OFF",  # its log would quote Authorization headers
    "DataTraceEnabled": False,
    "ThrottlingRateLimit": "500",
    "ThrottlingBurstLimit": "1000",
}
TLS = "SecurityPolicy_TLS13_1_2_PFS_PQ_2025_09"
# What production must not lose: a type, where in each such resource, and the value there.
SAFEGUARDS = [
    ("DynamoDB::Table", "DeletionPolicy", "Retain"),
    ("DynamoDB::Table", "UpdateReplacePolicy", "Retain"),
    ("DynamoDB::Table", "DeletionProtectionEnabled", True),
    (
        "DynamoDB::Table",
        "PointInTimeRecoverySpecification",
        {"PointInTimeRecoveryEnabled": True},
    ),
    ("Logs::LogGroup", "DeletionPolicy", "RetainExceptOnCreate"),
    ("Logs::LogGroup", "UpdateReplacePolicy", "Retain"),
    ("Logs::LogGroup", "RetentionInDays", "90"),
    (
        "Serverless::Api",
        "DisableExecuteApiEndpoint",
        True,
    ),  # the domain is the only way in
    ("Serverless::Api", "MethodSettings", [METHODS]),
    ("Serverless::Api", "SecurityPolicy", TLS),
    ("Serverless::Api", "EndpointAccessMode", "STRICT"),
    ("ApiGateway::DomainName", "SecurityPolicy", TLS),
    ("ApiGateway::DomainName", "EndpointAccessMode", "STRICT"),
    ("WAFv2::WebACLAssociation", "WebACLArn", "WebAcl.Arn"),
    ("Lambda::Permission", "Principal", "events.amazonaws.com"),
    ("IAM::Role", "PermissionsBoundary", "boundary"),
    ("Serverless::Function", "AutoPublishAliasAllProperties", True),
    ("SNS::Topic", "KmsMasterKeyId", None),  # CloudWatch could not use AWS's key
]


@pytest.mark.parametrize(("kind", "name", "value"), SAFEGUARDS)
def test_safeguards_are_there(kind: str, name: str, value: Any) -> None:
    resources = PRODUCTION["Resources"].values()
    found = [each for each in resources if each["Type"] == f"AWS::{kind}"]

    assert found
    for each in found:
        assert (each | each.get("Properties", {})).get(name) == value


def test_functions_end_before_the_gateway_gives_up_and_a_canary_comes_first() -> None:
    shared = PRODUCTION["Globals"]["Function"]
    assert shared["Timeout"] < 29
    preference = shared["DeploymentPreference"]
    assert preference["Enabled"] == "true"
    assert preference["Type"] == "Canary10Percent5Minutes"


def test_old_records_expire_but_keys_never_do() -> None:
    tables = properties_by_name(PRODUCTION, "AWS::DynamoDB::Table")
    expiry = {"AttributeName": "expires", "Enabled": True}
    assert tables["AnimalsTable"]["TimeToLiveSpecification"] == expiry
    assert "TimeToLiveSpecification" not in tables["ApiKeysTable"]


def test_nothing_else_is_a_way_in() -> None:
    kinds = {
        each["Type"].partition("::")[2] for each in PRODUCTION["Resources"].values()
    }

    assert kinds == {kind for kind, *_ in SAFEGUARDS} | {
        "ApiGateway::BasePathMapping",
        "CloudWatch::Alarm",
        "CloudWatch::CompositeAlarm",
        "CloudWatch::Dashboard",
        "Events::Rule",
        "Logs::MetricFilter",
        "Serverless::LayerVersion",
        "WAFv2::WebACL",
    }
    # The last would drop lines, which are metrics too.
    for name in ("FunctionUrl", "ResourcePolicy", "ApplicationLogLevel"):
        assert name not in TEXT


def test_a_role_writes_its_own_log_and_otherwise_asks_dynamodb() -> None:
    """What it asks DynamoDB is compared with the functions' calls in unit/test_roles.py."""
    for role, statement in role_statements(PRODUCTION):
        if statement["Action"][:9] != "dynamodb:":
            assert statement["Action"] == ["logs:CreateLogStream", "logs:PutLogEvents"]
            assert statement["Resource"] == f"{role.removesuffix('Role')}LogGroup.Arn"


def test_the_access_log_quotes_nothing_that_a_key_may_be_in() -> None:
    log = API["AccessLogSetting"]["Format"]
    assert not re.search(
        r"\.(path|requestOverride|authorizer|error\.m|identity\.(?!sourceIp))", log
    )


# -- operations ------------------------------------------------------------------------------------


@openapi.each_operation
def test_an_operation_is_one_block(operation: openapi.Operation) -> None:
    others = {each.id for each in openapi.operations()} - {operation.id}
    names = [block_of(operation.id) + kind for kind in BLOCK]

    text = TEXT.partition(f"\n  {names[0]}:")[2].partition("\n  # -- ")[0]

    assert [names[0], *re.findall(r"^  (\w+):$", text, re.MULTILINE)] == names
    assert text.count("\n") < 130
    assert " &" not in text, "two copies of an anchor"
    foreign = others | {block_of(other) + kind for other in others for kind in BLOCK}
    assert not foreign & set(re.findall(r"\w+", text))
    assert f"Alarms: [!Ref {block_of(operation.id)}DeploymentAlarm]" in text


def test_there_is_no_route_and_no_function_but_those_of_the_operations() -> None:
    routes = sorted((each.method, each.resource) for each in handlers.TEMPLATE.routes)
    operations = openapi.operations()
    assert routes == sorted((each.method, f"/v1{each.path}") for each in operations), (
        "template.yaml needs one route for each operation of openapi.yaml."
    )
    folders = [path.parent.name for path in ROOT.glob("functions/*/app.py")]
    assert len(folders) == len(operations), f"functions/ has {folders}."


def test_an_output_names_every_log_group() -> None:
    _, named = PRODUCTION["Outputs"]["LogGroups"]["Value"]["Fn::Join"]
    groups = properties_by_name(PRODUCTION, "AWS::Logs::LogGroup")
    assert sorted(named) == sorted(groups), "template.yaml: the output LogGroups"


@openapi.each_operation
def test_a_changed_parameter_makes_a_new_version(operation: openapi.Operation) -> None:
    """A version is replaced when its description changes, which names parameters."""
    source = load("template.yaml")
    function = source["Resources"][f"{block_of(operation.id)}Function"]["Properties"]
    settings = source["Globals"]["Function"]
    for shared in ("DeploymentPreference", "ReservedConcurrentExecutions"):
        del settings[shared]
    used = (
        set(re.findall(r"'Ref': '(\w+)'", str(settings))) & source["Parameters"].keys()
    )
    assert set(re.findall(r"{(\w+)}", str(function["VersionDescription"]))) == used


# -- what API Gateway and the firewall answer ------------------------------------------------------


@pytest.mark.parametrize("kind", ERRORS_OF_THE_GATEWAY)
def test_an_error_of_the_gateway_is_the_error_object(kind: str) -> None:
    response = API["GatewayResponses"][kind]
    text = response["ResponseTemplates"]["application/json"]
    status = json.loads(text)["status"]
    headers = {"Content-Type": "application/json"}
    for name, value in response["ResponseParameters"]["Headers"].items():
        headers[name] = value.strip("'")

    # 404 is for unknown routes, which the document does not have.
    operation = None if status == 404 else openapi.find("POST", "/pets")
    assert not openapi.problems(operation, status, headers, text, in_process=True)
    # A default has no status of its own: it would change that of every other type.
    own_status = None if kind.startswith("DEFAULT_") else status
    assert response.get("StatusCode") == own_status


@openapi.each_operation
def test_the_firewall_answers_as_declared(operation: openapi.Operation) -> None:
    for action in (
        FIREWALL["DefaultAction"],
        *(rule["Action"] for rule in FIREWALL["Rules"][:2]),
    ):
        response = action["Block"]["CustomResponse"]
        body = FIREWALL["CustomResponseBodies"][response["CustomResponseBodyKey"]]
        headers = {each["Name"]: each["Value"] for each in response["ResponseHeaders"]}
        headers["Content-Type"] = "application/json"
        assert not openapi.problems(
            operation,
            response["ResponseCode"],
            headers,
            body["Content"],
            in_process=True,
        )


def test_the_firewall_limits_clients_and_strangers_use_up_no_limit() -> None:
    """Which keys are well formed is in unit/test_roles.py."""
    *limits, key = FIREWALL["Rules"]
    assert key["Action"] == {"Allow": {}}
    for each in limits:
        limit = each["Statement"]["RateBasedStatement"]
        assert limit["ScopeDownStatement"] == key["Statement"]
        assert limit["EvaluationWindowSec"] == 60
    # A client gets no second limit by another spelling, and the console shows no keys.
    assert "COMPRESS_WHITE_SPACE" in str(limits[1])
    assert "LOWERCASE" in str(limits[1])
    assert "'SampledRequestsEnabled': True" not in str(FIREWALL)
