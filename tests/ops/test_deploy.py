"""What a stage runs after a deployment or a rollback, and what is refused."""

from dataclasses import replace
from subprocess import CalledProcessError
from threading import Semaphore
from unittest.mock import Mock

import pytest
from botocore.exceptions import ClientError

from ops.deploy import (
    STACK_POLICY,
    check_contract,
    deploy,
    last_good,
    rollback,
)
from ops.stage import SAM, DeploymentError, Stage
from tests.support.aws import Account, pack


def test_what_is_attested_and_passes_is_what_a_failure_goes_back_to(
    account: Account,
) -> None:
    deploy(account.stage, pack("zebra"))
    assert account.runs() == ("zebra", "zebra")
    verified, deployed, checked = account.started
    assert verified.startswith("gh attestation verify /")
    assert verified.endswith(
        "/artifact.zip --repo octo/animals "
        "--signer-workflow octo/animals/.github/workflows/deploy.yml "
        "--source-ref refs/heads/main --source-digest zebra --deny-self-hosted-runners"
    )
    assert deployed.endswith(
        'MemorySize="0" Stage=production MemorySize=1024 '
        "PermissionsBoundary=policy/boundary AlarmEmail=me@example.com"
    )
    assert checked.endswith("tests/contract -rfE -m smoke_read_only")
    policy = account.client("cloudformation").get_stack_policy(
        StackName="animal-store-production"
    )
    assert policy["StackPolicyBody"] == STACK_POLICY


def test_staging_is_asked_the_whole_suite(
    live: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Stage, "stack", live.stage.stack)
    check_contract(replace(live.stage, name="staging"))
    assert live.started[-1].endswith("tests/contract -rfE")


def test_the_suite_has_no_credentials_and_a_workflow_masks_its_key_of_an_hour(
    account: Account, capsys: pytest.CaptureFixture[str]
) -> None:
    deploy(account.stage, pack("zebra"))
    key = account.environment["CONTRACT_API_KEY"]
    assert f"::add-mask::{key}\n" in capsys.readouterr().out
    assert len(account.environment) == 3
    [record] = account.stage.keys().all()
    assert 0 < (record.expires or 0) - record.created <= 3600


def test_what_fails_its_check_is_taken_back_at_once(
    live: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    checks = Mock(side_effect=[OSError("no network"), None])
    monkeypatch.setattr("ops.deploy.check_contract", checks)
    with pytest.raises(DeploymentError, match="no network\nproduction runs zebra"):
        deploy(live.stage, pack("newer"))
    assert live.runs() == ("zebra", "zebra")
    assert "Canary=false" in live.started[-1]


def test_a_rollback_stays_even_if_its_check_fails(live: Account) -> None:
    deploy(live.stage, pack("newer"))
    live.failing.add("zebra")
    with pytest.raises(DeploymentError, match=r"status 1$"):
        rollback(live.stage, "zebra")
    assert live.runs() == ("zebra", "newer")


def test_a_first_deployment_stays_even_if_its_check_fails(account: Account) -> None:
    account.failing.add("zebra")
    with pytest.raises(DeploymentError, match=r"status 1$"):
        deploy(account.stage, pack("zebra"))


def test_a_canary_gets_requests_that_only_read_for_as_long_as_it_takes(
    live: Account,
) -> None:
    live.asked = Semaphore(0)
    deploy(live.stage, pack("newer"))
    assert str(live.started).count("--no-summary -m smoke_read_only") > 1


@pytest.mark.parametrize(("program", "message"), [("git", "older"), ("gh", "'gh'")])
def test_what_is_older_or_not_attested_changes_nothing(
    live: Account, program: str, message: str
) -> None:
    live.failing ^= {program}
    with pytest.raises((CalledProcessError, DeploymentError), match=message):
        deploy(live.stage, pack("newer"))
    assert live.runs() == ("zebra", "zebra")
    assert "merge-base --is-ancestor newer zebra" in str(live.started)


def test_what_runs_stays_if_it_cannot_be_deployed_again(live: Account) -> None:
    live.failing.add("gh")
    with pytest.raises(CalledProcessError):
        deploy(live.stage, pack("zebra"))
    assert str(live.started).count(f"{SAM} deploy") == 1
    assert "merge-base" not in str(live.started)


def test_what_was_not_taken_is_not_taken_back_and_can_be_deployed_again(
    live: Account,
) -> None:
    live.failing.add(SAM)
    with pytest.raises(DeploymentError, match="sam deploy failed"):
        deploy(live.stage, pack("newer"))
    assert str(live.started).count(f"{SAM} deploy") == 2
    live.failing.remove(SAM)
    rollback(live.stage, "newer")
    assert live.runs() == ("newer", "newer")


def test_a_bucket_that_cannot_be_read_says_nothing_of_what_was_good(
    account: Account,
) -> None:
    account.client("s3").delete_bucket(Bucket="artifacts")
    with pytest.raises(ClientError, match="NoSuchBucket"):
        last_good(account.stage)


def test_a_stack_without_outputs_names_the_next_command(account: Account) -> None:
    account.answers["DescribeStacks"] = {
        "Stacks": [{"StackStatus": "ROLLBACK_COMPLETE"}]
    }
    with pytest.raises(DeploymentError, match="next: aws cloudformation delete-stack"):
        account.stage.deployed()
