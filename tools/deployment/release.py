"""Deploy an artifact to a stage, by the pipeline and by hand alike."""

import contextlib
import json
import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from operator import itemgetter
from pathlib import Path

from botocore.exceptions import ClientError

from tools import ROOT
from tools.deployment.service import SAM, requests_meanwhile
from tools.deployment.stage import TABLES, DeploymentError, Stage
from tools.packaging.artifact import Artifact, digest, unpack

MAIN = "origin/main"
# Replacing or deleting a table would leave the stage with an empty one.
STACK_POLICY = """{"Statement": [
  {"Effect": "Allow", "Principal": "*", "Action": "Update:*", "Resource": "*"},
  {"Effect": "Deny", "Principal": "*", "Action": ["Update:Replace", "Update:Delete"],
    "Resource": ["LogicalResourceId/AnimalsTable", "LogicalResourceId/ApiKeysTable"]}
]}"""
# What Lambda keeps unreserved in each account and region
# (lambda/latest/dg/configuration-concurrency.html).
_UNRESERVED = 100
# AWS refuses requests of a machine whose clock differs by more.
_CLOCK_SKEW = timedelta(minutes=5)


def guard(stage: Stage, commit: str, *, is_rollback: bool) -> None:
    """Bar from production a commit that is not on main, or, except in a rollback, an older one."""
    if stage.name != "production":
        return
    if not _is_ancestor(stage, commit, MAIN):
        raise DeploymentError(
            f"production takes commits of main only, and {commit} is not one ({MAIN}; git fetch?)"
        )
    live = released(stage).partition("-")[0]
    if live and not is_rollback and not _is_ancestor(stage, live, commit):
        raise DeploymentError(
            f"production runs {live}, which is newer than {commit}: to go back, use make rollback"
        )


def _is_ancestor(stage: Stage, older: str, newer: str) -> bool:
    command = ["git", "merge-base", "--is-ancestor", older, newer]
    return not stage.execute(command, cwd=ROOT, check=False).returncode


def released(stage: Stage) -> str:
    """Name the artifact that a stage runs: `<commit>-<sha256>`; empty if none."""
    return stage.outputs().get("Artifact", "")


@contextlib.contextmanager
def opened(path: Path) -> Iterator[Artifact]:
    """Unpack an artifact for as long as the context lasts."""
    with tempfile.TemporaryDirectory() as folder:
        yield unpack(path, Path(folder) / "artifact")


def stored(stage: Stage, among: str) -> dict[str, datetime]:
    """Return the names of a stage's artifacts with the time of each, the oldest first.

    Args:
        stage: Whose bucket.
        among: `releases` for all that were deployed, `passed` for those that passed their checks.
    """
    bucket = stage.account()["ArtifactBucketName"]
    paginator = stage.client("s3").get_paginator("list_objects_v2")
    pages = paginator.paginate(Bucket=bucket, Prefix=f"{among}/")
    entries = pages.build_full_result().get("Contents", [])
    entries.sort(key=itemgetter("LastModified"))
    return {Path(each["Key"]).stem: each["LastModified"] for each in entries}


@contextlib.contextmanager
def fetched(stage: Stage, name: str, among: str = "releases") -> Iterator[Artifact]:
    """Open an artifact from the stage's bucket, given the beginning of its name.

    Args:
        stage: Whose bucket.
        name: The artifact's commit or whole name.
        among: As in `stored`.
    """
    artifacts = stored(stage, among)
    found = [each for each in artifacts if name and each.startswith(name)]
    if len(found) != 1:
        lines = [f"{at:%Y-%m-%d %H:%M} {each}" for each, at in artifacts.items()]
        message = f"not one artifact of {stage.name} begins with {name!r}; there are:"
        raise DeploymentError("\n".join([message, *lines]))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{found[0]}.zip"
        bucket, key = stage.account()["ArtifactBucketName"], f"releases/{path.name}"
        answer = stage.client("s3").get_object(Bucket=bucket, Key=key)
        path.write_bytes(answer["Body"].read())
        if not path.stem.endswith(digest(path.read_bytes())):
            raise DeploymentError(f"s3://{bucket}/{key} is not what its name says")
        with opened(path) as artifact:
            yield artifact


def install(stage: Stage, artifact: Artifact, *, canary: bool) -> None:
    """Create or update the stack from an artifact.

    Args:
        stage: The stage.
        artifact: What it is to run.
        canary: Whether CodeDeploy shifts traffic, if the artifact's parameters say so.
    """
    _require_concurrency(stage, artifact)
    bucket, key = stage.account()["ArtifactBucketName"], f"releases/{artifact.name}.zip"
    # Before the stack changes, so that whatever runs can be deployed again.
    content = artifact.path.read_bytes()
    stage.client("s3").put_object(Bucket=bucket, Key=key, Body=content)
    if stage.outputs():
        _protect(stage)
    _sam_deploy(stage, artifact, canary=canary)
    _protect(stage)


def _protect(stage: Stage) -> None:
    cloudformation, name = stage.client("cloudformation"), stage.stack
    cloudformation.set_stack_policy(StackName=name, StackPolicyBody=STACK_POLICY)
    cloudformation.update_termination_protection(
        StackName=name, EnableTerminationProtection=True
    )


