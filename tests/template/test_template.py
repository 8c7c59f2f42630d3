"""template.yaml keeps its safeguards, and has a block for each operation and no other way in."""

import json
import re

import pytest
import yaml

from tests.support import openapi
from tests.support.stack import parameters, properties_by_name, staged
from tools import ROOT
from tools.local.template import read

TEXT = (ROOT / "template.yaml").read_text()
TEMPLATE = read(ROOT / "template.yaml")
# unit/test_openapi.py compares each stage's limits with the document.
PARAMETERS = {
    "PermissionsBoundary": "boundary",
    "DomainName": "api.example.com",
    "LogRetentionDays": "90",
    "ThrottlingRate": "500",
    "ThrottlingBurst": "1000",
}
PRODUCTION, STAGING = staged(**PARAMETERS), staged("staging", **PARAMETERS)
API = PRODUCTION["Resources"]["Api"]["Properties"]
FIREWALL = PRODUCTION["Resources"]["WebAcl"]["Properties"]
BLOCK = ("Function", "Role", "LogGroup", "DeploymentAlarm", "HeartbeatAlarm")
SAFEGUARDS = yaml.safe_load((ROOT / "tests/template/safeguards.yaml").read_text())


@pytest.mark.parametrize("place", SAFEGUARDS)
def test_resource_has_its_safeguards(place: str) -> None:
    resources = []
    for stack in (PRODUCTION, STAGING):
        for name, resource in stack["Resources"].items():
            if place in {name, resource["Type"]}:
                resources.append(resource | resource.get("Properties", {}))
    assert resources
    for resource in resources:
        for member, value in SAFEGUARDS[place].items():
            assert resource.get(member) == value


def test_plain_sam_deploy_has_the_parameters_of_staging() -> None:
    role = {"ApiGatewayLoggingRole": "true"}
    assert parameters("default") == parameters("staging") | role


def test_plain_sam_deploy_sets_the_role_for_access_logs_before_the_api() -> None:
    # A reference is replaced by this id, but a text that equals the resource's name is not.
    resources = staged("default", ApiGatewayAccount="account-1")["Resources"]
    account = resources["ApiGatewayAccount"]
    assert account["Properties"] == {"CloudWatchRoleArn": "LoggingRole.Arn"}
    for resource in (account, resources["LoggingRole"]):
        assert resource["DeletionPolicy"] == "RetainExceptOnCreate"
    assert resources["Api"]["Metadata"] == {"After": "account-1"}


def test_functions_time_out_before_the_gateway_and_start_with_a_canary() -> None:
    shared = PRODUCTION["Globals"]["Function"]
    assert shared["Timeout"] < 29
    assert shared["DeploymentPreference"]["Enabled"] == "true"
    assert shared["DeploymentPreference"]["Type"] == "Canary10Percent5Minutes"


def test_both_stages_upload_what_the_bucket_seems_to_have() -> None:
    assert (ROOT / "samconfig.toml").read_text().count("\nforce_upload = true\n") == 2


@pytest.mark.parametrize(
    "text",
    [
        # other ways in, or who is let in
        "FunctionUrl",
        "Lambda::Url",
        "HttpApi",
        "Auth:",
        "DefinitionBody",
        "DefinitionUri",
        "AWS::Lambda::Permission",
        "AWS::SNS::TopicPolicy",
        # test_roles.py reads only roles
        "AWS::IAM::Policy",
        "AWS::IAM::ManagedPolicy",
        # drops lines, which are metrics too
        "ApplicationLogLevel",
    ],
)
def test_template_has_nothing_that_undoes_a_safeguard(text: str) -> None:
    assert text not in TEXT


def test_access_log_quotes_nothing_that_may_hold_a_key() -> None:
    for name in (".path", "Override", ".authorizer", ".error.m", "userAgent", "Key"):
        assert name not in API["AccessLogSetting"]["Format"]


@openapi.each_operation
def test_operation_is_one_block_that_dashboard_and_outputs_name(
    operation: openapi.Operation,
) -> None:
    name, start = operation.block, f"\n  # -- {operation.id} --"
    block = TEXT.partition(start)[2].partition("\n  # -- ")[0]
    for each in openapi.OPERATIONS:
        for kind in BLOCK:
            resource = each.block + kind
            assert (resource in block) is (each == operation), resource
    assert f"Alarms: [!Ref {name}DeploymentAlarm]" in block
    assert f"{name}LogGroup" in str(PRODUCTION["Outputs"]["LogGroups"])
    assert f"{name}Function:live" in str(PRODUCTION["Resources"]["Dashboard"])


def test_heartbeat_alarms_of_staging_send_mail() -> None:
    """In production a composite alarm sends it: test_alarms.py."""
    for name, alarm in properties_by_name(STAGING, "AWS::CloudWatch::Alarm").items():
        actions = ["AlarmTopic"] if name.endswith("HeartbeatAlarm") else None
        assert alarm.get("AlarmActions") == alarm.get("OKActions") == actions


def test_version_description_names_every_parameter_that_the_settings_use() -> None:
    """A changed description makes a new version, which `live` then leads to."""
    settings = dict(TEMPLATE["Globals"]["Function"])
    del settings["DeploymentPreference"], settings["ReservedConcurrentExecutions"]

    for parameter in TEMPLATE["Parameters"]:
        is_used = str({"Ref": parameter}) in str(settings)
        functions = properties_by_name(TEMPLATE, "AWS::Serverless::Function")
        for function in functions.values():
            description = str(function["VersionDescription"])
            assert (f"${{{parameter}}}" in description) is is_used, parameter


@pytest.mark.parametrize("kind", API["GatewayResponses"])
def test_gateway_answers_with_the_error_object(kind: str) -> None:
    response = API["GatewayResponses"][kind]
    text = response["ResponseTemplates"]["application/json"]
    headers = {"Content-Type": "application/json"}
    for name, value in response["ResponseParameters"]["Headers"].items():
        headers[name] = value.strip("'")
    status = json.loads(text)["status"]
    path = "/unknown" if status == 404 else "/pets"

    openapi.check(openapi.find("POST", path), status, headers, text)
    # A default has no status of its own: it would change that of every other type.
    own_status = None if kind.startswith("DEFAULT_") else status
    assert response.get("StatusCode") == own_status


def test_firewall_answers_above_a_limit_with_the_error_object() -> None:
    response = FIREWALL["Rules"][0]["Action"]["Block"]["CustomResponse"]
    body = FIREWALL["CustomResponseBodies"][response["CustomResponseBodyKey"]]
    headers = {"Content-Type": "application/json"}
    for header in response["ResponseHeaders"]:
        headers[header["Name"]] = header["Value"]

    openapi.check(openapi.find("POST", "/pets"), 429, headers, body["Content"])
    assert response["ResponseCode"] == 429


def test_firewall_limits_each_key_before_it_lets_it_through() -> None:
    _, per_key, rule = sorted(FIREWALL["Rules"], key=lambda each: each["Priority"])
    # However often the scheme's case and spaces change, it is one key.
    for transformation in ("COMPRESS_WHITE_SPACE", "LOWERCASE"):
        assert transformation in str(per_key)
    pattern = rule["Statement"]["RegexMatchStatement"]["RegexString"]
    # The contract suite sends keys of staging.
    assert re.search(pattern, f"Bearer animal_live_{'0' * 38}")
