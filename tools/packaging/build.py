"""Build with `sam build`, without Docker, check the build and pack it."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from tools import ROOT
from tools.packaging import artifact, sbom
from tools.packaging.bytecode import compile_tree, require_python
from tools.packaging.targets import TARGETS, Target

SAM = ROOT / ".tools/sam/bin/sam"
# Zipped: our own budget, as a larger layer starts more slowly.
LAYER_LIMIT = 8 * 1024 * 1024


def _sam_build(target: Target) -> None:
    command = [
        str(SAM),
        "build",
        "--build-dir",
        str(target.build_dir),
        "--parameter-overrides",
    ]
    command += [f"ParameterKey=Architecture,ParameterValue={target.name}"]
    environment = os.environ | {
        "SAM_CLI_TELEMETRY": "0",
        # sam looks for the functions' Python on PATH.
        "PATH": f"{SAM.parent}{os.pathsep}{os.environ['PATH']}",
        "LAYER_ARCHITECTURE": target.name,
    }
    done = subprocess.run(
        command, cwd=ROOT, env=environment, check=False, capture_output=True, text=True
    )
    if done.returncode:
        raise SystemExit(
            f"{done.stdout}{done.stderr}\nsam build failed for {target.name}"
        )


def foreign_libraries(directory: Path, target: Target) -> Iterator[str]:
    """Name each library that is not for that processor (`e_machine`, byte 18 of an ELF header)."""
    for path in sorted(directory.rglob("*.so*")):
        if path.read_bytes()[18:20] != target.elf_machine.to_bytes(2, "little"):
            yield f"{path.relative_to(directory)}: not built for {target.name}"


def build_target(target: Target) -> None:
    """Build for one processor and print the figures."""
    _sam_build(target)
    for function in target.build_dir.glob("*Function"):
        compile_tree(function, "/var/task")
    if foreign := list(foreign_libraries(target.build_dir, target)):
        raise SystemExit("\n".join(foreign))
    size = len(artifact.zipped(target.build_dir / "CommonLayer"))
    if size > LAYER_LIMIT:
        raise SystemExit(
            f"the layer is {size:,} bytes zipped, over the limit of {LAYER_LIMIT:,}"
        )
    libraries = sbom.write(target.build_dir / sbom.NAME)
    sha256 = artifact.pack(target.build_dir, target.artifact)
    print(f"{target.name}: built in {target.build_dir.relative_to(ROOT)}")
    print(
        f"  layer: {size:,} bytes zipped (limit {LAYER_LIMIT:,}), {libraries} libraries"
    )
    print(f"  artifact: {target.artifact.relative_to(ROOT)}, of {artifact.commit()}")
    print(f"  sha256: {sha256}")


def build(
    architectures: Annotated[
        list[str] | None, typer.Argument(help="arm64, x86_64, or by default both.")
    ] = None,
) -> None:
    """Build for AWS: arm64 is what a release ships, x86_64 what this machine may be."""
    require_python()
    if unknown := set(architectures or ()) - set(TARGETS):
        raise SystemExit(
            f"{min(unknown)} is not an architecture: {' or '.join(TARGETS)}"
        )
    for name in architectures or TARGETS:
        build_target(TARGETS[name])