def _require_concurrency(stage: Stage, artifact: Artifact) -> None:
    """Refuse to reserve more concurrency than the account has: a new one may have 10 in all."""
    asked = int(stage.parameters(artifact)["ReservedConcurrency"])
    more = asked - int(stage.used_parameters().get("ReservedConcurrency", 0))
    resources = artifact.template["Resources"].values()
    types = [resource["Type"] for resource in resources]
    needed = more * types.count("AWS::Serverless::Function")
    if needed <= 0:
        return
    limit = stage.client("lambda").get_account_settings()["AccountLimit"]
    free = limit["UnreservedConcurrentExecutions"] - _UNRESERVED
    if needed > free:
        raise DeploymentError(
            f"the functions are to reserve {needed} executions, and this account and region have "
            f"{max(free, 0)} to reserve: raise Lambda's quota, or lower ReservedConcurrency in "
            "samconfig.toml"
        )


def plan(stage: Stage, artifact: Artifact) -> str:
    """Say what a deployment would change; leave the stack as it is."""
    if not stage.status():
        raise DeploymentError(
            f"{stage.name} has no stack: a deployment adds all of template.yaml"
        )
    printed = _sam_deploy(stage, artifact, "--no-execute-changeset")
    change_set = next(word for word in printed.split() if ":changeSet/" in word)
    cloudformation = stage.client("cloudformation")
    # With the stack's name too: the permission to call it is checked against the stack.
    names = {"StackName": stage.stack, "ChangeSetName": change_set}
    pages = cloudformation.get_paginator("describe_change_set").paginate(**names)
    for change in pages.search("Changes[].ResourceChange"):
        table = change["LogicalResourceId"]
        replaced = change.get("Replacement", "False") != "False"
        if table in TABLES and (replaced or change["Action"] == "Remove"):
            printed += f"\n{table} would be replaced or deleted, which the stack policy refuses."
    cloudformation.delete_change_set(**names)
    return printed


def _sam_deploy(
    stage: Stage, artifact: Artifact, *options: str, canary: bool = True
) -> str:
    """Upload an artifact's code, let CloudFormation deploy it, and return what sam printed."""
    account, folder, template = stage.account(), artifact.folder, artifact.template
    bucket, now = account["ArtifactBucketName"], datetime.now(UTC)
    # Lambda publishes no version of a function that is identical to its newest version: a
    # change that was taken back would fail the next time.
    variables = template["Globals"]["Function"]["Environment"]["Variables"]
    variables["DEPLOYMENT"] = now.isoformat()
    template["Outputs"] |= {
        "Artifact": {"Value": artifact.name},
        "Deployed": {"Value": variables["DEPLOYMENT"]},
    }
    (folder / "deployed.json").write_text(json.dumps(template), "utf-8")
    stage.run(SAM, "package", "--template-file", "deployed.json", "--output-template-file",
        "packaged.yaml", "--s3-bucket", bucket, "--s3-prefix", "code", "--force-upload",
        "--no-progressbar", cwd=folder)  # fmt: skip
    parameters = stage.parameters(artifact)
    if not canary:
        parameters["Canary"] = "false"
    try:
        return stage.run(SAM, "deploy", "--template-file", "packaged.yaml", "--config-file",
            "samconfig.toml", "--config-env", stage.name, "--s3-bucket", bucket, "--role-arn",
            account["ExecutionRoleArn"], "--no-progressbar", *options, "--parameter-overrides",
            *(f'{name}="{value}"' for name, value in parameters.items()), cwd=folder)  # fmt: skip
    except DeploymentError as error:
        try:
            reasons = stage.failures(now - _CLOCK_SKEW)
        except ClientError as refused:
            reasons = [f"CloudFormation's reasons cannot be read: {refused}"]
        raise DeploymentError("\n".join([str(error), *reasons])) from error


def deploy_and_check(
    stage: Stage,
    artifact: Artifact,
    check: Callable[[Stage, Artifact], None],
    *,
    canary: bool,
) -> None:
    """Install an artifact and check it; if the check fails, go back.

    That is to what ran before, or if that never passed, to the last that did. Not if the artifact
    itself had passed before, as in a rollback, nor if somebody has deployed meanwhile.

    Args:
        stage: The stage.
        artifact: What it is to run.
        check: Raises an exception if the stage does not do what it should.
        canary: Whether traffic shifts step by step; the read-only suite runs meanwhile.
    """
    before = released(stage)
    with requests_meanwhile(stage) if canary and before else contextlib.nullcontext():
        install(stage, artifact, canary=canary)
    installed = released(stage)
    try:
        check(stage, artifact)
    except Exception as error:
        if released(stage) != installed:
            raise
        passed = [*stored(stage, "passed")]
        if not passed or installed in passed:
            raise
        # What ran before may be from a deployment that was interrupted.
        name = before if before in passed else passed[-1]
        with fetched(stage, name) as previous:
            install(stage, previous, canary=False)
        raise DeploymentError(f"{error}\n{stage.name} runs {name} again") from error
    stage.client("s3").put_object(
        Bucket=stage.account()["ArtifactBucketName"], Key=f"passed/{installed}"
    )
    print(f"{installed} has passed on {stage.name}: {stage.outputs()['BaseUrl']}")
