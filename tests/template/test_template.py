"""What template.yaml promises, read from the CloudFormation that AWS makes of it."""

import json
import re
from pathlib import Path

import botocore.session
import pytest
from cfnlint.schema.manager import PROVIDER_SCHEMA_MANAGER  # type: ignore[import-untyped]

from tests.support import openapi
from tests.support.stack import (
    Template,
    as_list,
    parameters,
    properties_by_name,
    properties_of,
    references,
    statements,
)
from tools import ROOT
from tools.packaging.translate import TEMPLATE, translate

OPERATIONS = openapi.operations()
API = "AWS::ApiGateway::RestApi"
FUNCTION = "AWS::Lambda::Function"
VERSION = "AWS::Lambda::Version"


def problems(
    operation: openapi.Operation | None, status: int, headers: dict[str, str], body: str
) -> list[str]:
    return openapi.problems(
        operation, status, headers | {"Content-Type": "application/json"}, body, in_process=True
    )


def test_each_operation_of_the_interface_has_a_route_to_the_alias_of_its_own_function(
    stack: Template,
) -> None:
    paths = properties_of(stack, API)["Body"]["paths"]
    routes = {
        (method, path): route for path, item in paths.items() for method, route in item.items()
    }
    functions = {}
    for (method, path), route in routes.items():
        (function,) = re.findall(
            r"\$\{(\w+)Aliaslive\}", route["x-amazon-apigateway-integration"]["uri"]["Fn::Sub"]
        )
        functions[function] = properties_by_name(stack, FUNCTION)[function]["Description"].replace(
            " (deprecated)", ""
        )
        assert functions[function].endswith(f": {method.upper()} {path}")
    assert sorted(functions.values()) == sorted(
        f"{each.id}: {each.method} /v1{each.path}" for each in OPERATIONS
    )
    assert functions.keys() == properties_by_name(stack, FUNCTION).keys()


def test_codedeploy_shifts_the_alias_unless_the_canary_is_off(stack: Template) -> None:
    at_once = translate(parameters("production") | {"Canary": "false"})
    shifted = [json.dumps(each).count('"CodeDeployLambdaAliasUpdate"') for each in (stack, at_once)]
    assert shifted == [len(OPERATIONS), 0]


def test_a_changed_parameter_reaches_the_alias(stack: Template) -> None:
    """A version's description is create-only in CloudFormation's schema: a changed one replaces the version."""
    schema = PROVIDER_SCHEMA_MANAGER.get_resource_schema("us-east-1", VERSION).schema
    assert "/properties/Description" in schema["createOnlyProperties"]
    versions = properties_by_name(stack, VERSION).values()
    descriptions = {version["FunctionName"]["Ref"]: version["Description"] for version in versions}
    for name, function in properties_by_name(stack, FUNCTION).items():
        # Concurrency is the one property that a version does not have.
        versioned = {
            key: value for key, value in function.items() if key != "ReservedConcurrentExecutions"
        }
        layers = [
            stack["Resources"][layer]["Properties"] for layer in references(function["Layers"])
        ]
        depends_on = stack["Parameters"].keys() & (references(versioned) | references(layers))
        assert len(depends_on) >= 3
        # And on no other: Lambda refuses to publish a version of a function that has not changed.
        assert references(descriptions[name]) == depends_on, name


@pytest.mark.parametrize(
    ("before", "after"),
    [("ContentUri: layers/common/", "ContentUri: s3://a/layer"), ("STAGE: !Ref Stage", "STAGE: a")],
)
def test_a_change_outside_the_code_reaches_the_alias(
    stack: Template, tmp_path: Path, before: str, after: str
) -> None:
    changed = tmp_path / "template.yaml"
    changed.write_text(TEMPLATE.read_text().replace(before, after))
    versions = properties_by_name(translate(parameters("production"), changed), VERSION)
    assert len(versions) == len(OPERATIONS)
    assert not versions.keys() & properties_by_name(stack, VERSION).keys()


def test_roles_are_bounded_and_a_wildcard_stands_only_where_aws_knows_no_resource(
    stack: Template,
) -> None:
    of_functions = {
        role
        for function in properties_by_name(stack, FUNCTION).values()
        for role in references(function["Role"])
    }
    assert len(of_functions) == len(OPERATIONS)
    for name, role in properties_by_name(stack, "AWS::IAM::Role").items():
        assert "PermissionsBoundary" in references(role["PermissionsBoundary"])
        assert ("Policies" in role, "ManagedPolicyArns" in role) == (
            name in of_functions,
            name not in of_functions,
        )
    for _, statement in statements(stack):
        assert statement["Effect"] == "Allow"
        assert "*" not in json.dumps(statement["Action"])
        of_xray = all(action.startswith("xray:") for action in as_list(statement["Action"]))
        assert of_xray or "*" not in json.dumps(statement["Resource"])


def test_a_stolen_key_can_do_what_security_md_says_and_no_more(stack: Template) -> None:
    text = " ".join((ROOT / "SECURITY.md").read_text("utf-8").split())
    found = re.search(r"\*\*A stolen key\*\* can (.*?), until .*? It can (.*?) nothing", text)
    assert found
    can, cannot = (
        set(re.findall(r"\b(?:list|read|add|change|delete)\b", part)) for part in found.groups()
    )
    verbs = {
        "Query": "list",
        "GetItem": "read",
        "PutItem": "add",
        "UpdateItem": "change",
        "DeleteItem": "delete",
    }
    # createPet takes the next id with it. That no animal is written over is tested in tests/unit/test_dynamodb_client.py.
    allowed: dict[str, set[str]] = {"AnimalsTable": set(), "ApiKeysTable": set()}
    for role, statement in statements(stack):
        for table in allowed.keys() & references(statement["Resource"]):
            allowed[table] |= {
                f"{role} {action.removeprefix('dynamodb:')}"
                for action in as_list(statement["Action"])
            }
    assert {
        verbs[action.split()[1]]
        for action in allowed["AnimalsTable"] - {"CreatePetRole UpdateItem"}
    } == can
    assert cannot == set(verbs.values()) - can
    assert {action.split()[1] for action in allowed["ApiKeysTable"]} == {"GetItem"}


