"""template.yaml has a block for each operation, its safeguards, and no other way in."""

import json
import re

import pytest
import yaml

from tests.support import openapi
from tests.support.stack import block_of, parameters, properties_by_name, staged
from tools import ROOT
from tools.local.template import read

TEXT = (ROOT / "template.yaml").read_text()
TEMPLATE = read(ROOT / "template.yaml")
# unit/test_openapi.py compares each stage's limits with the document.
GIVEN = {
    "PermissionsBoundary": "boundary",
    "DomainName": "api.example.com",
    "LogRetentionDays": "90",
    "ThrottlingRate": "500",
    "ThrottlingBurst": "1000",
}
PRODUCTION, STAGING = staged(**GIVEN), staged("staging", **GIVEN)
API = PRODUCTION["Resources"]["Api"]["Properties"]
FIREWALL = PRODUCTION["Resources"]["WebAcl"]["Properties"]
BLOCK = (
    "Function",
    "Role",
    "LogGroup",
    "DeploymentAlarm",
    "FastBurnAlarm",
    "SlowBurnAlarm",
    "RecentFailuresAlarm",
    "ThreeFailuresAlarm",
    "HeartbeatAlarm",
)
SAFEGUARDS = yaml.safe_load((ROOT / "tests/template/safeguards.yaml").read_text())


@pytest.mark.parametrize("place", SAFEGUARDS)
def test_safeguards_are_there(place: str) -> None:
    safeguards = SAFEGUARDS[place]
    settings = []
    for stack in (PRODUCTION, STAGING):
        for name, resource in stack["Resources"].items():
            if place in {name, resource["Type"]}:
                members = resource | resource.get("Properties", {})
                settings.append({member: members.get(member) for member in safeguards})

    assert settings
    assert settings == [safeguards] * len(settings)


def test_plain_sam_deploy_has_the_parameters_of_staging() -> None:
    role = {"ApiGatewayLoggingRole": "true"}
    assert parameters("default") == parameters("staging") | role


def test_plain_sam_deploy_sets_the_role_for_access_logs_before_the_api() -> None:
    resources = staged("default")["Resources"]
    assert resources["Api"]["Metadata"] == {"After": "ApiGatewayAccount"}
    account = resources["ApiGatewayAccount"]
    assert account["Properties"] == {"CloudWatchRoleArn": "LoggingRole.Arn"}
    for resource in (account, resources["LoggingRole"]):
        assert resource["DeletionPolicy"] == "RetainExceptOnCreate"
    assert "LoggingRole" not in STAGING["Resources"]


def test_functions_end_before_the_gateway_gives_up_and_a_canary_comes_first() -> None:
    shared = PRODUCTION["Globals"]["Function"]
    assert shared["Timeout"] < 29
    assert shared["DeploymentPreference"]["Enabled"] == "true"
    assert shared["DeploymentPreference"]["Type"] == "Canary10Percent5Minutes"


def test_no_stage_uses_a_zip_that_somebody_else_put_into_the_bucket() -> None:
    assert (ROOT / "samconfig.toml").read_text().count("\nforce_upload = true\n") == 2


def test_the_text_has_nothing_that_undoes_a_safeguard() -> None:
    for name in (
        "FunctionUrl",  # these six are other ways in, or change who is let in
        "Lambda::Url",
        "HttpApi",
        "Auth:",
        "DefinitionBody",
        "DefinitionUri",
        "AWS::IAM::Policy",  # test_roles.py reads roles alone
        "AWS::IAM::ManagedPolicy",
        "AWS::Lambda::Permission",
        "AWS::SNS::TopicPolicy",
        "ApplicationLogLevel",  # drops lines, which are metrics too
    ):
        assert name not in TEXT


def test_the_access_log_quotes_nothing_that_a_key_may_be_in() -> None:
    for name in (".path", "Override", ".authorizer", ".error.m", "userAgent", "Key"):
        assert name not in API["AccessLogSetting"]["Format"]


