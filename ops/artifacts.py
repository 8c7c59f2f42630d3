"""Stores, lists and unpacks the artifacts in the account's bucket.

An artifact is a ZIP file with the build of a commit. Each artifact is stored once, as
`artifacts/COMMIT.zip`: the bucket's policy refuses to replace the object. The object `last-good`
contains the commit of the last deployment that succeeded; a rollback first empties it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZipFile

from botocore.exceptions import ClientError

from ops.stage import Stage, StageError

# Without one of these files, an artifact is incomplete.
_REQUIRED = ("COMMIT", "samconfig.toml", "suite/pyproject.toml", "template.yaml")


def read(file: Path) -> tuple[str, bytes]:
    """Return an artifact's commit and bytes.

    A stored artifact cannot be replaced, so a bad one must never be stored.

    Raises:
        StageError: The file is damaged, or lacks one of _REQUIRED.
    """
    content = file.read_bytes()
    try:
        with ZipFile(BytesIO(content)) as artifact:
            # Reading a member verifies its checksum.
            for name in [*_REQUIRED, *artifact.namelist()]:
                artifact.read(name)
            return artifact.read("COMMIT").decode(), content
    except Exception as error:  # a damaged file can raise almost any exception
        raise StageError(f"{file} is damaged or incomplete: {error}") from error


def store(stage: Stage, commit: str, content: bytes) -> None:
    """Store an artifact; raise StageError unless the bucket has it afterwards."""
    key = f"artifacts/{commit}.zip"
    try:
        stage.client("s3").put_object(
            Bucket=stage.bucket, Key=key, Body=content, IfNoneMatch="*"
        )
    except ClientError as error:
        # An attempt whose response was lost may have stored the artifact, so compare the bytes.
        if _read_object(stage, key) != content:
            raise StageError(
                f"{error}: {key} is stored only once; if its content is not that of your file, "
                "make a new commit, and deploy its artifact"
            ) from error


@contextmanager
def unpack(stage: Stage, commit: str) -> Iterator[Path]:
    """Unpack the stored artifact of a commit into a temporary folder.

    Raises:
        StageError: The bucket has no artifact of the commit.
    """
    content = _read_object(stage, f"artifacts/{commit}.zip")
    if not content:
        # After a plain `sam deploy`, which deploys no artifact, the commit is "".
        raise StageError(f"no artifact of commit '{commit}' is stored")
    with TemporaryDirectory() as folder:
        ZipFile(BytesIO(content)).extractall(folder)
        yield Path(folder)


def list_stored(stage: Stage, prefix: str) -> list[tuple[datetime, str]]:
    """Return time and commit of each artifact whose commit begins with `prefix`, newest first."""
    paginator = stage.client("s3").get_paginator("list_objects_v2")
    pages = paginator.paginate(Bucket=stage.bucket, Prefix=f"artifacts/{prefix}")
    times_and_commits = [
        (artifact["LastModified"], Path(artifact["Key"]).stem)
        for artifact in pages.search("Contents || `[]`")
    ]
    return sorted(times_and_commits, reverse=True)


def last_good(stage: Stage) -> str:
    """Return the commit that `last-good` names; "" if it names none."""
    return _read_object(stage, "last-good").decode()


def write_last_good(stage: Stage, commit: str) -> None:
    """Record `commit` as the last one that passed the contract suite; "" erases the record."""
    stage.client("s3").put_object(Bucket=stage.bucket, Key="last-good", Body=commit)


def _read_object(stage: Stage, key: str) -> bytes:
    """Return an object's bytes, or b"" if the bucket has no such object."""
    s3 = stage.client("s3")
    try:
        response = s3.get_object(Bucket=stage.bucket, Key=key)
    except s3.exceptions.NoSuchKey:
        return b""
    return bytes(response["Body"].read())
