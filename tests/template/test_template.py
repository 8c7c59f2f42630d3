"""What template.yaml promises, read from the CloudFormation that AWS makes of it.

What checkov refuses (`make check`), such as a table without point-in-time recovery, is not here.
"""

import json
import re
from pathlib import Path
from typing import Any

import botocore.session
import pytest

from tests.support import openapi
from tests.support.stack import Template, parameters, properties_by_name, properties_of
from tools.packaging.translate import TEMPLATE, translate

API = "AWS::ApiGateway::RestApi"
FUNCTION = "AWS::Lambda::Function"
TABLE = "AWS::DynamoDB::Table"
VERSION = "AWS::Lambda::Version"
GATEWAY = botocore.session.get_session().get_service_model("apigateway")
ERRORS_OF_THE_GATEWAY = GATEWAY.shape_for("GatewayResponseType").enum  # type: ignore[attr-defined]


# -- what there is ---------------------------------------------------------------------------------


def test_the_stack_has_these_types_of_resources_and_no_others(stack: Template) -> None:
    """Refuse another way in, such as a function URL, and whatever else nobody has decided on."""
    assert {resource["Type"] for resource in stack["Resources"].values()} == {
        "AWS::ApiGateway::BasePathMapping",
        "AWS::ApiGateway::Deployment",
        "AWS::ApiGateway::DomainName",
        "AWS::ApiGateway::RestApi",
        "AWS::ApiGateway::Stage",
        "AWS::CloudWatch::Alarm",
        "AWS::CloudWatch::CompositeAlarm",
        "AWS::CloudWatch::Dashboard",
        "AWS::CodeDeploy::Application",
        "AWS::CodeDeploy::DeploymentGroup",
        "AWS::DynamoDB::Table",
        "AWS::Events::Rule",
        "AWS::IAM::Role",
        "AWS::Lambda::Alias",
        "AWS::Lambda::Function",
        "AWS::Lambda::LayerVersion",
        "AWS::Lambda::Permission",
        "AWS::Lambda::Version",
        "AWS::Logs::LogGroup",
        "AWS::Logs::MetricFilter",
        "AWS::SNS::Subscription",
        "AWS::SNS::Topic",
        "AWS::WAFv2::WebACL",
        "AWS::WAFv2::WebACLAssociation",
    }


def test_functions_have_these_settings_and_no_others(stack: Template) -> None:
    for settings in properties_by_name(stack, FUNCTION).values():
        # No ApplicationLogLevel: it would drop the lines below it, which are metrics too.
        assert (
            settings["LoggingConfig"].items()
            >= {
                "LogFormat": "JSON",
                "SystemLogLevel": "WARN",
            }.items()
        )
        assert len(settings["LoggingConfig"]) == 3
        own = {"Code", "Description", "Environment", "Layers", "LoggingConfig", "Role"}
        assert {name: settings[name] for name in settings.keys() - own} == {
            "Architectures": [{"Ref": "Architecture"}],
            "Handler": "app.handler",
            "MemorySize": {"Ref": "MemorySize"},
            "ReservedConcurrentExecutions": {
                "Fn::If": [
                    "HasReservedConcurrency",
                    {"Ref": "ReservedConcurrency"},
                    {"Ref": "AWS::NoValue"},
                ]
            },
            "Runtime": "python3.13",
            "Tags": [{"Key": "lambda:createdBy", "Value": "SAM"}],
            "Timeout": 10,  # API Gateway waits for 29 s
        }
        assert settings["Environment"]["Variables"] == {
            "ANIMALS_TABLE": {"Ref": "AnimalsTable"},
            "API_KEYS_TABLE": {"Ref": "ApiKeysTable"},
            "AWS_CA_BUNDLE": "/opt/amazon-roots.pem",
            "POWERTOOLS_LOG_LEVEL": "INFO",
            "POWERTOOLS_METRICS_NAMESPACE": "AnimalStore",
            "POWERTOOLS_SERVICE_NAME": "animal-store",
            "STAGE": {"Ref": "Stage"},
        }
    # By every parameter above, but for the concurrency, which all versions share.
    for version in properties_by_name(stack, VERSION).values():
        description = {"Fn::Sub": "${Stage} ${Architecture} ${MemorySize} MB"}
        assert version["Description"] == description


