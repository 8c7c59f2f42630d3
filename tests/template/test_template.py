"""template.yaml has its safeguards, resources for each operation, and no other way in."""

import json

import pytest
import yaml

from tests.contract import openapi
from tests.support.stack import parameters, read_stage
from tools import ROOT
from tools.local.template import load_template, properties_by_name

TEXT = (ROOT / "template.yaml").read_text()
TEMPLATE = load_template().document
# unit/test_openapi.py compares each stage's limits with openapi.yaml.
PARAMETERS = {
    "PermissionsBoundary": "boundary",
    "DomainName": "api.example.com",
    "LogRetentionDays": "90",
    "ThrottlingRate": "500",
    "ThrottlingBurst": "1000",
}
PRODUCTION, STAGING = read_stage(**PARAMETERS), read_stage("staging", **PARAMETERS)
API = PRODUCTION["Resources"]["Api"]["Properties"]
SAFEGUARDS = yaml.safe_load((ROOT / "tests/template/safeguards.yaml").read_text())


@pytest.mark.parametrize("name_or_type", SAFEGUARDS)
def test_resource_has_its_safeguards(name_or_type: str) -> None:
    resources = []
    for stack in (PRODUCTION, STAGING):
        for name, resource in stack["Resources"].items():
            if name_or_type in {name, resource["Type"]}:
                resources.append(resource | resource.get("Properties", {}))
    assert resources
    for resource in resources:
        for member, value in SAFEGUARDS[name_or_type].items():
            assert resource.get(member) == value


def test_plain_sam_deploy_makes_staging_with_a_logging_role() -> None:
    role = {"ApiGatewayLoggingRole": "true"}
    assert parameters("default") == parameters("staging") | role


def test_plain_sam_deploy_sets_logging_role_before_api() -> None:
    resources = read_stage("default")["Resources"]
    account = resources["ApiGatewayAccount"]
    assert account["Properties"] == {"CloudWatchRoleArn": "LoggingRole.Arn"}
    for resource in (account, resources["LoggingRole"]):
        assert resource["DeletionPolicy"] == "RetainExceptOnCreate"
    (policy,) = resources["LoggingRole"]["Properties"]["ManagedPolicyArns"]
    assert policy.endswith("/service-role/AmazonAPIGatewayPushToCloudWatchLogs")
    assert "After: !If [HasApiGatewayLoggingRole, !Ref ApiGatewayAccount," in TEXT


def test_functions_time_out_before_the_api_and_have_a_canary() -> None:
    functions = PRODUCTION["Globals"]["Function"]
    assert functions["Timeout"] < 29
    assert functions["DeploymentPreference"] == {
        "Enabled": "true",
        "Type": "Canary10Percent5Minutes",
        "Role": "CodeDeployRole.Arn",
    }


def test_every_rule_refuses_wrong_parameters() -> None:
    """Faults: a domain without certificate, no alarm e-mail, a boundary in a plain deploy."""
    stack = read_stage(ApiGatewayLoggingRole="true", **PARAMETERS)
    for rule in stack["Rules"].values():
        assert rule["RuleCondition"] is True
        assert rule["Assertions"][0]["Assert"] is False


def test_sam_overwrites_its_uploads_in_both_stages() -> None:
    assert (ROOT / "samconfig.toml").read_text().count("\nforce_upload = true\n") == 2


@pytest.mark.parametrize(
    "setting",
    [
        # other ways in, or who is let in
        "FunctionUrl",
        "Lambda::Url",
        "HttpApi",
        "Auth:",
        "DefinitionUri",
        "AWS::Events::Rule",
        "AWS::Lambda::Permission",
        "AWS::Scheduler",
        "AWS::SNS::TopicPolicy",
        # test_roles.py reads only roles
        "AWS::IAM::Policy",
        "AWS::IAM::ManagedPolicy",
        # drops log lines, which also have the metrics
        "ApplicationLogLevel",
    ],
)
def test_setting_that_undoes_a_safeguard_is_absent(setting: str) -> None:
    assert setting not in TEXT


