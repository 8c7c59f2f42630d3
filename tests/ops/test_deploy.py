"""Deployments and rollbacks: which commit the stage then runs, and which are refused."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from ops.artifacts import store
from ops.deploy import check_contract, deploy, issue_check_key, rollback
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
WITHOUT_CANARY = [[*SAM, "Canary=false"], SUITE]


def test_commit_that_passes_the_suite_becomes_last_good(account: Account) -> None:
    deploy(account.stage, pack("zebra"))
    assert account.calls == WITHOUT_CANARY
    assert account.runs() == ("zebra", "zebra")


def test_stack_policy_keeps_the_tables(deployed: Account) -> None:
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


def test_functions_get_the_deployment_time(deployed: Account) -> None:
    stack = deployed.client("cloudformation").get_template(
        StackName=deployed.stage.stack
    )
    variables = stack["TemplateBody"]["Globals"]["Function"]["Environment"]["Variables"]
    assert variables == {"DEPLOYMENT": deployed.stage.outputs()["Deployed"]}
    assert ":" in variables["DEPLOYMENT"]  # it has the time of day


def test_staging_is_checked_with_the_whole_contract_suite(deployed: Account) -> None:
    staging = Mock(wraps=deployed.stage)
    staging.name = "staging"
    deployed.run_suite.side_effect = [0]
    check_contract(staging, Path())
    assert deployed.run_suite.call_args.args[3:] == ("-rfE",)


def test_key_of_the_contract_suite_is_masked_and_lasts_an_hour(
    deployed: Account,
) -> None:
    key = issue_check_key(deployed.stage)
    assert deployed.printed() == f"::add-mask::{key}\n"
    for record in deployed.stage.keys().all():
        assert 0 < (record.expires or 0) - record.created <= 3600


@pytest.mark.parametrize(
    ("commit", "failing", "afterwards"),
    [
        ("newer", {"newer"}, WITHOUT_CANARY),
        ("newer", {"newer", "zebra"}, WITHOUT_CANARY),
        ("zebra", {"zebra"}, []),
    ],
)
def test_failed_deployment_returns_to_another_last_good(
    commit: str,
    failing: set[str],
    afterwards: list[list[str]],
    deployed: Account,
) -> None:
    deployed.failing |= failing
    with pytest.raises(StageError, match=r"suite failed \(pytest's status 1\)"):
        deploy(deployed.stage, pack(commit))
    assert deployed.calls[2:] == afterwards
    assert deployed.runs() == ("zebra", "zebra")
    printed = deployed.printed()
    assert f"{commit} failed: the contract suite failed" in printed
    assert printed.endswith("\nproduction runs zebra\n")


def test_failing_rollback_leaves_no_commit_to_return_to(deployed: Account) -> None:
    deploy(deployed.stage, pack("newer"))
    deployed.failing |= {"zebra", "third"}
    with pytest.raises(StageError):
        rollback(deployed.stage, "zebra")
    message = (
        "runs zebra\n! it may not have passed its check: last-good is empty; next, "
    )
    assert message in deployed.printed()
    with pytest.raises(StageError):
        deploy(deployed.stage, pack("third"))
    assert deployed.runs() == ("third", "")


@pytest.mark.parametrize("statuses", [[], [2, 1, 0]])
def test_canary_gets_read_only_requests(
    statuses: list[int], deployed: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployed.run_suite.side_effect = [*statuses, 0]
    monkeypatch.setattr("time.sleep", lambda _: None)
    deployed.process.poll.side_effect = [*[None] * len(statuses), 0]
    deploy(deployed.stage, pack("newer"))
    canary = ("-qq", "--no-summary", "-m", "smoke_read_only")
    rounds = [call.args[3:] for call in deployed.run_suite.mock_calls[1:-1]]
    assert rounds == [canary] * len(statuses)
    # Even without requests, the `with` in ops/deploy.py waits until sam has ended.
    deployed.process.__exit__.assert_called()


@pytest.mark.parametrize(
    ("program", "last_words"),
    [
        ("sam", "production runs zebra\n"),
        ("run_suite", "to go back: animal-store rollback production COMMIT\n"),
    ],
)
def test_interrupted_deployment_prints_what_the_stage_runs(
    program: str, last_words: str, deployed: Account
) -> None:
    """Ctrl-C, or *Cancel* on GitHub, comes while sam runs or during the check."""
    getattr(deployed, program).side_effect = KeyboardInterrupt
    with pytest.raises(KeyboardInterrupt):
        deploy(deployed.stage, pack("newer"))
    assert deployed.printed().endswith(last_words)


@pytest.mark.parametrize(
    "aliases",
    [
        Mock(return_value=["live points to 6"]),
        Mock(side_effect=StageError("someone has changed the stack")),
    ],
)
def test_moved_aliases_keep_a_commit_from_being_last_good(
    aliases: Mock,
    deployed: Account,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Stage, "misrouted_aliases", aliases)
    with pytest.raises(StageError, match="someone has changed"):
        deploy(deployed.stage, pack("newer"))
    assert deployed.runs() == ("newer", "zebra")
    message = "is UPDATE_COMPLETE\nproduction runs newer\n! it may not have passed its check: "
    assert message in deployed.printed()


def test_older_commit_needs_allow_older(deployed: Account) -> None:
    deployed.is_older.return_value = True
    with pytest.raises(StageError, match="newer is older than zebra"):
        deploy(deployed.stage, pack("newer"))
    deployed.is_older.assert_called_with("newer", "zebra")
    assert deployed.calls == []
    deploy(deployed.stage, pack("newer"), allow_older=True)
    assert deployed.runs() == ("newer", "newer")


def test_rollback_can_deploy_a_commit_that_sam_refused_earlier(
    deployed: Account,
) -> None:
    deployed.process.returncode = 1
    with pytest.raises(StageError, match=r"sam deploy failed: .* is CREATE_COMPLETE"):
        deploy(deployed.stage, pack("newer"))
    assert deployed.calls == [SAM]
    assert deployed.runs() == ("zebra", "zebra")
    deployed.process.returncode = 0
    rollback(deployed.stage, "new")  # the first digits are enough
    assert deployed.runs() == ("newer", "newer")


def test_deploy_does_not_undo_a_rollback_during_its_suite(deployed: Account) -> None:
    run_suite = deployed.run_suite.side_effect

    def roll_back_meanwhile(*_: Any) -> int:
        deployed.run_suite.side_effect = run_suite
        rollback(deployed.stage, "zebra")
        return 0

    deployed.run_suite.side_effect = roll_back_meanwhile
    with pytest.raises(StageError, match="next: animal-store status production"):
        deploy(deployed.stage, pack("newer"))
    assert deployed.runs() == ("zebra", "zebra")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b"PK\5\6", b"", "not a zip file"),
        (b"COMMIT", b"COMMON", "no item named 'COMMIT'"),
        (b"suite/", b"stage/", "no item named 'suite/pyproject.toml'"),
        (b"JM*J", b"JM*K", "Bad CRC-32 for file 'COMMIT'"),  # in the compressed `zebra`
    ],
)
def test_damaged_artifact_is_not_stored(
    old: bytes, new: bytes, message: str, account: Account
) -> None:
    artifact = pack("zebra")
    artifact.write_bytes(artifact.read_bytes().replace(old, new))
    with pytest.raises(StageError, match=message):
        deploy(account.stage, artifact)
    deploy(account.stage, pack("zebra"))
    assert account.runs() == ("zebra", "zebra")


def test_different_artifact_of_a_stored_commit_is_refused(deployed: Account) -> None:
    artifact = pack("zebra")
    artifact.write_bytes(b"others" + artifact.read_bytes())
    with pytest.raises(StageError, match="zip is stored only once"):
        deploy(deployed.stage, artifact)
    assert deployed.calls == []
    deploy(deployed.stage, pack("zebra"))  # the same bytes


def test_rollback_without_commit_lists_artifacts_newest_first(
    deployed: Account,
) -> None:
    monday = datetime(2026, 11, 2, tzinfo=UTC)
    deployed.answers["ListObjectsV2"] = {
        "Contents": [
            {"Key": "artifacts/ant.zip", "LastModified": monday},
            {"Key": "artifacts/ape.zip", "LastModified": monday.replace(day=3)},
        ]
    }
    rollback(deployed.stage)
    assert deployed.printed().endswith(
        "2026-11-03 00:00 UTC ape\n2026-11-02 00:00 UTC ant\n"
    )


def test_unknown_or_ambiguous_commit_is_refused(deployed: Account) -> None:
    with pytest.raises(StageError, match="0 stored artifacts have a commit"):
        rollback(deployed.stage, "1a2b")
    store(deployed.stage, "zoo", b"")
    with pytest.raises(StageError, match="2 stored artifacts have a commit"):
        rollback(deployed.stage, "z")
