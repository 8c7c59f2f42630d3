"""What template.yaml promises: a block for each operation, safeguards, and no other way in."""

import json
import re
from typing import Any

import botocore.session
import pytest

from tests.support import handlers, openapi
from tests.support.stack import block_of, load, role_statements, staged
from tools import ROOT

TEXT = (ROOT / "template.yaml").read_text()
PRODUCTION = staged(PermissionsBoundary="boundary", DomainName="api.example.com")
# With production's numbers: unit/test_openapi.py compares each stage's limits with the document.
STAGING = staged(
    "staging",
    PermissionsBoundary="boundary",
    DomainName="api.example.com",
    LogRetentionDays="90",
    ThrottlingRate="500",
    ThrottlingBurst="1000",
)
FIREWALL = PRODUCTION["Resources"]["WebAcl"]["Properties"]
GATEWAY = botocore.session.get_session().get_service_model("apigateway")
ERRORS_OF_THE_GATEWAY = GATEWAY.shape_for("GatewayResponseType").enum  # type: ignore[attr-defined]
BLOCK = """Function Role LogGroup DeploymentAlarm FastBurnAlarm SlowBurnAlarm RecentFailuresAlarm
    ThreeFailuresAlarm Heartbeat HeartbeatPermission HeartbeatAlarm"""
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
# A type or name of resources, a member of each in both stages, and its value.
SAFEGUARDS = [
    ("DynamoDB::Table", "DeletionPolicy", "Retain"),
    ("DynamoDB::Table", "UpdateReplacePolicy", "Retain"),
    ("DynamoDB::Table", "DeletionProtectionEnabled", True),
    (
        "DynamoDB::Table",
        "PointInTimeRecoverySpecification",
        {"PointInTimeRecoveryEnabled": True},
    ),
    ("DynamoDB::Table", "SSESpecification", None),  # encrypted with DynamoDB's own key
    (
        "AnimalsTable",
        "TimeToLiveSpecification",
        {"AttributeName": "expires", "Enabled": True},
    ),
    ("ApiKeysTable", "TimeToLiveSpecification", None),
    ("Logs::LogGroup", "DeletionPolicy", "RetainExceptOnCreate"),
    ("Logs::LogGroup", "UpdateReplacePolicy", "Retain"),
    ("Logs::LogGroup", "RetentionInDays", "90"),
    ("Api", "DisableExecuteApiEndpoint", True),  # the domain is the only way in
    ("Api", "MethodSettings", [METHODS]),
    ("Api", "SecurityPolicy", TLS),
    ("Api", "EndpointAccessMode", "STRICT"),
    ("ApiDomain", "SecurityPolicy", TLS),
    ("ApiDomain", "EndpointAccessMode", "STRICT"),
    ("WebAclAssociation", "WebACLArn", "WebAcl.Arn"),
    ("Lambda::Permission", "Principal", "events.amazonaws.com"),
    ("IAM::Role", "PermissionsBoundary", "boundary"),
    ("Serverless::Function", "AutoPublishAliasAllProperties", True),
    ("AlarmTopic", "KmsMasterKeyId", None),  # CloudWatch could not use AWS's key
]


@pytest.mark.parametrize(("place", "member", "value"), SAFEGUARDS)
def test_safeguards_are_there(place: str, member: str, value: Any) -> None:
    found = []
    for stack in (PRODUCTION, STAGING):
        for name, each in stack["Resources"].items():
            if place in {name, each["Type"].removeprefix("AWS::")}:
                found.append((each | each.get("Properties", {})).get(member))

    assert found
    assert found == [value] * len(found)


def test_functions_end_before_the_gateway_gives_up_and_a_canary_comes_first() -> None:
    shared = PRODUCTION["Globals"]["Function"]
    assert shared["Timeout"] < 29
    assert shared["DeploymentPreference"]["Enabled"] == "true"
    assert shared["DeploymentPreference"]["Type"] == "Canary10Percent5Minutes"


def test_nothing_else_is_a_way_in() -> None:
    kinds = {each["Type"] for each in load("template.yaml")["Resources"].values()}

    assert " ".join(sorted(kinds)).replace("AWS::", "").split() == [
        "ApiGateway::BasePathMapping",
        "ApiGateway::DomainName",
        "CloudWatch::Alarm",
        "CloudWatch::CompositeAlarm",
        "CloudWatch::Dashboard",
        "DynamoDB::Table",
        "Events::Rule",
        "IAM::Role",
        "Lambda::Permission",
        "Logs::LogGroup",
        "Logs::MetricFilter",
        "SNS::Subscription",
        "SNS::Topic",
        "Serverless::Api",
        "Serverless::Function",
        "Serverless::LayerVersion",
        "WAFv2::WebACL",
        "WAFv2::WebACLAssociation",
    ]
    # The last would drop lines, which are metrics too.
    for name in ("FunctionUrl", "ResourcePolicy", "ApplicationLogLevel"):
        assert name not in TEXT