@openapi.each_operation
def test_an_operation_is_one_block_that_dashboard_and_outputs_name(
    operation: openapi.Operation,
) -> None:
    name, start = block_of(operation.id), f"\n  # -- {operation.id} --"

    block = TEXT.partition(start)[2].partition("\n  # -- ")[0]

    for each in openapi.OPERATIONS:
        for kind in BLOCK:
            resource = f"{block_of(each.id)}{kind}"
            assert (resource in block) is (each == operation), resource
    assert f"Alarms: [!Ref {name}DeploymentAlarm]" in block
    assert f"{name}LogGroup" in str(PRODUCTION["Outputs"]["LogGroups"])
    assert f"{name}Function:live" in str(PRODUCTION["Resources"]["Dashboard"])
    function = PRODUCTION["Resources"][f"{name}Function"]["Properties"]
    heartbeat = function["Events"]["Heartbeat"]["Properties"]
    assert heartbeat["Schedule"] == "rate(5 minutes)"


def test_staging_mails_what_its_heartbeats_say() -> None:
    """Production's composite alarm speaks for them: test_alarms.py."""
    for name, alarm in properties_by_name(STAGING, "AWS::CloudWatch::Alarm").items():
        actions = ["AlarmTopic"] if name.endswith("HeartbeatAlarm") else None
        assert alarm.get("AlarmActions") == alarm.get("OKActions") == actions


@pytest.mark.parametrize("parameter", TEMPLATE["Parameters"])
def test_a_changed_parameter_makes_new_versions(parameter: str) -> None:
    """A version is replaced when its description changes, which names parameters."""
    settings = dict(TEMPLATE["Globals"]["Function"])
    del settings["DeploymentPreference"], settings["ReservedConcurrentExecutions"]
    is_used = str({"Ref": parameter}) in str(settings)

    for function in properties_by_name(TEMPLATE, "AWS::Serverless::Function").values():
        described = f"${{{parameter}}}" in str(function["VersionDescription"])
        assert described is is_used


def check_error(status: int, headers: dict[str, str], text: str) -> None:
    """Compare an error that no function makes with openapi.yaml; a 404 is for an unknown route."""
    path = "/unknown" if status == 404 else "/pets"
    headers |= {"Content-Type": "application/json"}
    openapi.check(openapi.find("POST", path), status, headers, text)


@pytest.mark.parametrize("kind", API["GatewayResponses"])
def test_an_error_of_the_gateway_is_the_error_object(kind: str) -> None:
    response = API["GatewayResponses"][kind]
    text = response["ResponseTemplates"]["application/json"]
    status = json.loads(text)["status"]
    headers = response["ResponseParameters"]["Headers"]

    check_error(status, {name: headers[name].strip("'") for name in headers}, text)
    # A default has no status of its own: it would change that of every other type.
    own_status = None if kind.startswith("DEFAULT_") else status
    assert response.get("StatusCode") == own_status


def test_an_error_of_the_firewall_is_the_error_object() -> None:
    for each in (FIREWALL["DefaultAction"], FIREWALL["Rules"][0]["Action"]):
        response = each["Block"]["CustomResponse"]
        text = FIREWALL["CustomResponseBodies"][response["CustomResponseBodyKey"]]
        headers = {pair["Name"]: pair["Value"] for pair in response["ResponseHeaders"]}
        check_error(response["ResponseCode"], headers, text["Content"])


def test_another_spelling_of_the_scheme_is_no_other_key_to_the_firewall() -> None:
    _, per_key, _ = FIREWALL["Rules"]
    for transformation in ("COMPRESS_WHITE_SPACE", "LOWERCASE"):
        assert transformation in str(per_key)


@pytest.mark.parametrize("environment", ["live", "test"])
def test_the_firewall_lets_keys_through(environment: str) -> None:
    # After the limits, or they would never apply.
    *_, rule = sorted(FIREWALL["Rules"], key=lambda each: each["Priority"])
    pattern = rule["Statement"]["RegexMatchStatement"]["RegexString"]
    header = f"bEARER  animal_{environment}_{'0' * 38} "

    assert re.search(pattern, header)
    assert not re.search(pattern, f"{header}x")
