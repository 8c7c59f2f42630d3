"""The commands that change a stage: in which order, what they refuse, and what they leave."""

from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.support.aws import Aws, aws_error, pack
from tools.cli import app
from tools.deployment import commands
from tools.deployment.stage import DeploymentError
from tools.packaging.artifact import Artifact

# What judges or changes something, rather than reads.
ACTS = (
    "cloudformation:Cancel",
    "cloudformation:Set",
    "cloudformation:Update",
    "gh",
    "git",
    "pytest",
    "s3:PutObject",
    "sam",
    "sleep",
)
INSTALLATION = [
    "s3:PutObject",
    "cloudformation:SetStackPolicy",
    "cloudformation:UpdateTerminationProtection",
    "sam package",
    "sam deploy",
    "cloudformation:SetStackPolicy",
    "cloudformation:UpdateTerminationProtection",
]


@pytest.fixture
def older(tmp_path: Path) -> Artifact:
    """Pack what was built from a commit of main."""
    return pack(tmp_path / "older.zip", "older")


@pytest.fixture
def newer(tmp_path: Path) -> Artifact:
    """Pack what was built from the commit after it."""
    return pack(tmp_path / "newer.zip", "newer")


@pytest.fixture
def production(aws: Aws, older: Artifact) -> Aws:
    """Let the stage run `older`; record what is called from now on."""
    commands.deploy(aws.stage, older.path)
    aws.calls.clear()
    return aws


def acts(aws: Aws) -> list[str]:
    """Name what judged or changed something, in order."""
    return [name for name, _ in aws.calls if name.startswith(ACTS)]


@pytest.mark.usefixtures("production")
def test_a_deployment_verifies_waits_guards_installs_and_checks(
    aws: Aws, newer: Artifact
) -> None:
    aws.stack["StackStatus"] = "UPDATE_IN_PROGRESS"

    commands.deploy(aws.stage, newer.path, attested="octo/animals", canary=False)

    assert acts(aws) == [
        "gh attestation",
        "sleep",
        "git merge-base",
        "git merge-base",
        *INSTALLATION,
        "pytest tests/contract",
        "s3:PutObject",
    ]
    stored, passed = aws.named("s3:PutObject")
    assert stored["Key"] == f"releases/{newer.name}.zip"
    assert passed["Key"] == f"passed/{newer.name}"


def test_what_is_attested_is_this_file_built_by_our_workflow_on_main(
    aws: Aws, newer: Artifact
) -> None:
    commands.deploy(aws.stage, newer.path, attested="octo/animals")

    assert aws.named("gh") == [
        [
            "attestation",
            "verify",
            str(newer.path),
            "--repo",
            "octo/animals",
            "--signer-workflow",
            "octo/animals/.github/workflows/deploy.yml",
            "--source-ref",
            "refs/heads/main",
            "--source-digest",
            "newer",
            "--deny-self-hosted-runners",
        ]
    ]


@pytest.mark.usefixtures("production")
def test_a_rollback_is_verified_before_it_cancels_what_is_under_way(
    aws: Aws, older: Artifact, newer: Artifact
) -> None:
    commands.deploy(aws.stage, newer.path, canary=False)
    aws.calls.clear()
    aws.stack["StackStatus"] = "UPDATE_IN_PROGRESS"
    aws.answers["cloudformation:CancelUpdateStack"] = {}

    commands.rollback(aws.stage, "older", attested="octo/animals")

    assert acts(aws) == [
        "gh attestation",
        "git merge-base",
        "cloudformation:CancelUpdateStack",
        "sleep",
        *INSTALLATION,
        "pytest tests/contract",
        "s3:PutObject",
    ]
    assert aws.stack["Outputs"]["Artifact"] == older.name


def test_a_rollback_does_not_mind_an_update_that_has_just_ended(aws: Aws) -> None:
    def end(_: object) -> None:
        aws.stack = {"StackStatus": "UPDATE_COMPLETE"}
        raise aws_error("ValidationError", "cannot be called from current stack status")

    aws.stack = {"StackStatus": "UPDATE_IN_PROGRESS"}
    aws.answers["cloudformation:CancelUpdateStack"] = end
    aws.stage.cancel()

    aws.stack = {"StackStatus": "UPDATE_IN_PROGRESS"}
    aws.answers["cloudformation:CancelUpdateStack"] = aws_error("AccessDenied", "no")
    with pytest.raises(Exception, match="AccessDenied"):
        aws.stage.cancel()


