"""What template.yaml promises, read from the CloudFormation that AWS makes of it."""

import json
from pathlib import Path
from typing import Any

import botocore.session
import pytest

from tests.support import openapi
from tests.support.stack import (
    Template,
    parameters,
    properties_by_name,
    properties_of,
    references,
    role_statements,
)
from tools.packaging.translate import TEMPLATE, translate

OPERATIONS = openapi.operations()
API = "AWS::ApiGateway::RestApi"
FUNCTION = "AWS::Lambda::Function"
ROLE = "AWS::IAM::Role"
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
        "AWS::CloudWatch::Dashboard",
        "AWS::CodeDeploy::Application",
        "AWS::CodeDeploy::DeploymentGroup",
        "AWS::DynamoDB::Table",
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


@pytest.mark.parametrize("operation", OPERATIONS, ids=[each.id for each in OPERATIONS])
def test_a_function_has_these_settings_and_no_others(
    stack: Template, operation: openapi.Operation
) -> None:
    name = f"{operation.id[0].upper()}{operation.id[1:]}Function"
    settings = dict(properties_by_name(stack, FUNCTION)[name])
    for own in (
        "Code",
        "Description",
        "Environment",
        "Layers",
        "LoggingConfig",
        "Role",
    ):
        del settings[own]
    assert settings == {
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
        "TracingConfig": {"Mode": "Active"},
    }


def test_api_keys_are_kept_and_never_expire_from_the_table(stack: Template) -> None:
    """Refuse a time to live, which would delete who issued a key."""
    assert properties_by_name(stack, "AWS::DynamoDB::Table")["ApiKeysTable"] == {
        "AttributeDefinitions": [{"AttributeName": "hash", "AttributeType": "S"}],
        "BillingMode": "PAY_PER_REQUEST",
        "DeletionProtectionEnabled": True,
        "KeySchema": [{"AttributeName": "hash", "KeyType": "HASH"}],
        "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True},
    }


def test_tables_and_logs_outlive_the_stack(stack: Template) -> None:
    for resource in stack["Resources"].values():
        policies = (resource.get("DeletionPolicy"), resource.get("UpdateReplacePolicy"))
        properties = resource.get("Properties", {})
        if resource["Type"] == "AWS::DynamoDB::Table":
            assert policies == ("Retain", "Retain")
            assert properties["DeletionProtectionEnabled"] is True
            recovery = properties["PointInTimeRecoverySpecification"]
            assert recovery == {"PointInTimeRecoveryEnabled": True}
        elif resource["Type"] == "AWS::Logs::LogGroup":
            assert policies == ("RetainExceptOnCreate", "Retain")
            # CloudFormation names it: the next stack of this name would meet one that is there.
            assert properties.keys() == {"RetentionInDays"}


def test_stages_set_the_same_parameters(stack: Template) -> None:
    assert parameters("staging").keys() == parameters("production").keys()
    assert parameters("production").keys() <= stack["Parameters"].keys()


# -- operations, and how a change reaches them -----------------------------------------------------


@pytest.mark.parametrize("operation", OPERATIONS, ids=[each.id for each in OPERATIONS])
def test_an_operation_leads_to_the_alias_of_its_own_function(
    stack: Template, operation: openapi.Operation
) -> None:
    item = properties_of(stack, API)["Body"]["paths"][f"/v1{operation.path}"]
    target = item[operation.method.lower()]["x-amazon-apigateway-integration"]["uri"][
        "Fn::Sub"
    ]
    alias = target.partition("${")[2].rpartition("Alias")[0].rpartition("${")[2]
    description = properties_by_name(stack, FUNCTION)[alias]["Description"]
    route = f"{operation.id}: {operation.method} /v1{operation.path}"
    assert description.replace(" (deprecated)", "") == route


def test_there_is_no_route_and_no_function_but_those_of_the_operations(
    stack: Template,
) -> None:
    items = properties_of(stack, API)["Body"]["paths"].values()
    counts = (
        sum(len(item) for item in items),
        len(properties_by_name(stack, FUNCTION)),
    )
    assert counts == (len(OPERATIONS), len(OPERATIONS)), (
        "template.yaml needs one route and one function for each operation of openapi.yaml."
    )


@pytest.mark.parametrize(
    ("canary", "shifted"), [("true", len(OPERATIONS)), ("false", 0)]
)
def test_codedeploy_shifts_the_alias_unless_the_canary_is_off(
    canary: str, shifted: int
) -> None:
    stack = translate(parameters("production") | {"Canary": canary})
    assert json.dumps(stack).count('"CodeDeployLambdaAliasUpdate"') == shifted


