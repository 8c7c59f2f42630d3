"""What the service is built for: Lambda's Python and its two processor architectures."""

import platform
import sys
from dataclasses import dataclass
from pathlib import Path

from tools import ROOT

PYTHON = (3, 13)


@dataclass(frozen=True, slots=True)
class Target:
    """A processor architecture of Lambda."""

    name: str  # as in the template (`Architecture`)
    platform: str  # as uv names it; manylinux2014 asks for glibc 2.17, Lambda's Amazon Linux 2023 has 2.34
    elf_machine: int  # `e_machine` of its binaries (ELF specification, figure 4-3 and its processor supplements)
    build_dir: Path

    @property
    def artifact(self) -> Path:
        """The file that stages deploy."""
        return ROOT / f".aws-sam/animal-store-{self.name}.zip"


TARGETS = {
    target.name: target
    for target in (
        Target("arm64", "aarch64-manylinux2014", 183, ROOT / ".aws-sam/build"),
        Target("x86_64", "x86_64-manylinux2014", 62, ROOT / ".aws-sam/build-x86_64"),
    )
}


def require_python() -> None:
    """End the program with a plain message unless this interpreter writes the bytecode that Lambda's reads."""
    if sys.implementation.name != "cpython" or sys.version_info[:2] != PYTHON:
        raise SystemExit(
            f"The layer's bytecode must be compiled by CPython {PYTHON[0]}.{PYTHON[1]}; this is "
            f"{platform.python_implementation()} {platform.python_version()}.\n"
            "Install it, then: make clean && make PYTHON=/path/to/python3.13 build"
        )
