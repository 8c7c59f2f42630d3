"""Stores, lists and unpacks the artifacts in the account's bucket.

An artifact is a ZIP file with the build of a commit. Each artifact is stored once, as
`artifacts/COMMIT.zip`: the bucket's policy refuses to replace the object. The object `last-good`
contains the last commit that passed the contract suite after its deployment.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZipFile

from botocore.exceptions import ClientError

from ops.stage import Stage, StageError

# The files and folders without which an artifact cannot be deployed or checked.
_REQUIRED = {"samconfig.toml", "suite", "template.yaml"}


def read(file: Path) -> tuple[str, bytes]:
    """Return an artifact's commit and its bytes; raise StageError if it is damaged or incomplete.

    A stored artifact cannot be replaced, so a bad one must never be stored.
    """
    content = file.read_bytes()
    try:
        with ZipFile(BytesIO(content)) as artifact:
            # Reading a member compares its checksum.
            members = {name: artifact.read(name) for name in artifact.namelist()}
        commit = members["COMMIT"].decode()
    except Exception as error:  # a damaged file can raise almost any exception
        raise StageError(f"{file} is damaged: {error}") from error
    missing = _REQUIRED.difference(name.partition("/")[0] for name in members)
    if missing:
        raise StageError(f"{file} is incomplete: it lacks {', '.join(missing)}")
    return commit, content


def store(stage: Stage, commit: str, content: bytes) -> None:
    """Store an artifact; raise StageError if its commit already has a different artifact."""
    key = f"artifacts/{commit}.zip"
    try:
        stage.client("s3").put_object(
            Bucket=stage.bucket, Key=key, Body=content, IfNoneMatch="*"
        )
    except ClientError as error:
        if error.response["Error"]["Code"] != "PreconditionFailed":
            raise
        # The SDK may have repeated a call whose response was lost, so compare the bytes.
        if _read(stage, key) != content:
            raise StageError(
                f"the bucket already has a different artifact of {commit}, which cannot be "
                "replaced; next: make a new commit, and deploy its artifact"
            ) from None


@contextmanager
def unpack(stage: Stage, commit: str) -> Iterator[Path]:
    """Unpack the stored artifact of a commit into a temporary folder.

    Raises:
        StageError: The bucket has no artifact of the commit.
    """
    try:
        artifact = BytesIO(_read(stage, f"artifacts/{commit}.zip"))
    except stage.client("s3").exceptions.NoSuchKey:
        # A plain `sam deploy` deploys no artifact, and so no commit.
        raise StageError(f"no artifact of commit '{commit}' is stored") from None
    with TemporaryDirectory() as folder:
        ZipFile(artifact).extractall(folder)
        yield Path(folder)


def list_stored(stage: Stage, prefix: str) -> list[tuple[str, str]]:
    """Return date and commit of each artifact whose commit begins with `prefix`, newest first."""
    pages = stage.client("s3").get_paginator("list_objects_v2")
    artifacts = []
    for page in pages.paginate(Bucket=stage.bucket, Prefix=f"artifacts/{prefix}"):
        for artifact in page.get("Contents", []):
            date = f"{artifact['LastModified']:%Y-%m-%d %H:%M} UTC"
            artifacts.append((date, Path(artifact["Key"]).stem))
    return sorted(artifacts, reverse=True)


def last_good(stage: Stage) -> str:
    """Return the last deployed commit that passed the contract suite; empty if no commit has."""
    try:
        return _read(stage, "last-good").decode()
    except stage.client("s3").exceptions.NoSuchKey:
        return ""


def write_last_good(stage: Stage, commit: str) -> None:
    """Record that a deployed commit passed the contract suite, or none if `commit` is empty."""
    stage.client("s3").put_object(Bucket=stage.bucket, Key="last-good", Body=commit)


def _read(stage: Stage, key: str) -> bytes:
    response = stage.client("s3").get_object(Bucket=stage.bucket, Key=key)
    return bytes(response["Body"].read())
