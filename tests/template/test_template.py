"""What template.yaml promises, read from the CloudFormation that AWS makes of it.

What checkov refuses (`make check`), such as a table without point-in-time recovery, is not here.
"""

import json
import re

import botocore.session
import pytest

from tests.support import openapi
from tests.support.stack import (
    Template,
    production,
    properties_by_name,
    properties_of,
)
from tools import ROOT

FUNCTION = "AWS::Lambda::Function"
TABLE = "AWS::DynamoDB::Table"
VERSION = "AWS::Lambda::Version"
GATEWAY = botocore.session.get_session().get_service_model("apigateway")
ERRORS_OF_THE_GATEWAY = GATEWAY.shape_for("GatewayResponseType").enum  # type: ignore[attr-defined]
PRODUCTION = production()
API = properties_of(PRODUCTION, "AWS::Serverless::Api")
FIREWALL = properties_of(PRODUCTION, "AWS::WAFv2::WebACL")
RULES = {rule["Name"]: rule for rule in FIREWALL["Rules"]}


# -- what there is ---------------------------------------------------------------------------------


def test_only_the_gateway_and_the_heartbeats_rule_call_functions(
    stack: Template,
) -> None:
    """Refuse another way in, such as a function URL, past firewall and throttling."""
    assert not properties_by_name(stack, "AWS::Lambda::Url")
    permissions = properties_by_name(stack, "AWS::Lambda::Permission").values()
    assert {each["Principal"] for each in permissions} == {
        "apigateway.amazonaws.com",
        "events.amazonaws.com",
    }


def test_functions_end_before_the_gateway_gives_up_and_log_every_line(
    stack: Template,
) -> None:
    for settings in properties_by_name(stack, FUNCTION).values():
        assert settings["Timeout"] == 10  # API Gateway waits for 29 s
        # No ApplicationLogLevel: it would drop the lines below it, which are metrics too. Lambda's
        # own lines of timeouts and crashes are WARN and ERROR.
        logging = {"LogFormat": "JSON", "LogGroup": "", "SystemLogLevel": "WARN"}
        assert settings["LoggingConfig"] | {"LogGroup": ""} == logging
    shared = PRODUCTION["Globals"]["Function"]
    assert shared["ReservedConcurrentExecutions"] == "200"


def test_a_changed_parameter_makes_a_new_version(stack: Template) -> None:
    """A version is replaced when its description changes, which names parameters."""
    for settings in properties_by_name(stack, FUNCTION).values():
        references = set(re.findall(r'"Ref": "(\w+)"', json.dumps(settings)))
        used = references & stack["Parameters"].keys()
        # All versions share the concurrency.
        assert used - {"ReservedConcurrency"} == {"Stage", "Architecture", "MemorySize"}
    for version in properties_by_name(stack, VERSION).values():
        description = {"Fn::Sub": "${Stage} ${Architecture} ${MemorySize} MB"}
        assert version["Description"] == description


def test_old_records_expire_but_keys_and_who_issued_them_never_do(
    stack: Template,
) -> None:
    tables = properties_by_name(stack, TABLE)
    expiry = {"AttributeName": "expires", "Enabled": True}
    assert tables["AnimalsTable"]["TimeToLiveSpecification"] == expiry
    assert "TimeToLiveSpecification" not in tables["ApiKeysTable"]


def test_the_firewall_stands_before_the_api() -> None:
    api = "arn:AWS::Partition:apigateway:AWS::Region::/restapis/Api/stages/Api.Stage"
    association = properties_of(PRODUCTION, "AWS::WAFv2::WebACLAssociation")
    assert association == {"ResourceArn": api, "WebACLArn": "WebAcl.Arn"}


def test_a_stage_has_what_its_parameters_ask_for() -> None:
    given = ("AlarmEmail", "CertificateArn", "DomainName", "PermissionsBoundary")
    most = production(**dict.fromkeys(given, "x"))
    # Six conditions, and two rules that apply and are kept.
    assert str(most["Conditions"] | most["Rules"]).count("True") == 10
    without = {"Waf": "false", "Heartbeat": "false", "ReservedConcurrency": "0"}
    least = production(**without, Stage="staging")
    assert "True" not in str(least["Conditions"] | least["Rules"])


