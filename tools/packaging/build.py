"""Build with `sam build`, without Docker, check the build and pack it."""

import os
import subprocess
from pathlib import Path
from typing import Annotated, Literal

import typer

from tools import ROOT
from tools.packaging import artifact, sbom
from tools.packaging.bytecode import compile_tree, require_python
from tools.packaging.targets import TARGETS, Target

SAM = ROOT / ".tools/sam/bin/sam"


def require_processor(folder: Path, target: Target) -> None:
    """Stop if a library is for another processor; its name may not tell."""
    for path in sorted(folder.rglob("*.so*")):
        machine = int.from_bytes(path.read_bytes()[18:20], "little")
        if machine != target.elf_machine:
            raise SystemExit(f"{path} is not for {target.name}")


def _build(target: Target) -> None:
    environment = os.environ | {
        "SAM_CLI_TELEMETRY": "0",
        # sam looks for the functions' Python on PATH.
        "PATH": f"{SAM.parent}{os.pathsep}{os.environ['PATH']}",
        "LAYER_ARCHITECTURE": target.name,
    }
    parameter = f"ParameterKey=Architecture,ParameterValue={target.name}"
    done = subprocess.run(
        [SAM, "build", "-b", target.build_dir, "--parameter-overrides", parameter],
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
    require_processor(target.build_dir, target)
    sbom.write(target.build_dir / sbom.NAME)
    sha256 = artifact.pack(target.build_dir, target.artifact)
    size = len(artifact.zipped(target.build_dir / "CommonLayer"))
    print(f"{target.artifact}, of {artifact.commit()}")
    print(f"  layer: {size:,} bytes zipped\n  sha256: {sha256}")


def build(
    architecture: Annotated[Literal["arm64", "x86_64"] | None, typer.Argument()] = None,
) -> None:
    """Build for AWS: arm64 is what a release ships, x86_64 what this machine may be."""
    require_python()
    for name in [architecture] if architecture else TARGETS:
        _build(TARGETS[name])
