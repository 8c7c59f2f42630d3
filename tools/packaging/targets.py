"""Lambda's Python and its two processor architectures: the service is built for these."""

from pathlib import Path
from typing import NamedTuple

from tools import ROOT

PYTHON = (3, 13)
_BUILDS = ROOT / ".aws-sam"


class Target(NamedTuple):
    """A processor architecture of Lambda."""

    name: str  # as in the template (`Architecture`)
    platform: str  # as uv names it; manylinux2014 asks for glibc 2.17, Amazon Linux 2023 has 2.34
    build_dir: Path

    @property
    def artifact(self) -> Path:
        """The file that stages deploy."""
        return self.build_dir.with_name(f"animal-store-{self.name}.zip")


TARGETS = {
    "arm64": Target("arm64", "aarch64-manylinux2014", _BUILDS / "build"),
    "x86_64": Target("x86_64", "x86_64-manylinux2014", _BUILDS / "build-x86_64"),
}