@pytest.mark.parametrize(
    ("kind", "policy"),
    [(TABLE, "Retain"), ("AWS::Logs::LogGroup", "RetainExceptOnCreate")],
)
def test_tables_and_logs_outlive_the_stack(
    stack: Template, kind: str, policy: str
) -> None:
    for name, properties in properties_by_name(stack, kind).items():
        resource = stack["Resources"][name]
        assert resource["DeletionPolicy"] == policy
        assert resource["UpdateReplacePolicy"] == "Retain"
        assert properties.get("DeletionProtectionEnabled") is (kind == TABLE or None)
        retention = None if kind == TABLE else {"Ref": "LogRetentionDays"}
        assert properties.get("RetentionInDays") == retention
        # CloudFormation names it: the next stack of this name would meet one that is there.
        assert not properties.keys() & {"TableName", "LogGroupName"}


def test_an_output_names_every_log_group(stack: Template) -> None:
    groups = properties_by_name(stack, "AWS::Logs::LogGroup")
    separator, named = stack["Outputs"]["LogGroups"]["Value"]["Fn::Join"]
    assert separator == " "
    assert sorted(each["Ref"] for each in named) == sorted(groups)


# -- operations, and how a change reaches them -----------------------------------------------------


def test_there_is_no_route_and_no_function_but_those_of_the_operations(
    stack: Template,
) -> None:
    routes = []
    for path, item in properties_of(stack, "AWS::ApiGateway::RestApi")["Body"][
        "paths"
    ].items():
        routes += [(method.upper(), path) for method in item]
    operations = openapi.operations()
    assert sorted(routes) == sorted(
        (each.method, f"/v1{each.path}") for each in operations
    ), "template.yaml needs one route for each operation of openapi.yaml."
    assert len(properties_by_name(stack, FUNCTION)) == len(operations), (
        "template.yaml needs one function for each operation of openapi.yaml."
    )
    folders = [path.parent.name for path in ROOT.glob("functions/*/app.py")]
    assert len(folders) == len(operations), f"functions/ has {folders}."


def test_a_changed_layer_or_variable_reaches_the_alias_step_by_step() -> None:
    for function in properties_by_name(
        PRODUCTION, "AWS::Serverless::Function"
    ).values():
        assert function["AutoPublishAliasAllProperties"] is True
    preference = PRODUCTION["Globals"]["Function"]["DeploymentPreference"]
    assert preference["Enabled"] == "true"
    assert preference["Type"] == "Canary10Percent5Minutes"
    # A new alarm for each deployment: a changed one stays in its state.
    alarm = PRODUCTION["Resources"]["DeploymentAlarm"]["Properties"]
    assert "ListPetsFunction.Version.Version" in str(alarm["AlarmName"])
    assert API["AlwaysDeploy"] is True
    by_hand = production(Canary="false")["Globals"]["Function"]
    assert by_hand["DeploymentPreference"]["Enabled"] == "false"


# -- rights ----------------------------------------------------------------------------------------


def test_every_role_is_bounded_and_lists_its_rights() -> None:
    """What the functions' roles list is compared with their calls in unit/test_roles.py."""
    bounded = production(PermissionsBoundary="arn")
    for name, role in properties_by_name(bounded, "AWS::IAM::Role").items():
        service = "codedeploy" if name == "CodeDeployRole" else "lambda"
        assert role["PermissionsBoundary"] == "arn"
        assert role["AssumeRolePolicyDocument"]["Statement"] == [
            {
                "Effect": "Allow",
                "Action": "sts:AssumeRole",
                "Principal": {"Service": f"{service}.amazonaws.com"},
            }
        ]
        if service == "lambda":
            assert "ManagedPolicyArns" not in role
            log = role["Policies"][0]["PolicyDocument"]["Statement"][-1]
            assert log["Action"] == ["logs:CreateLogStream", "logs:PutLogEvents"]


# -- the way in ------------------------------------------------------------------------------------


def test_requests_are_limited_and_not_cached() -> None:
    assert API["MethodSettings"] == [
        {
            "ResourcePath": "/*",
            "HttpMethod": "*",
            "MetricsEnabled": False,  # $0.30 each; nothing reads them
            # API Gateway's own log would quote Authorization headers, and be kept for ever.
            "LoggingLevel": "OFF",
            "DataTraceEnabled": False,
            "ThrottlingRateLimit": "500",
            "ThrottlingBurstLimit": "1000",
        }
    ]