def test_requests_are_limited_and_logged(stack: Template) -> None:
    stage = properties_of(stack, "AWS::ApiGateway::Stage")
    (settings,) = stage["MethodSettings"]
    assert {"ThrottlingRate", "ThrottlingBurst"} == references(settings)
    # API Gateway's own log would quote Authorization headers, and be kept for ever.
    assert (settings["LoggingLevel"], settings["DataTraceEnabled"]) == ("OFF", False)
    log_format = stage["AccessLogSetting"]["Format"]
    assert all(value.startswith("$context.") for value in json.loads(log_format).values())
    assert not re.search("authoriz|error.message|integrationError", log_format, re.IGNORECASE)


def test_connections_are_encrypted_and_a_domain_is_the_only_way_in(stack: Template) -> None:
    for kind in (API, "AWS::ApiGateway::DomainName"):
        assert re.match(
            r"SecurityPolicy_TLS13_1_[23]_", properties_of(stack, kind)["SecurityPolicy"]
        )
        assert properties_of(stack, kind)["EndpointAccessMode"] == "STRICT"
    (server,) = properties_of(stack, API)["Body"]["servers"]
    settings = server["x-amazon-apigateway-endpoint-configuration"]
    assert settings == {"disableExecuteApiEndpoint": {"Fn::If": ["HasDomain", True, False]}}


def test_every_error_of_the_gateway_is_the_error_object(stack: Template) -> None:
    responses = properties_of(stack, API)["Body"]["x-amazon-apigateway-gateway-responses"]
    model = botocore.session.get_session().get_service_model("apigateway")
    assert responses.keys() == set(model.shape_for("GatewayResponseType").enum)  # type: ignore[attr-defined]
    for kind, response in responses.items():
        text = response["responseTemplates"]["application/json"]
        status, code = (json.loads(text)[name] for name in ("status", "code"))
        assert code in openapi.statuses_of_codes(), kind
        # Without a StatusCode: one on a default would change that of every other type.
        assert response.get("statusCode") == (
            None if kind.startswith("DEFAULT_") else str(status)
        ), kind
        values = response["responseParameters"].items()
        headers = {
            key.removeprefix("gatewayresponse.header."): value.strip("'") for key, value in values
        }
        # 404 is for unknown routes, which the document does not have.
        assert not problems(
            openapi.find("POST", "/pets") if status != 404 else None, status, headers, text
        ), kind
    assert responses["INTEGRATION_FAILURE"]["statusCode"] == "503"  # did not run
    assert responses["INTEGRATION_TIMEOUT"]["statusCode"] == "504"  # may have run


def test_the_firewall_refuses_what_has_no_key_or_comes_too_fast_as_declared(
    stack: Template,
) -> None:
    acl = properties_of(stack, "AWS::WAFv2::WebACL")
    *rates, well_formed, of_get_pet = sorted(acl["Rules"], key=lambda rule: rule["Priority"])
    assert "Allow" in well_formed["Action"]
    limits = [rule["Statement"]["RateBasedStatement"] for rule in rates]
    assert {limit["AggregateKeyType"] for limit in limits} == {"IP", "CUSTOM_KEYS"}
    # Strangers do not use up the limit of an address.
    assert all(limit["ScopeDownStatement"] == well_formed["Statement"] for limit in limits)
    # Samples of requests would show keys in the console.
    assert not any(
        each["VisibilityConfig"]["SampledRequestsEnabled"] for each in [acl, *acl["Rules"]]
    )
    method, path = (
        next(iter(each.values())) for each in of_get_pet["Statement"]["AndStatement"]["Statements"]
    )
    for operation in OPERATIONS:
        matched = operation.method == method["SearchString"] and re.search(
            path["RegexString"], f"/v1{operation.path}"
        )
        no_key = of_get_pet["Action"] if matched else acl["DefaultAction"]
        for status, action in [(401, no_key), *((429, rule["Action"]) for rule in rates)]:
            response = action["Block"]["CustomResponse"]
            assert response["ResponseCode"] == status
            headers = {header["Name"]: header["Value"] for header in response["ResponseHeaders"]}
            if "Link" in headers:  # as it is without a domain
                headers["Link"] = headers["Link"]["Fn::If"][2]["Fn::Sub"]
            body = acl["CustomResponseBodies"][response["CustomResponseBodyKey"]]["Content"]
            assert not problems(operation, status, headers, body)


def test_tables_and_logs_outlive_the_stack(stack: Template) -> None:
    for resource in stack["Resources"].values():
        policies = (resource.get("DeletionPolicy"), resource.get("UpdateReplacePolicy"))
        if resource["Type"] == "AWS::DynamoDB::Table":
            assert policies == ("Retain", "Retain")
            assert resource["Properties"]["DeletionProtectionEnabled"] is True
        elif resource["Type"] == "AWS::Logs::LogGroup":
            assert policies == ("RetainExceptOnCreate", "Retain")
            # CloudFormation names it: the next stack of this name would meet one that is there.
            assert resource["Properties"].keys() == {"RetentionInDays"}


def test_stages_set_the_same_parameters(stack: Template) -> None:
    assert (
        parameters("staging").keys()
        == parameters("production").keys()
        <= stack["Parameters"].keys()
    )
