"""The targets of a build: Lambda's version of Python, and its two architectures."""

import platform
from pathlib import Path

from tools import ROOT

PYTHON = (ROOT / ".python-version").read_text().strip()

# The names that uv uses for the architectures. Libraries for manylinux2014 require glibc 2.17 or
# newer. Lambda runs on Amazon Linux 2023, which has glibc 2.34.
PLATFORMS = {"arm64": "aarch64-manylinux2014", "x86_64": "x86_64-manylinux2014"}

HOST_ARCHITECTURE = platform.machine().replace("aarch64", "arm64")

BUILD = ROOT / ".aws-sam/build"
"""The folder of the last build."""


def artifact_path(architecture: str) -> Path:
    """Return the path of the artifact for an architecture."""
    return BUILD.with_name(f"animal-store-{architecture}.zip")