@pytest.mark.parametrize("version", range(len(OPERATIONS)))
def test_a_version_is_described_by_every_parameter_that_its_function_depends_on(
    stack: Template, version: int
) -> None:
    """And by no other: Lambda refuses to publish a version of a function that has not changed."""
    published = list(properties_by_name(stack, VERSION).values())[version]
    function = dict(
        properties_by_name(stack, FUNCTION)[published["FunctionName"]["Ref"]]
    )
    # The one setting that a version does not have.
    del function["ReservedConcurrentExecutions"]
    (layer,) = references(function["Layers"])
    used = references(function) | references(stack["Resources"][layer]["Properties"])
    assert references(published["Description"]) == used & stack["Parameters"].keys()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("ContentUri: layers/common/", "ContentUri: s3://a/layer"),
        ("STAGE: !Ref Stage", "STAGE: a"),
    ],
)
def test_a_change_outside_the_code_reaches_the_alias(
    stack: Template, tmp_path: Path, before: str, after: str
) -> None:
    changed = tmp_path / "template.yaml"
    changed.write_text(TEMPLATE.read_text().replace(before, after))
    versions = properties_by_name(translate(parameters("production"), changed), VERSION)
    assert len(versions) == len(OPERATIONS)
    assert not versions.keys() & properties_by_name(stack, VERSION).keys()


# -- rights ----------------------------------------------------------------------------------------


def test_every_role_is_bounded(stack: Template) -> None:
    roles = properties_by_name(stack, ROLE)
    assert len(roles) == len(OPERATIONS) + 1
    for role in roles.values():
        assert "PermissionsBoundary" in references(role["PermissionsBoundary"])


def test_only_codedeploy_has_a_policy_of_awss(stack: Template) -> None:
    managed = {
        name: role["ManagedPolicyArns"]
        for name, role in properties_by_name(stack, ROLE).items()
        if "ManagedPolicyArns" in role
    }
    policy = "policy/service-role/AWSCodeDeployRoleForLambdaLimited"
    assert managed == {
        "CodeDeployRole": [{"Fn::Sub": f"arn:${{AWS::Partition}}:iam::aws:{policy}"}]
    }


def test_a_wildcard_stands_only_where_aws_knows_no_resource(stack: Template) -> None:
    for _, statement in role_statements(stack):
        assert statement["Effect"] == "Allow"
        assert "*" not in json.dumps(statement["Action"])
        if statement["Sid"] != "SendTraces":
            assert "*" not in json.dumps(statement["Resource"])


# -- the way in ------------------------------------------------------------------------------------


def test_requests_are_limited_and_not_cached(stack: Template) -> None:
    assert properties_of(stack, "AWS::ApiGateway::Stage")["MethodSettings"] == [
        {
            "ResourcePath": "/*",
            "HttpMethod": "*",
            "MetricsEnabled": True,
            # API Gateway's own log would quote Authorization headers, and be kept for ever.
            "LoggingLevel": "OFF",
            "DataTraceEnabled": False,
            "ThrottlingRateLimit": {"Ref": "ThrottlingRate"},
            "ThrottlingBurstLimit": {"Ref": "ThrottlingBurst"},
        }
    ]
    assert stack["Parameters"]["ThrottlingRate"]["Default"] == 100
    assert stack["Parameters"]["ThrottlingBurst"]["Default"] == 200


def test_the_access_log_quotes_no_header(stack: Template) -> None:
    log_format = properties_of(stack, "AWS::ApiGateway::Stage")["AccessLogSetting"][
        "Format"
    ]
    for value in json.loads(log_format).values():
        assert value.startswith("$context.")
    for telling in ("authoriz", "error.message", "integrationError"):
        assert telling not in log_format.lower()


def test_a_domain_is_the_only_way_in(stack: Template) -> None:
    (server,) = properties_of(stack, API)["Body"]["servers"]
    settings = server["x-amazon-apigateway-endpoint-configuration"]
    assert settings == {
        "disableExecuteApiEndpoint": {"Fn::If": ["HasDomain", True, False]}
    }


@pytest.mark.parametrize("kind", [API, "AWS::ApiGateway::DomainName"])
def test_connections_are_encrypted(stack: Template, kind: str) -> None:
    properties = properties_of(stack, kind)
    assert properties["SecurityPolicy"] == "SecurityPolicy_TLS13_1_2_PFS_PQ_2025_09"
    assert properties["EndpointAccessMode"] == "STRICT"


def assert_declared(
    operation: openapi.Operation | None, status: int, headers: dict[str, str], body: str
) -> None:
    headers = headers | {"Content-Type": "application/json"}
    assert not openapi.problems(operation, status, headers, body, in_process=True)


