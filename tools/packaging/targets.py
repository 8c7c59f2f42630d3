"""Lambda's Python and its two processor architectures: the service is built for these."""

import platform
from pathlib import Path

from tools import ROOT

PYTHON = (ROOT / ".python-version").read_text().strip()

# uv's names; manylinux2014 asks for glibc 2.17, and Amazon Linux 2023 has 2.34.
PLATFORMS = {"arm64": "aarch64-manylinux2014", "x86_64": "x86_64-manylinux2014"}

MACHINE = platform.machine().replace("aarch64", "arm64")

BUILD = ROOT / ".aws-sam/build"
"""The folder of the last build."""


def artifact_of(architecture: str) -> Path:
    """Return the path of the artifact that is deployed to the stages."""
    return BUILD.with_name(f"animal-store-{architecture}.zip")