def test_api_keys_are_kept_and_never_expire_from_the_table(stack: Template) -> None:
    """Refuse a time to live, which would delete who issued a key."""
    assert properties_by_name(stack, TABLE)["ApiKeysTable"] == {
        "AttributeDefinitions": [{"AttributeName": "hash", "AttributeType": "S"}],
        "BillingMode": "PAY_PER_REQUEST",
        "DeletionProtectionEnabled": True,
        "KeySchema": [{"AttributeName": "hash", "KeyType": "HASH"}],
        "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True},
    }


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
        # CloudFormation names it: the next stack of this name would meet one that is there.
        assert not properties.keys() & {"TableName", "LogGroupName"}


def test_an_output_names_every_log_group(stack: Template) -> None:
    groups = properties_by_name(stack, "AWS::Logs::LogGroup")
    named = {"Fn::Join": [" ", [{"Ref": name} for name in groups]]}
    assert stack["Outputs"]["LogGroups"]["Value"] == named


# -- operations, and how a change reaches them -----------------------------------------------------


def test_there_is_no_route_and_no_function_but_those_of_the_operations(
    stack: Template,
) -> None:
    routes = []
    for path, item in properties_of(stack, API)["Body"]["paths"].items():
        routes += [(method.upper(), path) for method in item]
    operations = openapi.operations()
    assert sorted(routes) == sorted(
        (each.method, f"/v1{each.path}") for each in operations
    ), "template.yaml needs one route for each operation of openapi.yaml."
    assert len(properties_by_name(stack, FUNCTION)) == len(operations), (
        "template.yaml needs one function for each operation of openapi.yaml."
    )


@pytest.mark.slow
def test_without_a_canary_nothing_shifts_and_a_changed_variable_reaches_the_alias(
    stack: Template, tmp_path: Path
) -> None:
    changed = tmp_path / "template.yaml"
    text = TEMPLATE.read_text()
    changed.write_text(text.replace("STAGE: !Ref Stage", "STAGE: changed"))

    new = translate(parameters("production") | {"Canary": "false"}, changed)

    assert "CodeDeployLambdaAliasUpdate" not in json.dumps(new)
    versions = properties_by_name(new, VERSION).keys()
    assert versions.isdisjoint(properties_by_name(stack, VERSION))


# -- rights ----------------------------------------------------------------------------------------


def test_every_role_is_bounded_and_lists_its_rights(stack: Template) -> None:
    """What the functions' roles list is compared with their calls in unit/test_roles.py."""
    for name, role in properties_by_name(stack, "AWS::IAM::Role").items():
        assert role["PermissionsBoundary"]["Fn::If"][1] == {
            "Ref": "PermissionsBoundary"
        }
        if name != "CodeDeployRole":
            assert "ManagedPolicyArns" not in role


# -- the way in ------------------------------------------------------------------------------------


def test_requests_are_limited_and_not_cached(stack: Template) -> None:
    assert properties_of(stack, "AWS::ApiGateway::Stage")["MethodSettings"] == [
        {
            "ResourcePath": "/*",
            "HttpMethod": "*",
            "MetricsEnabled": False,  # $0.30 each; nothing reads them
            # API Gateway's own log would quote Authorization headers, and be kept for ever.
            "LoggingLevel": "OFF",
            "DataTraceEnabled": False,
            "ThrottlingRateLimit": {"Ref": "ThrottlingRate"},
            "ThrottlingBurstLimit": {"Ref": "ThrottlingBurst"},
        }
    ]
    assert stack["Parameters"]["ThrottlingRate"]["Default"] == 100
    assert stack["Parameters"]["ThrottlingBurst"]["Default"] == 200


def test_the_access_log_quotes_nothing_that_a_key_may_be_in(stack: Template) -> None:
    """Refuse headers, paths and error messages; a client can choose only `requestId`."""
    log = properties_of(stack, "AWS::ApiGateway::Stage")["AccessLogSetting"]["Format"]
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


def test_a_domain_is_the_only_way_in_and_connections_are_encrypted(
    stack: Template,
) -> None:
    api, domain = (
        properties_of(stack, API),
        properties_of(stack, "AWS::ApiGateway::DomainName"),
    )
    (server,) = api["Body"]["servers"]
    assert server["x-amazon-apigateway-endpoint-configuration"] == {
        "disableExecuteApiEndpoint": {"Fn::If": ["HasDomain", True, False]}
    }
    for each in (api, domain):
        assert each["SecurityPolicy"] == "SecurityPolicy_TLS13_1_2_PFS_PQ_2025_09"
        assert each["EndpointAccessMode"] == "STRICT"