def test_what_has_another_digest_is_refused(aws: Aws, newer: Artifact) -> None:
    almost = newer.sha256[:-1] + ("0" if newer.sha256[-1] != "0" else "1")

    with pytest.raises(DeploymentError, match=f"not have the SHA-256 {almost}"):
        commands.deploy(aws.stage, newer.path, sha256=almost)

    assert acts(aws) == []
    commands.deploy(aws.stage, newer.path, sha256=newer.sha256)


@pytest.mark.usefixtures("production")
def test_what_is_not_attested_is_refused(aws: Aws, newer: Artifact) -> None:
    aws.results["gh attestation"] = 1, "no attestation"

    with pytest.raises(DeploymentError, match="no attestation"):
        commands.deploy(aws.stage, newer.path, attested="octo/animals")
    with pytest.raises(DeploymentError, match="no attestation"):
        commands.deploy(aws.stage, newer.path, attested="octo/animals", plan=True)
    with pytest.raises(DeploymentError, match="no attestation"):
        commands.rollback(aws.stage, "older", attested="octo/animals")

    assert acts(aws) == 3 * ["gh attestation"]


@pytest.mark.parametrize("commit", ["beside", "unknown", "newer-dirty"])
def test_production_refuses_what_is_not_on_main(
    aws: Aws, tmp_path: Path, commit: str
) -> None:
    with pytest.raises(DeploymentError, match="production takes commits of main only"):
        commands.deploy(aws.stage, pack(tmp_path / "a.zip", commit).path)
    assert acts(aws) == ["git merge-base"]


def test_production_refuses_to_roll_back_to_what_is_not_on_main(
    aws: Aws, tmp_path: Path
) -> None:
    beside = pack(tmp_path / "beside.zip", "beside")
    client = aws.stage.client("s3")
    client.upload_file(str(beside.path), "bucket", f"releases/{beside.name}.zip")
    client.put_object(Bucket="bucket", Key=f"passed/{beside.name}")
    aws.calls.clear()

    with pytest.raises(DeploymentError, match="production takes commits of main only"):
        commands.rollback(aws.stage, "beside")
    assert acts(aws) == ["git merge-base"]


def test_production_refuses_what_is_older_than_what_runs(
    aws: Aws, older: Artifact, newer: Artifact
) -> None:
    commands.deploy(aws.stage, newer.path)

    with pytest.raises(DeploymentError, match="production runs newer, which is newer"):
        commands.deploy(aws.stage, older.path)
    assert aws.stack["Outputs"]["Artifact"] == newer.name


def test_staging_takes_any_commit(aws: Aws, tmp_path: Path) -> None:
    aws.stage = replace(aws.stage, name="staging")
    beside = pack(tmp_path / "beside.zip", "beside")
    commands.deploy(aws.stage, beside.path)
    assert aws.stack["Outputs"]["Artifact"] == beside.name


@pytest.mark.usefixtures("production")
def test_a_rollback_refuses_what_has_not_passed_and_lists_what_has(
    aws: Aws, older: Artifact
) -> None:
    aws.stage.client("s3").put_object(Bucket="bucket", Key="releases/newer-1a2b.zip")

    for commit in ("newer", "", older.name + "0"):
        with pytest.raises(DeploymentError) as refused:
            commands.rollback(aws.stage, commit)
        first, *listed = str(refused.value).splitlines()
        assert first.startswith(
            f"not one artifact of production begins with {commit!r}"
        )
        assert [line[17:] for line in listed] == [f"{older.name} (runs now)"]


@pytest.mark.usefixtures("production")
def test_an_artifact_in_the_bucket_that_was_changed_is_refused(
    aws: Aws, older: Artifact, newer: Artifact
) -> None:
    client = aws.stage.client("s3")
    client.upload_file(str(newer.path), "bucket", f"releases/{older.name}.zip")

    with pytest.raises(DeploymentError, match="is not what its name says"):
        commands.rollback(aws.stage, "older")


@pytest.mark.parametrize(
    ("stage", "selection"), [("production", ["-m", "smoke_read_only"]), ("staging", [])]
)
def test_production_is_checked_by_reading_and_staging_by_all_cases(
    aws: Aws, newer: Artifact, stage: str, selection: list[str]
) -> None:
    aws.stage = replace(aws.stage, name=stage)
    commands.deploy(aws.stage, newer.path)

    assert aws.named("pytest") == [
        ["tests/contract", "-p", "no:cacheprovider", "-r", "fE", *selection]
    ]


