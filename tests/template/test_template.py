"""What template.yaml promises, read from the CloudFormation that AWS makes of it."""

import json
import re
from pathlib import Path
from typing import Any

import botocore.session
import pytest
from animal_store.errors import STATUS_OF_CODE
from cfnlint.schema.manager import PROVIDER_SCHEMA_MANAGER  # type: ignore[import-untyped]

from tests import openapi
from tests.template.conftest import Template, as_list, of_type, only, parameters, references
from tools.packaging.translate import TEMPLATE, translate

PATHS = openapi.document()["paths"]
ROUTES = {(method, path): operation for path, item in PATHS.items() for method, operation in item.items()}
API = "AWS::ApiGateway::RestApi"
FUNCTION = "AWS::Lambda::Function"


def problems(response: dict[str, Any], headers: dict[str, str], body: str) -> list[str]:
    """List where a response differs from a response object of openapi.yaml."""
    declared = {name: openapi.follow(header) for name, header in response.get("headers", {}).items()}
    found = [f"{name} is missing" for name in declared.keys() - headers.keys() if declared[name].get("required")]
    found += [f"{name} is not declared" for name in headers.keys() - declared.keys() if declared]
    for name in declared.keys() & headers.keys():
        schema = declared[name]["schema"]
        found += openapi.errors(int(headers[name]) if schema["type"] == "integer" else headers[name], schema)
    return found + openapi.errors(json.loads(body), response["content"]["application/json"]["schema"])


# -- functions ---------------------------------------------------------------------------------------------------------


def test_each_operation_of_the_interface_has_a_route_to_the_alias_of_its_own_function(stack: Template) -> None:
    paths = only(stack, API)["Body"]["paths"]
    routes = {(method, path): route for path, item in paths.items() for method, route in item.items()}
    assert routes.keys() == {(method, f"/v1{path}") for method, path in ROUTES}
    functions = set()
    for (method, path), operation in ROUTES.items():
        uri = routes[method, f"/v1{path}"]["x-amazon-apigateway-integration"]["uri"]["Fn::Sub"]
        (function,) = re.findall(r"\$\{(\w+)Aliaslive\}", uri)
        functions.add(function)
        assert of_type(stack, FUNCTION)[function]["Description"].startswith(operation["operationId"])
    assert functions == of_type(stack, FUNCTION).keys()


@pytest.mark.parametrize(("canary", "groups"), [("true", len(ROUTES)), ("false", 0)])
def test_codedeploy_shifts_the_alias_unless_the_canary_is_off(canary: str, groups: int) -> None:
    stack = translate(parameters("production") | {"Canary": canary})
    assert json.dumps(stack).count('"CodeDeployLambdaAliasUpdate"') == groups
    for group in of_type(stack, "AWS::CodeDeploy::DeploymentGroup").values():
        assert "DEPLOYMENT_STOP_ON_ALARM" in group["AutoRollbackConfiguration"]["Events"]
        assert "Canary" in json.dumps(group["DeploymentConfigName"])


def test_a_changed_parameter_reaches_the_alias(stack: Template) -> None:
    """A version's description is create-only in CloudFormation's schema: a changed one replaces the version."""
    schema = PROVIDER_SCHEMA_MANAGER.get_resource_schema("us-east-1", "AWS::Lambda::Version").schema
    assert "/properties/Description" in schema["createOnlyProperties"]
    descriptions = {
        version["FunctionName"]["Ref"]: version["Description"]
        for version in of_type(stack, "AWS::Lambda::Version").values()
    }
    for name, function in of_type(stack, FUNCTION).items():
        # Concurrency is the one property that a version does not have.
        versioned = {key: value for key, value in function.items() if key != "ReservedConcurrentExecutions"}
        layers = [stack["Resources"][layer]["Properties"] for layer in references(function["Layers"])]
        depends_on = stack["Parameters"].keys() & {*references(versioned), *references(layers)}
        assert len(depends_on) >= 3
        # And on no other: Lambda refuses to publish a version of a function that has not changed.
        assert set(references(descriptions[name])) == depends_on, name


@pytest.mark.parametrize(
    ("before", "after"), [("ContentUri: layers/common/", "ContentUri: s3://a/layer"), ("STAGE: !Ref Stage", "STAGE: a")]
)
def test_a_change_outside_the_code_reaches_the_alias(tmp_path: Path, before: str, after: str) -> None:
    changed = tmp_path / "template.yaml"
    changed.write_text(TEMPLATE.read_text().replace(before, after))
    assert changed.read_text() != TEMPLATE.read_text()
    stacks = [translate(parameters("staging"), template) for template in (TEMPLATE, changed)]
    versions = [of_type(stack, "AWS::Lambda::Version").keys() for stack in stacks]
    assert len(versions[0]) == len(ROUTES)
    assert not versions[0] & versions[1]