def test_the_access_log_quotes_nothing_that_a_key_may_be_in() -> None:
    """Refuse headers, paths and error messages; a client can choose only `requestId`."""
    log = API["AccessLogSetting"]["Format"]
    assert set(re.findall(r"\$context\.([\w.]+)", log)) == {
        "error.responseType",
        "extendedRequestId",
        "httpMethod",
        "identity.sourceIp",
        "integration.latency",
        "integration.requestId",
        "integration.status",
        "requestId",
        "requestTimeEpoch",
        "resourcePath",
        "responseLatency",
        "responseLength",
        "stage",
        "status",
        "waf.status",
    }


def test_a_domain_is_the_only_way_in_and_connections_are_encrypted() -> None:
    with_domain = production(DomainName="api.example.com")
    assert API["DisableExecuteApiEndpoint"] is False
    own = properties_of(with_domain, "AWS::Serverless::Api")
    assert own["DisableExecuteApiEndpoint"] is True
    for each in (API, properties_of(with_domain, "AWS::ApiGateway::DomainName")):
        assert each["SecurityPolicy"] == "SecurityPolicy_TLS13_1_2_PFS_PQ_2025_09"
        assert each["EndpointAccessMode"] == "STRICT"


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


# -- firewall --------------------------------------------------------------------------------------


def own_rule(operation: openapi.Operation) -> str:
    """Name the rule for an operation's requests without a key: `no-key-get-pet`."""
    return "no-key-" + re.sub("([A-Z])", r"-\1", operation.id).lower()


@openapi.each_operation
def test_the_firewall_answers_as_declared(operation: openapi.Operation) -> None:
    own = RULES.get(own_rule(operation))
    for status, action in (
        (401, own["Action"] if own else FIREWALL["DefaultAction"]),
        (429, RULES["requests-per-address"]["Action"]),
        (429, RULES["requests-per-key"]["Action"]),
    ):
        response = action["Block"]["CustomResponse"]
        body = FIREWALL["CustomResponseBodies"][response["CustomResponseBodyKey"]]
        headers = {"Content-Type": "application/json"}
        for header in response["ResponseHeaders"]:
            headers[header["Name"]] = header["Value"]
        assert response["ResponseCode"] == status
        assert not openapi.problems(
            operation, status, headers, body["Content"], in_process=True
        )


def test_the_firewall_knows_operations_by_their_paths() -> None:
    operations = {own_rule(operation): operation for operation in openapi.operations()}
    for name in [name for name in RULES if name.startswith("no-key-")]:
        assert name in operations, f"template.yaml: no operation needs {name}."
        path = operations[name].with_id("[^/]+")
        statements = RULES[name]["Statement"]["AndStatement"]["Statements"]
        method = statements[0]["ByteMatchStatement"]["SearchString"]
        assert method == operations[name].method
        assert statements[1]["RegexMatchStatement"]["RegexString"] == f"/v1{path}$"


def test_the_firewall_limits_clients_and_strangers_use_up_no_limit() -> None:
    """Which keys are well formed is in unit/test_roles.py."""
    per_address, per_key, key, *_ = RULES.values()
    assert key["Statement"]["RegexMatchStatement"] | {"RegexString": ""} == {
        "FieldToMatch": {"SingleHeader": {"Name": "authorization"}},
        "RegexString": "",
        "TextTransformations": [{"Priority": 0, "Type": "NONE"}],
    }
    assert key["Action"] == {"Allow": {}}
    limit = {"EvaluationWindowSec": 60, "ScopeDownStatement": key["Statement"]}
    assert per_address["Statement"]["RateBasedStatement"] == {
        "AggregateKeyType": "IP",
        "Limit": 3000,
        **limit,
    }
    # Changing the scheme's case, or adding spaces, does not make it another key.
    spelling = [
        {"Priority": 0, "Type": "COMPRESS_WHITE_SPACE"},
        {"Priority": 1, "Type": "LOWERCASE"},
    ]
    header = {"Name": "authorization", "TextTransformations": spelling}
    assert per_key["Statement"]["RateBasedStatement"] == {
        "AggregateKeyType": "CUSTOM_KEYS",
        "CustomKeys": [{"Header": header}],
        "Limit": 6000,
        **limit,
    }
    assert [rule["Priority"] for rule in RULES.values()] == [*range(len(RULES))]


def test_the_console_shows_no_keys() -> None:
    for each in (FIREWALL, *FIREWALL["Rules"]):
        assert each["VisibilityConfig"] == {
            "MetricName": each["Name"],
            "CloudWatchMetricsEnabled": True,
            "SampledRequestsEnabled": False,
        }
