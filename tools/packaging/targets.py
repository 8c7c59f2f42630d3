"""What the service is built for: Lambda's Python and its two processor architectures."""

from pathlib import Path
from typing import NamedTuple

from tools import ROOT

PYTHON = (3, 13)


class Target(NamedTuple):
    """A processor architecture of Lambda."""

    name: str  # as in the template (`Architecture`)
    platform: str  # as uv names it; manylinux2014 asks for glibc 2.17, Amazon Linux 2023 has 2.34
    elf_machine: int  # `e_machine` of its binaries (ELF specification, figure 4-3)
    build_dir: Path
    artifact: Path  # the file that stages deploy


_BUILDS = ROOT / ".aws-sam"
_ARM64 = Target(
    "arm64",
    "aarch64-manylinux2014",
    183,
    _BUILDS / "build",
    _BUILDS / "animal-store-arm64.zip",
)
_X86_64 = Target(
    "x86_64",
    "x86_64-manylinux2014",
    62,
    _BUILDS / "build-x86_64",
    _BUILDS / "animal-store-x86_64.zip",
)
TARGETS = {target.name: target for target in (_ARM64, _X86_64)}
