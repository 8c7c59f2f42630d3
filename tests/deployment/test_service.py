"""What a check of a deployed stage uses there: keys of its own, and the contract suite."""

import time

import pytest

from tests.support.aws import OUTPUTS, Aws
from tools.deployment import service
from tools.deployment.stage import DeploymentError
from tools.key_table import KeyTable


@pytest.fixture
def deployed(aws: Aws) -> Aws:
    """Let the stage have a stack."""
    aws.stack = {"Outputs": OUTPUTS}
    return aws


def test_two_checks_at_the_same_time_have_valid_keys_of_their_own(
    deployed: Aws,
) -> None:
    keys = KeyTable(deployed.stage.client("dynamodb"), "keys")
    with (
        service.temporary_keys(deployed.stage) as first,
        service.temporary_keys(deployed.stage) as second,
    ):
        assert len({*first, *second}) == 4
        records = keys.all()
        assert {record.state for record in records} == {"active"}
        lives = {
            record.expires - record.created for record in records if record.expires
        }
        assert lives == {86_400}

    assert {record.state for record in keys.all()} == {"revoked"}


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (1, "failed"),
        (2, "ended early, with status 2"),
        (3, "ended early, with status 3"),
        (4, "ended early, with status 4"),
        (5, "has no such tests"),
        (-9, "ended early, with status -9"),
    ],
)
def test_a_suite_that_does_not_pass_fails_the_check(
    deployed: Aws, status: int, reason: str
) -> None:
    service.check_contract(deployed.stage, ["one", "two"], "aws")

    deployed.results["pytest tests/contract"] = status, ""
    with pytest.raises(DeploymentError, match=f"the contract suite {reason}"):
        service.check_contract(deployed.stage, ["one", "two"], "aws")


def test_a_canary_gets_requests_that_only_read_until_it_has_ended(
    deployed: Aws,
) -> None:
    with service.requests_meanwhile(deployed.stage, pause_s=0.01):
        while len(deployed.named("pytest")) < 2:
            time.sleep(0.01)

    for arguments in deployed.named("pytest"):
        assert arguments[-2:] == ["-m", "smoke_read_only"]
    keys = KeyTable(deployed.stage.client("dynamodb"), "keys").all()
    assert [key.state for key in keys] == ["revoked", "revoked"]