# -- permissions (to the row: tests/unit/test_template.py) -------------------------------------------------------------


def test_roles_are_bounded_and_a_wildcard_stands_only_where_aws_knows_no_resource(stack: Template) -> None:
    of_functions = {role for function in of_type(stack, FUNCTION).values() for role in references(function["Role"])}
    assert len(of_functions) == len(ROUTES)
    for name, role in of_type(stack, "AWS::IAM::Role").items():
        assert "PermissionsBoundary" in set(references(role["PermissionsBoundary"]))
        assert ("Policies" in role, "ManagedPolicyArns" in role) == (name in of_functions, name not in of_functions)
        for statement in [
            each for policy in role.get("Policies", []) for each in policy["PolicyDocument"]["Statement"]
        ]:
            assert statement["Effect"] == "Allow"
            assert "*" not in json.dumps(statement["Action"])
            of_xray = all(action.startswith("xray:") for action in as_list(statement["Action"]))
            assert of_xray or "*" not in json.dumps(statement["Resource"])


# -- API ---------------------------------------------------------------------------------------------------------------


def test_requests_are_limited_and_logged(stack: Template) -> None:
    stage = only(stack, "AWS::ApiGateway::Stage")
    (settings,) = stage["MethodSettings"]
    assert {"ThrottlingRate", "ThrottlingBurst"} == set(references(settings))
    # API Gateway's own log would quote Authorization headers, and be kept for ever.
    assert (settings["LoggingLevel"], settings["DataTraceEnabled"]) == ("OFF", False)
    log_format = stage["AccessLogSetting"]["Format"]
    assert "\n" not in log_format
    assert all(value.startswith("$context.") for value in json.loads(log_format).values())
    assert "$context.extendedRequestId" in log_format
    assert not re.search("authoriz|error.message|integrationError", log_format, re.IGNORECASE)


def test_connections_are_encrypted_and_a_domain_is_the_only_way_in(stack: Template) -> None:
    for kind in (API, "AWS::ApiGateway::DomainName"):
        assert re.match(r"SecurityPolicy_TLS13_1_[23]_", only(stack, kind)["SecurityPolicy"])
        assert only(stack, kind)["EndpointAccessMode"] == "STRICT"
    (server,) = only(stack, API)["Body"]["servers"]
    disabled = server["x-amazon-apigateway-endpoint-configuration"]["disableExecuteApiEndpoint"]
    assert disabled == {"Fn::If": ["HasDomain", True, False]}
    urls = stack["Outputs"]["BaseUrl"]["Value"]["Fn::If"][1:]
    assert [url["Fn::Sub"].rpartition("/")[2] for url in urls] == ["v1", "v1"]
    assert "BasePath" not in only(stack, "AWS::ApiGateway::BasePathMapping")


def test_every_error_of_the_gateway_is_the_error_object(stack: Template) -> None:
    responses = only(stack, API)["Body"]["x-amazon-apigateway-gateway-responses"]
    model = botocore.session.get_session().get_service_model("apigateway")
    assert responses.keys() == set(model.shape_for("GatewayResponseType").enum)  # type: ignore[attr-defined]
    declared = PATHS["/pets"]["post"]["responses"]
    for kind, response in responses.items():
        text = response["responseTemplates"]["application/json"]
        body = json.loads(text)
        # Without a StatusCode: one on a default would change that of every other type.
        assert response.get("statusCode") == (None if kind.startswith("DEFAULT_") else str(body["status"])), kind
        assert body["status"] == (502 if kind == "DEFAULT_5XX" else STATUS_OF_CODE[body["code"]]), kind
        parameters = response["responseParameters"].items()
        headers = {key.removeprefix("gatewayresponse.header."): value.strip("'") for key, value in parameters}
        # 404 is for unknown routes, which the document does not have.
        expected = declared["500" if body["status"] == 404 else str(body["status"])]
        assert not problems(openapi.follow(expected), headers, text), kind
    # A function that did not run, and one that may have run.
    assert responses["INTEGRATION_FAILURE"]["statusCode"] == "503"
    assert responses["INTEGRATION_TIMEOUT"]["statusCode"] == "504"


# -- firewall ----------------------------------------------------------------------------------------------------------