def test_unknown_route_gets_404_whatever_the_body() -> None:
    """The catch-all route answers with API Gateway's 404, even to a body that isn't JSON."""
    not_found = API["GatewayResponses"]["MISSING_AUTHENTICATION_TOKEN"]
    assert API["GatewayResponses"]["UNSUPPORTED_MEDIA_TYPE"] == not_found
    ((path, methods),) = API["DefinitionBody"]["paths"].items()
    ((method, operation),) = methods.items()
    assert (path, method) == ("/{proxy+}", "x-amazon-apigateway-any-method")
    headers = not_found["ResponseParameters"]["Headers"]
    assert {*operation["responses"]["404"]["headers"]} == {*headers}
    integration = operation["x-amazon-apigateway-integration"]
    assert integration["type"] == "mock"
    assert integration["passthroughBehavior"] == "never"
    response = integration["responses"]["default"]
    for conversion in (integration, response):
        assert conversion["contentHandling"] == "CONVERT_TO_TEXT"
    assert response["statusCode"] == str(not_found["StatusCode"])
    assert response["responseTemplates"] == not_found["ResponseTemplates"]
    for name, value in headers.items():
        assert response["responseParameters"][f"method.response.header.{name}"] == value


def test_only_functions_have_policies_of_their_own() -> None:
    """unit/test_roles.py tests what these policies allow."""
    roles = properties_by_name(read_stage("default"), "AWS::IAM::Role")
    own = {name for name, role in roles.items() if "Policies" in role}
    assert own == {f"{operation.block}Role" for operation in openapi.OPERATIONS}
    assert {*roles} - own == {"CodeDeployRole", "LoggingRole"}


def test_access_log_has_no_field_that_may_contain_an_api_key() -> None:
    for name in (".path", "Override", ".authorizer", ".error.m", "userAgent", "Key"):
        assert name not in API["AccessLogSetting"]["Format"]


@openapi.each_operation
def test_operation_has_its_own_resources_and_alarms(
    operation: openapi.Operation,
) -> None:
    name = operation.block
    function = PRODUCTION["Resources"][f"{name}Function"]["Properties"]
    assert function["LoggingConfig"] == {"LogGroup": f"{name}LogGroup"}
    assert function["DeploymentPreference"] == {"Alarms": [f"{name}DeploymentAlarm"]}
    assert [*function["Events"]] == ["Api", "Heartbeat"]
    assert f"{name}LogGroup" in str(PRODUCTION["Outputs"]["LogGroups"])
    assert f"{name}Function:live" in str(PRODUCTION["Resources"]["Dashboard"])
    # In production, a composite alarm sends the mail: test_alarms.py.
    alarm = STAGING["Resources"][f"{name}HeartbeatAlarm"]["Properties"]
    assert alarm["AlarmActions"] == alarm["OKActions"] == ["AlarmTopic"]


def test_version_description_has_all_parameters_of_a_version() -> None:
    """A changed description makes a new version, which `live` then leads to."""
    settings = dict(TEMPLATE["Globals"]["Function"])
    del settings["DeploymentPreference"], settings["ReservedConcurrentExecutions"]
    used = [
        name for name in TEMPLATE["Parameters"] if f"'Ref': '{name}'" in str(settings)
    ]

    assert used == ["Stage", "Architecture", "MemorySize"]
    assert (
        TEXT.count("VersionDescription: !Sub ${Stage} ${Architecture} ${MemorySize} MB")
        == 1
    )


@pytest.mark.parametrize("error_type", API["GatewayResponses"])
def test_gateway_response_is_documented_in_openapi_yaml(error_type: str) -> None:
    response = API["GatewayResponses"][error_type]
    text = response["ResponseTemplates"]["application/json"]
    headers = {"Content-Type": "application/json"}
    for name, value in response["ResponseParameters"]["Headers"].items():
        headers[name] = value.strip("'")
    status = json.loads(text)["status"]
    path = "/unknown" if status == 404 else "/pets"

    openapi.check(openapi.find("POST", path), status, headers, text)
    # A default's status would replace the status of errors without their own response.
    own_status = None if error_type.startswith("DEFAULT_") else status
    assert response.get("StatusCode") == own_status
