"""Builds the artifact of a commit: runs `sam build` without Docker, and compiles the functions."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal

import typer

from tools import ROOT
from tools.git import git
from tools.packaging.artifact import pack
from tools.packaging.bytecode import compile_tree, require_python
from tools.packaging.targets import BUILD, artifact_path

SAM = ROOT / ".tools/sam/bin/sam"


def _run_sam_build(architecture: str, commit: str) -> None:
    environment = os.environ | {
        # sam looks for Python 3.13 on PATH; its own environment has it.
        "PATH": f"{SAM.parent}{os.pathsep}{os.environ['PATH']}",
        "LAYER_ARCHITECTURE": architecture,
    }
    command = [
        str(SAM),
        "build",
        "--template=template.yaml",
        f"--build-dir={BUILD}",
        f"--parameter-overrides=Architecture={architecture}",
    ]
    try:
        subprocess.run(
            command,
            cwd=ROOT,
            env=environment,
            check=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
    except subprocess.CalledProcessError as error:
        raise SystemExit(f"{error.stdout}\n{error}") from error
    for function in BUILD.glob("*Function"):
        compile_tree(function, "/var/task")
    artifact = artifact_path(architecture)
    artifact.write_bytes(pack(BUILD, architecture, commit))
    print(f".aws-sam/{artifact.name}, of {commit}")


@contextmanager
def copy_of_head(root: Path = ROOT) -> Iterator[Path]:
    """Copy HEAD's files into a temporary folder, to build there without uncommitted changes.

    The copy shares `.venv`, `.tools` and `.aws-sam` with the checkout. Uncommitted changes are
    printed, and are not copied.
    """
    if changes := git(root, "status", "--porcelain", "--untracked-files").decode():
        print(f"The build leaves out uncommitted changes:\n{changes}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        git(root, "archive", f"--output={copy}/commit.tar", "HEAD")
        shutil.unpack_archive(copy / "commit.tar", copy, filter="data")
        for name in (".venv", ".tools", ".aws-sam"):
            (root / name).mkdir(exist_ok=True)
            (copy / name).symlink_to(root / name)
        yield copy


def build(
    architecture: Annotated[Literal["arm64", "x86_64"], typer.Argument()] = "arm64",
) -> None:
    """Build HEAD for AWS. The stages run on arm64."""
    require_python()
    commit = git(ROOT, "rev-parse", "HEAD").decode().strip()
    with copy_of_head() as folder:
        command = [sys.executable, "-m", __name__, architecture, commit]
        subprocess.run(command, cwd=folder, check=True)


if __name__ == "__main__":
    _run_sam_build(architecture=sys.argv[1], commit=sys.argv[2])
