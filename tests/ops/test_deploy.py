"""Deployments and rollbacks: which commit the stage then runs, and which are refused."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from ops.artifacts import store, write_last_good
from ops.deploy import check_contract, deploy, rollback
from ops.stage import Stage, StageError
from tests.support.aws import Account, pack

SAM = [
    "sam",
    "deploy",
    "--config-env=production",
    "--s3-bucket=artifacts",
    "--role-arn=role/execution",
    "--parameter-overrides",
    'MemorySize="0"',
    "Stage=production",
    "MemorySize=1024",
    "PermissionsBoundary=policy/boundary",
    "AlarmEmail=me@example.com",
]
SUITE = ["suite", "zebra", "-rfE", "-m", "smoke_read_only"]


def test_deployment_that_passes_the_contract_suite_is_marked_as_last_good(
    account: Account,
) -> None:
    deploy(account.stage, pack("zebra"))
    assert account.calls == [SAM, SUITE]
    assert account.runs() == ("zebra", "zebra")


def test_stack_policy_denies_replacing_or_deleting_the_tables(
    deployed: Account,
) -> None:
    policy = deployed.client("cloudformation").get_stack_policy(
        StackName=deployed.stage.stack
    )
    assert json.loads(policy["StackPolicyBody"])["Statement"][1] == {
        "Effect": "Deny",
        "Principal": "*",
        "Action": ["Update:Replace", "Update:Delete"],
        "Resource": [
            "LogicalResourceId/AnimalsTable",
            "LogicalResourceId/ApiKeysTable",
        ],
    }


def test_deployed_stack_is_protected_from_deletion(account: Account) -> None:
    protections = []
    account.client("cloudformation").meta.events.register(
        "provide-client-params.cloudformation.UpdateTerminationProtection",
        lambda params, **_: protections.append(params["EnableTerminationProtection"]),
    )
    deploy(account.stage, pack("zebra"))
    assert protections == [True]


def test_functions_get_the_deployment_time_as_an_environment_variable(
    deployed: Account,
) -> None:
    stack = deployed.client("cloudformation").get_template(
        StackName=deployed.stage.stack
    )
    variables = stack["TemplateBody"]["Globals"]["Function"]["Environment"]["Variables"]
    assert variables == {"DEPLOYMENT": deployed.stage.outputs()["Deployed"]}


def test_staging_is_checked_with_the_whole_contract_suite(
    deployed: Account, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(Stage, "stack", deployed.stage.stack)
    (tmp_path / "COMMIT").write_text("zebra")
    check_contract(replace(deployed.stage, name="staging"), tmp_path)
    assert deployed.calls == [["suite", "zebra", "-rfE"]]


def test_api_key_for_the_contract_suite_is_masked_in_the_log_and_expires_in_an_hour(
    account: Account, capsys: pytest.CaptureFixture[str]
) -> None:
    deploy(account.stage, pack("zebra"))
    assert "::add-mask::animal_test_" in capsys.readouterr().out
    [record] = account.stage.keys().all()
    assert 0 < (record.expires or 0) - record.created <= 3600


def test_deployment_that_fails_the_contract_suite_is_rolled_back_without_a_canary(
    deployed: Account,
) -> None:
    deployed.failing.add("newer")
    with pytest.raises(StageError) as error:
        deploy(deployed.stage, pack("newer"))
    assert str(error.value) == (
        "newer failed: the contract suite failed (pytest's status 1): see above\n"
        "production runs zebra"
    )
    assert deployed.calls[-2:] == [[*SAM, "Canary=false"], SUITE]
    assert deployed.runs() == ("zebra", "zebra")


def test_failed_rollback_reports_the_running_commit_and_the_next_command(
    deployed: Account,
) -> None:
    deployed.failing |= {"newer", "zebra"}
    with pytest.raises(StageError) as error:
        deploy(deployed.stage, pack("newer"))
    assert str(error.value) == (
        "newer failed: the contract suite failed (pytest's status 1): see above\n"
        "the rollback failed: "
        "zebra failed: the contract suite failed (pytest's status 1): see above\n"
        "production runs zebra; next: animal-store rollback production zebra"
    )


def test_rollback_that_fails_the_contract_suite_does_not_change_the_last_good_commit(
    deployed: Account,
) -> None:
    deploy(deployed.stage, pack("newer"))
    deployed.failing.add("zebra")
    with pytest.raises(StageError, match=r"status 1\).*\nproduction runs zebra$"):
        rollback(deployed.stage, "zebra")
    assert deployed.runs() == ("zebra", "newer")


@pytest.mark.parametrize("last_good", ["zebra", "older"])
def test_failed_redeployment_of_the_running_commit_is_not_rolled_back(
    deployed: Account, last_good: str
) -> None:
    write_last_good(deployed.stage, last_good)
    deployed.failing.add("zebra")
    with pytest.raises(StageError, match=r"production runs zebra$"):
        deploy(deployed.stage, pack("zebra"))
    assert deployed.calls == [SAM, SUITE]


def test_read_only_contract_tests_run_during_a_canary_and_their_failures_are_ignored(
    deployed: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    suites = Mock(side_effect=[MemoryError, 1, 0])
    monkeypatch.setattr("ops.programs.run_suite", suites)
    monkeypatch.setattr("time.sleep", lambda _: None)
    deployed.process.poll.side_effect = [None, None, 0]
    deploy(deployed.stage, pack("newer"))
    canary = ("-qq", "--no-summary", "-m", "smoke_read_only")
    check = ("-rfE", "-m", "smoke_read_only")
    assert [call.args[3:] for call in suites.mock_calls] == [canary, canary, check]
    assert deployed.runs() == ("newer", "newer")


def test_older_commit_is_deployed_only_with_the_allow_older_option(
    deployed: Account,
) -> None:
    deployed.is_older.return_value = True
    with pytest.raises(StageError, match="newer is older than zebra"):
        deploy(deployed.stage, pack("newer"))
    deployed.is_older.assert_called_with("newer", "zebra")
    assert deployed.calls == []
    deploy(deployed.stage, pack("newer"), allow_older=True)
    assert deployed.runs() == ("newer", "newer")


def test_commit_whose_sam_deploy_failed_is_not_running_and_can_be_deployed_by_rollback(
    deployed: Account,
) -> None:
    deployed.process.wait.return_value = 1
    with pytest.raises(StageError) as error:
        deploy(deployed.stage, pack("newer"))
    assert str(error.value) == (
        "newer failed: sam deploy failed: animal-store-production is CREATE_COMPLETE\n"
        "production runs zebra"
    )
    deployed.process.wait.return_value = 0
    rollback(deployed.stage, "new")  # the first digits are enough
    assert deployed.runs() == ("newer", "newer")


def test_rollback_by_another_operator_while_the_contract_suite_runs_is_not_undone(
    deployed: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_suite = deployed.run_suite

    def roll_back_meanwhile(*_: Any) -> int:
        monkeypatch.setattr("ops.programs.run_suite", run_suite)
        rollback(deployed.stage, "zebra")
        return 0

    monkeypatch.setattr("ops.programs.run_suite", roll_back_meanwhile)
    with pytest.raises(StageError, match="production runs zebra"):
        deploy(deployed.stage, pack("newer"))
    assert deployed.runs() == ("zebra", "zebra")


def test_commit_is_not_marked_as_last_good_if_an_alias_points_to_another_version(
    deployed: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Stage, "misrouted_aliases", lambda _: ["live points to 6"])
    with pytest.raises(StageError, match="live points to 6"):
        deploy(deployed.stage, pack("newer"))
    assert deployed.runs() == ("newer", "zebra")


def test_different_artifact_of_a_stored_commit_is_refused(deployed: Account) -> None:
    artifact = pack("zebra")
    artifact.write_bytes(b"others" + artifact.read_bytes())
    with pytest.raises(StageError, match="a different artifact of zebra"):
        deploy(deployed.stage, artifact)
    assert deployed.calls == []
    deploy(deployed.stage, pack("zebra"))  # the same bytes


def test_rollback_without_a_commit_lists_the_stored_artifacts_newest_first(
    deployed: Account, capsys: pytest.CaptureFixture[str]
) -> None:
    monday = datetime(2026, 11, 2, tzinfo=UTC)
    deployed.answers["ListObjectsV2"] = {
        "Contents": [
            {"Key": "artifacts/ant.zip", "LastModified": monday},
            {"Key": "artifacts/ape.zip", "LastModified": monday.replace(day=3)},
        ]
    }
    rollback(deployed.stage)
    assert capsys.readouterr().out.endswith(
        "2026-11-03 00:00 UTC ape\n2026-11-02 00:00 UTC ant\n"
    )


def test_rollback_to_an_unknown_or_ambiguous_commit_is_refused(
    deployed: Account,
) -> None:
    with pytest.raises(StageError, match="0 stored artifacts have a commit"):
        rollback(deployed.stage, "1a2b")
    store(deployed.stage, "zoo", b"")
    with pytest.raises(StageError, match="2 stored artifacts have a commit"):
        rollback(deployed.stage, "z")
