"""Artifacts: unpack one, store it in the account's bucket, find it there again.

An artifact is stored once, as `artifacts/COMMIT.zip`: the bucket's policy refuses whatever would
replace it. `last-good` names the commit that passed its check last.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import BadZipFile, ZipFile

from botocore.exceptions import ClientError

from ops.stage import DeploymentError, Stage

_PREFIX = "artifacts/"


@contextmanager
def unpacked(content: bytes) -> Iterator[tuple[Path, str]]:
    """Unpack an artifact; yield its folder and the commit that it was built of."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        try:
            ZipFile(BytesIO(content)).extractall(folder)
            commit = (folder / "COMMIT").read_text("utf-8")
        except (BadZipFile, FileNotFoundError):
            raise DeploymentError(
                "The file is no artifact: `animal-store build` writes one."
            ) from None
        yield folder, commit


def store(stage: Stage, commit: str, content: bytes) -> None:
    """Store an artifact under its commit's name; refuse other bytes than are stored already."""
    try:
        stage.client("s3").put_object(
            Bucket=_bucket(stage), Key=_key(commit), Body=content, IfNoneMatch="*"
        )
    except ClientError as error:
        if error.response["Error"]["Code"] != "PreconditionFailed":
            raise
        if load(stage, commit) != content:
            raise DeploymentError(
                f"the bucket has another artifact of {commit}, and none is ever replaced: "
                f"animal-store rollback {stage.name} {commit} deploys that one"
            ) from None


def load(stage: Stage, commit: str) -> bytes:
    """Read a stored artifact."""
    try:
        return _read(stage, _key(commit))
    except stage.client("s3").exceptions.NoSuchKey:
        raise DeploymentError(f"the bucket has no artifact of {commit}") from None


def stored(stage: Stage) -> list[tuple[str, str]]:
    """List when each artifact was stored, and its commit; the newest first."""
    pages = stage.client("s3").get_paginator("list_objects_v2")
    listed = pages.paginate(Bucket=_bucket(stage), Prefix=_PREFIX).search("Contents[]")
    artifacts = [
        (f"{each['LastModified']:%Y-%m-%d %H:%M} UTC", Path(each["Key"]).stem)
        for each in listed
        if each
    ]
    return sorted(artifacts, reverse=True)


def find(stage: Stage, digits: str) -> str:
    """Return the stored commit that begins with these digits."""
    commits = [commit for _, commit in stored(stage) if commit.startswith(digits)]
    if len(commits) != 1:
        raise DeploymentError(
            f"{len(commits)} stored artifacts are of a commit that begins with {digits}: "
            f"animal-store rollback {stage.name} lists all"
        )
    return commits[0]


def last_good(stage: Stage) -> str:
    """Return the commit that passed its check last; empty if there is none."""
    try:
        return _read(stage, "last-good").decode()
    except stage.client("s3").exceptions.NoSuchKey:
        return ""


def write_last_good(stage: Stage, commit: str) -> None:
    """Note that a commit passed its check."""
    s3 = stage.client("s3")
    s3.put_object(Bucket=_bucket(stage), Key="last-good", Body=commit)


def _bucket(stage: Stage) -> str:
    return stage.account["ArtifactBucketName"]


def _key(commit: str) -> str:
    return f"{_PREFIX}{commit}.zip"


def _read(stage: Stage, key: str) -> bytes:
    response = stage.client("s3").get_object(Bucket=_bucket(stage), Key=key)
    return bytes(response["Body"].read())