def test_the_suite_sees_two_keys_that_end_with_it_and_nothing_of_ours(
    aws: Aws,
    newer: Artifact,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GH_TOKEN", "secret")
    monkeypatch.setenv("PYTHONPATH", "clients")
    commands.deploy(aws.stage, newer.path)

    environment = aws.environments["pytest tests/contract"]
    key, second = (
        environment["CONTRACT_API_KEY"],
        environment["CONTRACT_SECOND_API_KEY"],
    )
    assert environment == {
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": "clients",
        "PYTHONUTF8": "1",
        "CONTRACT_BASE_URL": "https://a/v1",
        "CONTRACT_API_KEY": key,
        "CONTRACT_SECOND_API_KEY": second,
        "CONTRACT_EXPECTED_FAILURES": "tests/contract/expected_failures/aws.yaml",
    }
    printed = capsys.readouterr().out.splitlines()
    assert printed[1:3] == [f"::add-mask::{key}", f"::add-mask::{second}"]
    items = aws.stage.client("dynamodb").scan(TableName="keys")["Items"]
    assert len(items) == 2
    assert all("revoked" in item for item in items)


@pytest.mark.usefixtures("production")
def test_what_fails_its_check_is_taken_back(
    aws: Aws, older: Artifact, newer: Artifact
) -> None:
    aws.results["pytest tests/contract"] = 1, ""

    with pytest.raises(DeploymentError, match=f"production runs {older.name} again"):
        commands.deploy(aws.stage, newer.path, canary=False)

    assert aws.stack["Outputs"]["Artifact"] == older.name
    assert 'Canary="false"' in aws.named("sam deploy")[-1]
    stored = aws.stage.client("s3").list_objects_v2(Bucket="bucket", Prefix="passed/")
    assert [each["Key"] for each in stored["Contents"]] == [f"passed/{older.name}"]


def test_a_first_deployment_and_a_rollback_have_nothing_to_go_back_to(
    aws: Aws, older: Artifact, newer: Artifact
) -> None:
    aws.results["pytest tests/contract"] = 1, ""
    with pytest.raises(DeploymentError, match=r"to work$"):
        commands.deploy(aws.stage, older.path)
    assert aws.stack["Outputs"]["Artifact"] == older.name

    aws.results.clear()
    commands.deploy(aws.stage, older.path)
    commands.deploy(aws.stage, newer.path)
    aws.results["pytest tests/contract"] = 1, ""
    with pytest.raises(DeploymentError, match=r"to work$"):
        commands.rollback(aws.stage, "older")
    assert aws.stack["Outputs"]["Artifact"] == older.name


@pytest.mark.usefixtures("production")
def test_what_somebody_else_has_deployed_meanwhile_stays(
    aws: Aws, newer: Artifact
) -> None:
    def deploy_another(_: object) -> None:
        aws.stack["Outputs"]["Artifact"] = "another"
        raise DeploymentError("the check fails")

    aws.answers["lambda:GetAlias"] = deploy_another
    with pytest.raises(DeploymentError, match=r"^the check fails$"):
        commands.deploy(aws.stage, newer.path, canary=False)
    assert aws.stack["Outputs"]["Artifact"] == "another"


@pytest.mark.parametrize(("canary", "keys"), [(True, 4), (False, 2)])
def test_only_a_canary_gets_requests_while_it_lasts(
    production: Aws, newer: Artifact, canary: bool, keys: int
) -> None:
    """They need two keys more than the check."""
    commands.deploy(production.stage, newer.path, canary=canary)
    assert len(production.named("dynamodb:PutItem")) == keys


@pytest.mark.parametrize("stage", ["prod", "default", "version", "Staging"])
def test_a_name_that_is_no_stage_is_refused(stage: str) -> None:
    done = CliRunner().invoke(app, ["deploy", stage])
    assert done.exit_code == 2
    assert "staging, production" in done.output


def test_a_command_says_first_where_it_acts_and_as_whom(
    aws: Aws, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(OSError, match="missing"):
        commands.deploy(aws.stage, Path("missing.zip"))
    assert capsys.readouterr().out == (
        "production: account 123456789012, eu-central-1, "
        "as arn:aws:sts::123456789012:user/moto\n"
    )
