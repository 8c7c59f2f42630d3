"""Deployments and rollbacks: which commit the stage then runs, and which are refused."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from ops.artifacts import store
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


def test_passing_deployment_becomes_last_good(
    account: Account,
) -> None:
    deploy(account.stage, pack("zebra"))
    assert account.calls == [SAM, SUITE]
    assert account.runs() == ("zebra", "zebra")


def test_stack_policy_keeps_the_tables(
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


def test_functions_get_the_deployment_time(
    deployed: Account,
) -> None:
    stack = deployed.client("cloudformation").get_template(
        StackName=deployed.stage.stack
    )
    variables = stack["TemplateBody"]["Globals"]["Function"]["Environment"]["Variables"]
    assert variables == {"DEPLOYMENT": deployed.stage.outputs()["Deployed"]}


def test_staging_is_checked_with_the_whole_suite(
    deployed: Account, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(Stage, "stack", deployed.stage.stack)
    (tmp_path / "COMMIT").write_text("zebra")
    check_contract(replace(deployed.stage, name="staging"), tmp_path)
    assert deployed.calls == [["suite", "zebra", "-rfE"]]


def test_suites_key_is_masked_and_expires_in_an_hour(
    account: Account, capsys: pytest.CaptureFixture[str]
) -> None:
    deploy(account.stage, pack("zebra"))
    assert "::add-mask::animal_test_" in capsys.readouterr().out
    [record] = account.stage.keys().all()
    assert 0 < (record.expires or 0) - record.created <= 3600


def test_failing_deployment_returns_without_a_canary(
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


def test_failed_return_says_what_runs(
    deployed: Account,
) -> None:
    deployed.failing |= {"newer", "zebra"}
    with pytest.raises(StageError) as error:
        deploy(deployed.stage, pack("newer"))
    assert str(error.value) == (
        "the contract suite failed (pytest's status 1): see above\n"
        "production runs zebra"
    )


def test_failing_rollback_leaves_no_commit_to_return_to(deployed: Account) -> None:
    deploy(deployed.stage, pack("newer"))
    deployed.failing |= {"zebra", "third"}
    with pytest.raises(StageError, match="zebra, but last-good is empty; next, to "):
        rollback(deployed.stage, "zebra")
    with pytest.raises(StageError, match="runs third, but last-good is empty; next, "):
        deploy(deployed.stage, pack("third"))
    assert deployed.runs() == ("third", "")


def test_failed_redeployment_does_not_return(deployed: Account) -> None:
    deployed.failing.add("zebra")
    with pytest.raises(StageError, match="production runs zebra"):
        deploy(deployed.stage, pack("zebra"))
    assert deployed.calls == [SAM, SUITE]


def test_canary_gets_read_only_requests(
    deployed: Account,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    suites = Mock(side_effect=[MemoryError("full"), 2, 1, 0])
    monkeypatch.setattr("ops.programs.run_suite", suites)
    monkeypatch.setattr("time.sleep", lambda _: None)
    deployed.process.poll.side_effect = [None, None, None, 0]
    deploy(deployed.stage, pack("newer"))
    canary = ("-qq", "--no-summary", "-m", "smoke_read_only")
    check = ("-rfE", "-m", "smoke_read_only")
    assert [call.args[3:] for call in suites.mock_calls] == [*[canary] * 3, check]
    assert deployed.runs() == ("newer", "newer")
    printed = capsys.readouterr().out
    assert "sending requests to the canary failed: full\n" in printed
    assert "sent 1 rounds of requests to the canary\n" in printed  # 2 is a usage error


def test_canary_without_requests_is_a_warning(
    deployed: Account, capsys: pytest.CaptureFixture[str]
) -> None:
    deploy(deployed.stage, pack("newer"))
    assert "! the canary got no requests" in capsys.readouterr().out


@pytest.mark.parametrize("running", ["newer", "zebra"])
def test_interruption_says_what_runs(
    running: str,
    deployed: Account,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Ctrl-C, or *Cancel* on GitHub, comes while sam runs or during the check."""
    program = {"newer": "run_suite", "zebra": "sam"}[running]
    monkeypatch.setattr(f"ops.programs.{program}", Mock(side_effect=KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        deploy(deployed.stage, pack("newer"))
    assert f"\nproduction runs {running}" in capsys.readouterr().out


def test_failure_after_the_check_says_what_runs(deployed: Account) -> None:
    deployed.answers["ListStackResources"] = ConnectionError("no route")
    with pytest.raises(
        StageError, match=r"^no route\n.* newer, but last-good is zebra; "
    ):
        deploy(deployed.stage, pack("newer"))
    assert deployed.runs() == ("newer", "zebra")


def test_older_commit_needs_allow_older(
    deployed: Account,
) -> None:
    deployed.is_older.return_value = True
    with pytest.raises(StageError, match="newer is older than zebra"):
        deploy(deployed.stage, pack("newer"))
    deployed.is_older.assert_called_with("newer", "zebra")
    assert deployed.calls == []
    deploy(deployed.stage, pack("newer"), allow_older=True)
    assert deployed.runs() == ("newer", "newer")


def test_commit_that_sam_refused_can_be_rolled_out_later(
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


def test_rollback_during_a_check_is_not_undone(
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


def test_moved_alias_keeps_last_good(
    deployed: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Stage, "misrouted_aliases", lambda _: ["live points to 6"])
    with pytest.raises(StageError, match="live points to 6"):
        deploy(deployed.stage, pack("newer"))
    assert deployed.runs() == ("newer", "zebra")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda content: content[:-100], "not a zip file"),
        (lambda content: content.replace(b"COMMIT", b"COMMON"), "'COMMIT'"),
        (lambda content: content.replace(b"suite/", b"stage/"), "it lacks suite"),
        (lambda content: content[:36] + b"?" + content[37:], "while decompressing"),
    ],
)
def test_damaged_artifact_is_not_stored(
    damage: Callable[[bytes], bytes], message: str, account: Account
) -> None:
    artifact = pack("zebra")
    artifact.write_bytes(damage(artifact.read_bytes()))
    with pytest.raises(StageError, match=message):
        deploy(account.stage, artifact)
    deploy(account.stage, pack("zebra"))
    assert account.runs() == ("zebra", "zebra")


def test_second_artifact_of_a_commit_is_refused(deployed: Account) -> None:
    artifact = pack("zebra")
    artifact.write_bytes(b"others" + artifact.read_bytes())
    with pytest.raises(StageError, match="a different artifact of zebra"):
        deploy(deployed.stage, artifact)
    assert deployed.calls == []
    deploy(deployed.stage, pack("zebra"))  # the same bytes


def test_rollback_without_commit_lists_newest_first(
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


def test_unknown_or_ambiguous_commit_is_refused(
    deployed: Account,
) -> None:
    with pytest.raises(StageError, match="0 stored artifacts have a commit"):
        rollback(deployed.stage, "1a2b")
    store(deployed.stage, "zoo", b"")
    with pytest.raises(StageError, match="2 stored artifacts have a commit"):
        rollback(deployed.stage, "z")
