"""Build with `sam build`, without Docker, and check the build: `python -m tools.packaging [arm64] [x86_64]`."""

import argparse
import os
import subprocess
from pathlib import Path

from tools import ROOT
from tools.packaging import checks, sbom
from tools.packaging.bytecode import compile_tree
from tools.packaging.targets import TARGETS, Target, require_python

SAM = ROOT / ".tools/sam/bin/sam"


def _sam_build(target: Target) -> None:
    command = [str(SAM), "build", "--build-dir", str(target.build_dir), "--parameter-overrides"]
    command += [f"ParameterKey=Architecture,ParameterValue={target.name}"]
    environment = os.environ | {
        "SAM_CLI_TELEMETRY": "0",
        # sam looks for the functions' Python on PATH; the layer's Makefile can not see the template's parameter.
        "PATH": f"{SAM.parent}{os.pathsep}{os.environ['PATH']}",
        "ARCHITECTURE": target.name,
    }
    done = subprocess.run(
        command, cwd=ROOT, env=environment, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if done.returncode:
        raise SystemExit(f"{done.stdout}\nsam build failed for {target.name}")


def _problems(directory: Path, target: Target) -> list[str]:
    return [*checks.foreign_libraries(directory, target.elf_machine), *checks.stale_bytecode(directory)]


def build(target: Target) -> None:
    """Build for one processor and print the figures.

    Raises:
        SystemExit: Something does not build, or a check fails.
    """
    _sam_build(target)
    problems = []
    for function in sorted(target.build_dir.glob("*Function")):
        compile_tree(function, "/var/task")
        problems += _problems(function, target)
    layer = target.build_dir / "CommonLayer"
    problems += _problems(layer, target)
    size = checks.zipped_size(layer)
    if size > checks.LAYER_LIMIT:
        problems.append(f"the layer is {size:,} bytes zipped, over the limit of {checks.LAYER_LIMIT:,}")
    if problems:
        raise SystemExit("\n".join(problems))
    contents = checks.files(layer)
    unpacked = sum(path.stat().st_size for path in contents)
    print(f"{target.name}: built in {target.build_dir.relative_to(ROOT)}")
    print(
        f"  layer: {_mebibytes(size)} zipped (limit {_mebibytes(checks.LAYER_LIMIT)}), {_mebibytes(unpacked)} unpacked"
    )
    print(f"  sha256: {checks.fingerprint(layer)} over {len(contents)} files")
    bill = target.build_dir / sbom.NAME
    print(f"  bill of materials: {bill.relative_to(ROOT)}, {sbom.write(layer, bill)} libraries")


def _mebibytes(size: int) -> str:
    return f"{size / checks.MEBIBYTE:.2f} MiB"


def main() -> None:
    """Run as a command."""
    parser = argparse.ArgumentParser(description="Build the service with `sam build` and check it.")
    parser.add_argument(
        "architectures", nargs="*", choices=[*TARGETS, []], metavar="arm64|x86_64", help="default: both"
    )
    arguments = parser.parse_args()
    require_python()
    for name in arguments.architectures or TARGETS:
        build(TARGETS[name])


if __name__ == "__main__":
    main()