@pytest.mark.parametrize("kind", ERRORS_OF_THE_GATEWAY)
def test_an_error_of_the_gateway_is_the_error_object(
    stack: Template, kind: str
) -> None:
    body = properties_of(stack, API)["Body"]
    response = body["x-amazon-apigateway-gateway-responses"][kind]
    text = response["responseTemplates"]["application/json"]
    status = json.loads(text)["status"]
    headers = {"Content-Type": "application/json"}
    for name, value in response["responseParameters"].items():
        headers[name.removeprefix("gatewayresponse.header.")] = value.strip("'")

    # 404 is for unknown routes, which the document does not have.
    operation = None if status == 404 else openapi.find("POST", "/pets")
    assert not openapi.problems(operation, status, headers, text, in_process=True)
    # A default has no status of its own: it would change that of every other type.
    own_status = None if kind.startswith("DEFAULT_") else str(status)
    assert response.get("statusCode") == own_status


# -- firewall --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def firewall(stack: Template) -> Any:
    """Return the firewall."""
    return properties_of(stack, "AWS::WAFv2::WebACL")


@pytest.fixture(scope="module")
def rules(firewall: Any) -> dict[str, Any]:
    """Return its rules by name."""
    return {rule["Name"]: rule for rule in firewall["Rules"]}


def own_rule(operation: openapi.Operation) -> str:
    """Name the rule for an operation's requests without a key: `no-key-get-pet`."""
    return "no-key-" + re.sub("([A-Z])", r"-\1", operation.id).lower()


@openapi.each_operation
def test_the_firewall_answers_as_declared(
    firewall: Any, rules: dict[str, Any], operation: openapi.Operation
) -> None:
    own = rules.get(own_rule(operation))
    for status, action in (
        (401, own["Action"] if own else firewall["DefaultAction"]),
        (429, rules["requests-per-address"]["Action"]),
        (429, rules["requests-per-key"]["Action"]),
    ):
        response = action["Block"]["CustomResponse"]
        body = firewall["CustomResponseBodies"][response["CustomResponseBodyKey"]]
        headers: dict[str, Any] = {"Content-Type": "application/json"}
        for header in response["ResponseHeaders"]:
            headers[header["Name"]] = header["Value"]
        if "Link" in headers:  # as it is without a domain
            headers["Link"] = headers["Link"]["Fn::If"][2]["Fn::Sub"]
        assert response["ResponseCode"] == status
        assert not openapi.problems(
            operation, status, headers, body["Content"], in_process=True
        )


def test_the_firewall_knows_operations_by_their_paths(rules: dict[str, Any]) -> None:
    operations = {own_rule(operation): operation for operation in openapi.operations()}
    for name in [name for name in rules if name.startswith("no-key-")]:
        assert name in operations, f"template.yaml: no operation needs {name}."
        path = operations[name].with_id("[^/]+")
        statements = rules[name]["Statement"]["AndStatement"]["Statements"]
        method = statements[0]["ByteMatchStatement"]["SearchString"]
        assert method == operations[name].method
        assert statements[1]["RegexMatchStatement"]["RegexString"] == f"/v1{path}$"


KEY_IN_HEADER = {
    "RegexMatchStatement": {
        "FieldToMatch": {"SingleHeader": {"Name": "authorization"}},
        "RegexString": "^[Bb][Ee][Aa][Rr][Ee][Rr] +animal_(live|test)_[0-9A-Za-z]{38} *$",
        "TextTransformations": [{"Priority": 0, "Type": "NONE"}],
    }
}


def test_the_firewall_limits_clients_and_strangers_use_up_no_limit(
    stack: Template, rules: dict[str, Any]
) -> None:
    per_address, per_key, key, *_ = rules.values()
    limit = {"EvaluationWindowSec": 60, "ScopeDownStatement": KEY_IN_HEADER}
    assert per_address["Statement"]["RateBasedStatement"] == {
        "AggregateKeyType": "IP",
        "Limit": {"Ref": "RequestsPerAddress"},
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
        "Limit": {"Ref": "RequestsPerKey"},
        **limit,
    }
    assert (key["Statement"], key["Action"]) == (KEY_IN_HEADER, {"Allow": {}})
    assert [rule["Priority"] for rule in rules.values()] == [*range(len(rules))]
    assert stack["Parameters"]["RequestsPerAddress"]["Default"] == 3000
    assert stack["Parameters"]["RequestsPerKey"]["Default"] == 6000


def test_the_console_shows_no_keys(firewall: Any) -> None:
    for each in (firewall, *firewall["Rules"]):
        assert each["VisibilityConfig"]["SampledRequestsEnabled"] is False