def answer(acl: dict[str, Any], action: dict[str, Any]) -> tuple[int, dict[str, str], str] | None:
    """Return the response of an action, with Link as it is without a domain; None if the action is to allow."""
    if "Block" not in action:
        return None
    custom = action["Block"]["CustomResponse"]
    headers = {header["Name"]: header["Value"] for header in custom["ResponseHeaders"]}
    headers |= {name: value["Fn::If"][2]["Fn::Sub"] for name, value in headers.items() if isinstance(value, dict)}
    body = acl["CustomResponseBodies"][custom["CustomResponseBodyKey"]]
    assert body["ContentType"] == "APPLICATION_JSON"
    return custom["ResponseCode"], headers, body["Content"]


def ask(acl: dict[str, Any], authorization: str, path: str) -> tuple[int, dict[str, str], str] | None:
    """Return what the firewall answers to a request that exceeds no rate; None if it lets it through."""
    fields = {"SingleHeader": authorization, "UriPath": path}
    for rule in sorted(acl["Rules"], key=lambda rule: rule["Priority"]):
        match = rule["Statement"].get("RegexMatchStatement")
        if match and re.search(match["RegexString"], fields[next(iter(match["FieldToMatch"]))]):
            return answer(acl, rule["Action"])
    return answer(acl, acl["DefaultAction"])


@pytest.mark.parametrize("base", ["/v1", "/production/v1"], ids=["domain", "execute-api"])
def test_a_request_without_a_well_formed_key_gets_the_declared_401(stack: Template, base: str) -> None:
    acl = only(stack, "AWS::WAFv2::WebACL")
    for (_, path), operation in ROUTES.items():
        request = base + re.sub(r"{\w+}", "17", path)
        for authorization in ("", "Bearer", "Bearer animal_live_short", "Basic " + "a" * 50):
            refused = ask(acl, authorization, request)
            assert refused is not None
            assert refused[0] == 401
            assert not problems(openapi.follow(operation["responses"]["401"]), *refused[1:])
        assert ask(acl, "bearer animal_test_" + "a" * 38, request) is None


def test_rates_are_limited_by_address_and_by_key_with_the_declared_429(stack: Template) -> None:
    acl = only(stack, "AWS::WAFv2::WebACL")
    (well_formed,) = (rule for rule in acl["Rules"] if "Allow" in rule["Action"])
    # Before that one, which lets requests through.
    rates = [rule for rule in acl["Rules"] if rule["Priority"] < well_formed["Priority"]]
    kinds = {rule["Statement"]["RateBasedStatement"]["AggregateKeyType"] for rule in rates}
    assert kinds == {"IP", "CUSTOM_KEYS"}
    for rule in rates:
        # Strangers do not use up the limit of an address.
        assert rule["Statement"]["RateBasedStatement"]["ScopeDownStatement"] == well_formed["Statement"]
        refused = answer(acl, rule["Action"])
        assert refused is not None
        assert refused[0] == 429
        for operation in ROUTES.values():
            assert not problems(openapi.follow(operation["responses"]["429"]), *refused[1:])
    # Samples of requests would show keys in the console.
    assert not any(each["VisibilityConfig"]["SampledRequestsEnabled"] for each in [acl, *acl["Rules"]])


# -- data and stages ---------------------------------------------------------------------------------------------------


def test_tables_and_logs_outlive_the_stack(stack: Template) -> None:
    for resource in stack["Resources"].values():
        policies = (resource.get("DeletionPolicy"), resource.get("UpdateReplacePolicy"))
        if resource["Type"] == "AWS::DynamoDB::Table":
            assert policies == ("Retain", "Retain")
            assert resource["Properties"]["DeletionProtectionEnabled"] is True
            assert resource["Properties"]["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}
        elif resource["Type"] == "AWS::Logs::LogGroup":
            assert policies == ("RetainExceptOnCreate", "Retain")
            # CloudFormation names it: the next stack of this name would meet one that is there.
            assert resource["Properties"].keys() == {"RetentionInDays"}


def test_stages_differ_in_parameters_only(stages: dict[str, Template]) -> None:
    def plain(template: Template) -> str:
        # SAM writes parameter values into the deployment configuration's name, and hashes them into logical ids.
        text = re.sub(r'"ConfigName": "\w+"', "", json.dumps(template, sort_keys=True))
        return re.sub(r"(Version|Deployment|CommonLayer)[0-9a-f]{10}\b|deployment id: \w+", r"\1", text)

    assert plain(stages["staging"]) == plain(stages["production"])
    assert parameters("staging").keys() == parameters("production").keys() <= stages["staging"]["Parameters"].keys()