def test_staging_has_no_firewall_no_dashboard_and_no_alarm_that_pages() -> None:
    assert "WebAcl" not in STAGING["Resources"]
    assert "Dashboard" not in STAGING["Resources"]
    assert "ObjectiveAlarm" not in STAGING["Resources"]


def test_a_role_writes_its_own_log_and_otherwise_asks_dynamodb() -> None:
    """What it asks DynamoDB is compared with the functions' calls in unit/test_roles.py."""
    for role, statement in role_statements(PRODUCTION):
        if not str(statement["Action"]).startswith("dynamodb:"):
            assert statement["Action"] == ["logs:CreateLogStream", "logs:PutLogEvents"]
            assert statement["Resource"] == f"{role.removesuffix('Role')}LogGroup.Arn"


def test_the_access_log_quotes_nothing_that_a_key_may_be_in() -> None:
    log = PRODUCTION["Resources"]["Api"]["Properties"]["AccessLogSetting"]["Format"]
    for name in (".path", ".requestOverride", ".authorizer", ".error.m"):
        assert name not in log
    assert re.findall(r"identity\.(\w+)", log) == ["sourceIp"]


@openapi.each_operation
def test_an_operation_is_one_block(operation: openapi.Operation) -> None:
    block = block_of(operation.id)
    names = [block + kind for kind in BLOCK.split()]

    text = TEXT.partition(f"\n  {names[0]}:")[2].partition("\n  # -- ")[0]

    assert [names[0], *re.findall(r"^  (\w+):$", text, re.MULTILINE)] == names
    assert f"Alarms: [!Ref {block}DeploymentAlarm]" in text
    for other in {each.id for each in openapi.operations()} - {operation.id}:
        assert not re.search(rf"\b({other}|{block_of(other)}[A-Z]\w+)\b", text)


@openapi.each_operation
def test_dashboard_and_outputs_name_each_operation(
    operation: openapi.Operation,
) -> None:
    block = block_of(operation.id)
    assert f"{block}LogGroup" in str(PRODUCTION["Outputs"]["LogGroups"])
    assert f"{block}Function:live" in str(PRODUCTION["Resources"]["Dashboard"])


def test_there_is_no_route_and_no_function_but_those_of_the_operations() -> None:
    routes = sorted((each.method, each.resource) for each in handlers.TEMPLATE.routes)
    operations = openapi.operations()
    assert routes == sorted((each.method, f"/v1{each.path}") for each in operations), (
        "template.yaml needs one route for each operation of openapi.yaml."
    )
    folders = [path.parent.name for path in ROOT.glob("functions/*/app.py")]
    assert len(folders) == len(operations), f"functions/ has {folders}."


def test_a_changed_parameter_makes_a_new_version() -> None:
    """A version is replaced when its description changes, which names parameters."""
    settings = load("template.yaml")["Globals"]["Function"]
    del settings["DeploymentPreference"], settings["ReservedConcurrentExecutions"]
    names = re.findall(r"'Ref': '(\w+)'", str(settings))
    used = set(names) & load("template.yaml")["Parameters"].keys()

    for described in re.findall("VersionDescription: !Sub (.*)", TEXT):
        assert set(re.findall(r"{(\w+)}", described)) == used


@pytest.mark.parametrize("kind", ERRORS_OF_THE_GATEWAY)
def test_an_error_of_the_gateway_is_the_error_object(kind: str) -> None:
    response = PRODUCTION["Resources"]["Api"]["Properties"]["GatewayResponses"][kind]
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
    for each in (FIREWALL["DefaultAction"], FIREWALL["Rules"][0]["Action"]):
        response = each["Block"]["CustomResponse"]
        text = FIREWALL["CustomResponseBodies"][response["CustomResponseBodyKey"]]
        headers = {"Content-Type": "application/json"}
        for header in response["ResponseHeaders"]:
            headers[header["Name"]] = header["Value"]
        status, body = response["ResponseCode"], text["Content"]
        assert not openapi.problems(operation, status, headers, body, in_process=True)


def test_the_firewall_limits_clients_and_strangers_use_up_no_limit() -> None:
    """Which keys are well formed is in unit/test_roles.py."""
    *limits, key = FIREWALL["Rules"]
    assert key["Action"] == {"Allow": {}}
    for each in limits:
        limit = each["Statement"]["RateBasedStatement"]
        assert limit["ScopeDownStatement"] == key["Statement"]
        assert limit["EvaluationWindowSec"] == 60
        assert each["Action"] == limits[0]["Action"]
    # A client gets no second limit by another spelling, and the console shows no keys.
    assert "COMPRESS_WHITE_SPACE" in str(limits[1])
    assert "LOWERCASE" in str(limits[1])
    assert "'SampledRequestsEnabled': True" not in str(FIREWALL)
