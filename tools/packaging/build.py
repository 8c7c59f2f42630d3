"""Build with `sam build`, without Docker, compile the functions and pack the build."""

import io
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal

import typer

from tools import ROOT
from tools.git import git
from tools.packaging import artifact
from tools.packaging.bytecode import compile_tree, require_python
from tools.packaging.targets import TARGETS, Target

SAM = ROOT / ".tools/sam/bin/sam"


def _build(target: Target, commit: str) -> None:
    environment = os.environ | {
        "SAM_CLI_TELEMETRY": "0",
        # sam looks for the functions' Python on PATH.
        "PATH": f"{SAM.parent}{os.pathsep}{os.environ['PATH']}",
        "LAYER_ARCHITECTURE": target.name,
    }
    parameter = f"ParameterKey=Architecture,ParameterValue={target.name}"
    done = subprocess.run(
        [
            SAM,
            "build",
            "--template",
            "template.yaml",
            "--build-dir",
            target.build_dir,
            "--parameter-overrides",
            parameter,
        ],
        cwd=ROOT,
        env=environment,
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode:
        raise SystemExit(f"{done.stdout}\nsam build failed for {target.name}")
    for function in target.build_dir.glob("*Function"):
        compile_tree(function, "/var/task")
    sha256 = artifact.pack(target, commit)
    print(f".aws-sam/{target.artifact.name}, of {commit}")
    print(f"  sha256: {sha256}")


@contextmanager
def committed(root: Path = ROOT) -> Iterator[Path]:
    """Copy the files of the commit that is checked out: `sam build` packs whatever is there.

    The copy shares `.venv`, `.tools` and `.aws-sam` with the checkout. Uncommitted changes are
    printed and left out.
    """
    if changes := git(root, "status", "--porcelain", "--untracked-files").decode():
        print(f"Not committed, and therefore left out:\n{changes}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "commit"
        # Its files have the commit's date, and no compiled modules beside them.
        with tarfile.open(fileobj=io.BytesIO(git(root, "archive", "HEAD"))) as archive:
            archive.extractall(copy, filter="data")
        for name in (".venv", ".tools", ".aws-sam"):
            (root / name).mkdir(exist_ok=True)
            (copy / name).symlink_to(root / name)
        yield copy


def build(
    architecture: Annotated[Literal["arm64", "x86_64"] | None, typer.Argument()] = None,
) -> None:
    """Build the commit for AWS: arm64 is what a release ships, x86_64 what this machine may be."""
    require_python()
    names = [architecture] if architecture else TARGETS
    # Or a failed build would leave the last artifacts to be deployed.
    for name in names:
        TARGETS[name].artifact.unlink(missing_ok=True)
    commit = artifact.commit()
    with committed() as folder:
        command = [sys.executable, "-m", __name__, commit, *names]
        subprocess.run(command, cwd=folder, check=True)


if __name__ == "__main__":
    for each in sys.argv[2:]:
        _build(TARGETS[each], commit=sys.argv[1])
