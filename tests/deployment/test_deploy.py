"""What a stage runs after a deployment or a rollback, and what is refused."""

from subprocess import CalledProcessError

import pytest

from tests.support.aws import Account, pack
from tools.deployment.deploy import deploy, last_good, rollback
from tools.deployment.stage import DeploymentError


@pytest.fixture
def live(account: Account) -> Account:
    """Let `ape` and then `zebra` run, which is not the last by name or time."""
    deploy(account.stage, pack("zebra"))
    deploy(account.stage, pack("ape"))
    rollback(account.stage, "zebra")
    account.started.clear()
    return account


def test_what_is_attested_and_passes_is_what_a_failure_goes_back_to(
    account: Account,
) -> None:
    deploy(account.stage, pack("zebra"))
    assert (account.runs(), last_good(account.stage)) == ("zebra", "zebra")
    _, verified, deployed, checked = account.started
    assert "--repo octo/animals" in verified
    assert "--source-ref refs/heads/main --source-digest zebra" in verified
    assert deployed.endswith(
        'MemorySize="512" Stage=production MemorySize=1024 '
        "PermissionsBoundary=policy/boundary AlarmEmail=me@example.com"
    )
    assert checked.endswith("tests/contract -rfE -m smoke_read_only")


def test_what_fails_its_check_is_taken_back(live: Account) -> None:
    live.programs["pytest"] = 1
    with pytest.raises(DeploymentError, match="status 1\nproduction runs zebra again"):
        deploy(live.stage, pack("newer"))
    assert (live.runs(), last_good(live.stage)) == ("zebra", "zebra")
    assert "Canary=false" in live.started[-1]


@pytest.mark.parametrize("commit", ["zebra", "ape"])
def test_a_rollback_stays_and_says_so_even_if_its_check_fails(
    live: Account, commit: str, capsys: pytest.CaptureFixture[str]
) -> None:
    live.programs["pytest"] = 1
    with pytest.raises(DeploymentError, match=r"status 1$"):
        rollback(live.stage, commit)
    assert (live.runs(), last_good(live.stage)) == (commit, "zebra")
    assert f"{commit} stays, unless this says otherwise" in capsys.readouterr().out


def test_a_first_deployment_has_nothing_to_go_back_to(account: Account) -> None:
    account.programs["pytest"] = 1
    with pytest.raises(DeploymentError, match=r"status 1$"):
        deploy(account.stage, pack("zebra"))
    assert (account.runs(), last_good(account.stage)) == ("zebra", "")


def test_a_canary_gets_requests_that_only_read(live: Account) -> None:
    live.is_slow = True
    deploy(live.stage, pack("newer"))
    assert any(" --no-summary -m smoke_read_only" in line for line in live.started)


@pytest.mark.parametrize("program", ["gh", "sam"])
def test_what_is_not_attested_or_not_taken_changes_nothing(
    live: Account, program: str
) -> None:
    live.programs[program] = 1
    with pytest.raises(CalledProcessError, match=program):
        deploy(live.stage, pack("newer"))
    assert (live.runs(), last_good(live.stage)) == ("zebra", "zebra")


def test_an_older_commit_that_is_approved_late_is_refused(live: Account) -> None:
    live.programs["git"] = 0
    with pytest.raises(
        DeploymentError, match="zebra is newer: to go back to old, make"
    ):
        deploy(live.stage, pack("old"))
    assert live.runs() == "zebra"


def test_a_commit_that_never_ran_is_named(live: Account) -> None:
    with pytest.raises(DeploymentError, match="no zeb in artifacts: give all 40"):
        rollback(live.stage, "zeb")


def test_waiting_for_another_deployment_says_so_and_ends(
    live: Account, capsys: pytest.CaptureFixture[str]
) -> None:
    busy = {"StackName": live.stage.stack, "StackStatus": "UPDATE_IN_PROGRESS"}
    live.answers["DescribeStacks"] = {"Stacks": [busy]}
    with pytest.raises(DeploymentError, match="gave up after an hour"):
        live.stage.wait()
    assert "waiting for another deployment: animal-store" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("state", "command"),
    [
        ("ROLLBACK_COMPLETE", "delete-stack --stack-name animal-store-production$"),
        ("UPDATE_ROLLBACK_FAILED", "continue-update-rollback --stack-name animal-"),
    ],
)
def test_a_stack_that_cannot_be_deployed_names_its_next_command(
    account: Account, state: str, command: str
) -> None:
    account.answers["DescribeStacks"] = {"Stacks": [{"StackStatus": state}]}
    with pytest.raises(DeploymentError, match=f"is {state}.*{command}"):
        account.stage.wait()
