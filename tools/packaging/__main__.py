"""Build with `sam build`, without Docker, check the build and pack it: `python -m tools.packaging [arm64] [x86_64]`."""

import os
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tools import ROOT
from tools.packaging import artifact, sbom
from tools.packaging.bytecode import compile_tree
from tools.packaging.targets import TARGETS, Target, require_python

SAM = ROOT / ".tools/sam/bin/sam"
LAYER_LIMIT = 8 * 1024 * 1024
"""Bytes of the zipped layer: our own budget, as a larger layer starts more slowly. AWS takes 250 MB unpacked."""


def _sam_build(target: Target) -> None:
    command = [str(SAM), "build", "--build-dir", str(target.build_dir), "--parameter-overrides"]
    command += [f"ParameterKey=Architecture,ParameterValue={target.name}"]
    environment = os.environ | {
        "SAM_CLI_TELEMETRY": "0",
        # sam looks for the functions' Python on PATH; the layer's Makefile cannot see the template's parameter.
        "PATH": f"{SAM.parent}{os.pathsep}{os.environ['PATH']}",
        "ARCHITECTURE": target.name,
    }
    done = subprocess.run(command, cwd=ROOT, env=environment, check=False, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{done.stdout}{done.stderr}\nsam build failed for {target.name}")


def foreign_libraries(directory: Path, elf_machine: int) -> Iterator[str]:
    """Name each compiled library that is not for that processor (`e_machine`, at byte 18 of an ELF header)."""
    for path in sorted(directory.rglob("*.so*")):
        header = path.read_bytes()[:20]
        machine = struct.unpack_from("<H", header, 18)[0] if header[:4] == b"\x7fELF" else None
        if machine != elf_machine:
            yield f"{path.relative_to(directory)}: built for machine {machine}, not {elf_machine}"


def build(target: Target) -> None:
    """Build for one processor and print the figures."""
    _sam_build(target)
    layer = target.build_dir / "CommonLayer"
    functions = sorted(target.build_dir.glob("*Function"))
    for function in functions:
        compile_tree(function, "/var/task")
    problems = [text for directory in (layer, *functions) for text in foreign_libraries(directory, target.elf_machine)]
    size = len(artifact.zipped(layer))
    if size > LAYER_LIMIT:
        problems.append(f"the layer is {size:,} bytes zipped, over the limit of {LAYER_LIMIT:,}")
    if problems:
        raise SystemExit("\n".join(problems))
    libraries = sbom.write(target.build_dir / sbom.NAME)
    sha256 = artifact.pack(target.build_dir, target.artifact)
    print(f"{target.name}: built in {target.build_dir.relative_to(ROOT)}")
    print(f"  layer: {size:,} bytes zipped (limit {LAYER_LIMIT:,}), {libraries} libraries")
    print(f"  artifact: {target.artifact.relative_to(ROOT)}, of {artifact.commit()}")
    print(f"  sha256: {sha256}")


def main() -> None:
    """Run as a command."""
    require_python()
    if unknown := set(sys.argv[1:]) - set(TARGETS):
        raise SystemExit(f"{min(unknown)} is not an architecture: {' or '.join(TARGETS)}")
    for name in sys.argv[1:] or TARGETS:
        build(TARGETS[name])


if __name__ == "__main__":
    main()