@pytest.mark.parametrize("kind", ERRORS_OF_THE_GATEWAY)
def test_an_error_of_the_gateway_is_the_error_object(
    stack: Template, kind: str
) -> None:
    body = properties_of(stack, API)["Body"]
    response = body["x-amazon-apigateway-gateway-responses"][kind]
    text = response["responseTemplates"]["application/json"]
    error = json.loads(text)
    assert error["code"] in openapi.statuses_of_codes()
    # A default has no status of its own: it would change that of every other type.
    status = None if kind.startswith("DEFAULT_") else str(error["status"])
    assert response.get("statusCode") == status
    headers = {
        name.removeprefix("gatewayresponse.header."): value.strip("'")
        for name, value in response["responseParameters"].items()
    }
    # 404 is for unknown routes, which the document does not have.
    operation = None if error["status"] == 404 else openapi.find("POST", "/pets")
    assert_declared(operation, error["status"], headers, text)


@pytest.mark.parametrize(
    ("kind", "status"),
    [("INTEGRATION_FAILURE", "503"), ("INTEGRATION_TIMEOUT", "504")],
    ids=["function did not run", "function may have run"],
)
def test_a_client_can_tell_whether_a_function_may_have_run(
    stack: Template, kind: str, status: str
) -> None:
    responses = properties_of(stack, API)["Body"][
        "x-amazon-apigateway-gateway-responses"
    ]
    assert responses[kind]["statusCode"] == status


# -- firewall --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def firewall(stack: Template) -> dict[str, Any]:
    """Return the firewall, with its rules by name."""
    acl = properties_of(stack, "AWS::WAFv2::WebACL")
    rules: dict[str, Any] = {rule["Name"]: rule for rule in acl["Rules"]}
    return {**acl, "Rules": rules}


def assert_refusal_is_declared(
    firewall: dict[str, Any],
    operation: openapi.Operation,
    status: int,
    action: dict[str, Any],
) -> None:
    response = action["Block"]["CustomResponse"]
    assert response["ResponseCode"] == status
    headers = {
        header["Name"]: header["Value"] for header in response["ResponseHeaders"]
    }
    if "Link" in headers:  # as it is without a domain
        headers["Link"] = headers["Link"]["Fn::If"][2]["Fn::Sub"]
    body = firewall["CustomResponseBodies"][response["CustomResponseBodyKey"]][
        "Content"
    ]
    assert_declared(operation, status, headers, body)


@pytest.mark.parametrize("rule", ["requests-per-address", "requests-per-key"])
@pytest.mark.parametrize("operation", OPERATIONS, ids=[each.id for each in OPERATIONS])
def test_the_firewall_answers_429_as_declared(
    firewall: dict[str, Any], rule: str, operation: openapi.Operation
) -> None:
    assert_refusal_is_declared(
        firewall, operation, 429, firewall["Rules"][rule]["Action"]
    )


@pytest.mark.parametrize("operation", OPERATIONS, ids=[each.id for each in OPERATIONS])
def test_the_firewall_answers_401_as_declared(
    firewall: dict[str, Any], operation: openapi.Operation
) -> None:
    of_get_pet = firewall["Rules"]["no-key-get-pet"]["Action"]
    action = of_get_pet if operation.id == "getPet" else firewall["DefaultAction"]
    assert_refusal_is_declared(firewall, operation, 401, action)


def test_the_firewall_knows_get_pet_by_its_path(firewall: dict[str, Any]) -> None:
    method, path = firewall["Rules"]["no-key-get-pet"]["Statement"]["AndStatement"][
        "Statements"
    ]
    assert method["ByteMatchStatement"]["SearchString"] == "GET"
    assert path["RegexMatchStatement"]["RegexString"] == "/v1/pets/[^/]+$"


def test_strangers_do_not_use_up_the_limits_of_clients(
    firewall: dict[str, Any],
) -> None:
    rules = firewall["Rules"]
    assert [rule["Priority"] for rule in rules.values()] == [0, 1, 2, 3]
    assert rules["well-formed-key"]["Action"] == {"Allow": {}}
    for name, kind in (
        ("requests-per-address", "IP"),
        ("requests-per-key", "CUSTOM_KEYS"),
    ):
        limit = rules[name]["Statement"]["RateBasedStatement"]
        assert limit["AggregateKeyType"] == kind
        assert limit["ScopeDownStatement"] == rules["well-formed-key"]["Statement"]


def test_the_console_shows_no_keys(firewall: dict[str, Any]) -> None:
    for each in (firewall, *firewall["Rules"].values()):
        assert each["VisibilityConfig"]["SampledRequestsEnabled"] is False
