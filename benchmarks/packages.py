"""Every measured variant, packaged as it would be deployed: a layer, and a folder per function."""

import os
import platform
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import trustme
from lambda_local import template

from tools import ROOT
from tools.packaging import artifact
from tools.packaging.targets import TARGETS

HERE = ROOT / "benchmarks"
PEERS = HERE / "peers"
# A separate folder for each run, so that two at once do not collide.
BUILD = ROOT / "build" / f"benchmark-{os.getpid()}"
PYTHON = BUILD / "runtime/bin/python"
"""The interpreter of the execution environment: CPython and Lambda's runtime client."""
OPENSSL = BUILD / "openssl"
"""The folder with OpenSSL's libraries."""

AUTHORITY = trustme.CA(key_type=trustme.KeyType.RSA)
"""What every measured function trusts, besides its own authorities."""

OURS, TUNED = "ours", "bare-tuned"
TITLES = {
    OURS: "**this service**",
    TUNED: "bare, tuned",
    "bare": "bare: `boto3.client`",
    "powertools": "Powertools",
}
"""What the report calls each variant."""
TEMPLATE = template.load(ROOT / "template.yaml", {"Stage": "staging"})


class MeasurementError(Exception):
    """What was to be measured does not do what it should; its figures would mean nothing."""


@dataclass(frozen=True, eq=False)
class Package:
    """A variant, ready to run."""

    variant: str
    libraries: Path
    bundle: Path
    """The authorities that it trusts."""
    functions: dict[str, Path]
    """Their folders, by logical id."""
    figures: dict[str, Any]
    """Its row of results.json."""


def build_runtime() -> str:
    """Make the execution environment, and return which OpenSSL it loads."""
    # Not uv's `venv`, which puts its own start-up hook into site-packages.
    _run(ROOT / ".venv/bin/python", "-m", "venv", "--without-pip", PYTHON.parents[1])
    _install(HERE / "runtime.txt", BUILD / "runtime/lib/python3.13/site-packages")
    _compile(BUILD / "runtime")
    _install(HERE / "openssl.txt", OPENSSL)
    for name in ("libssl", "libcrypto"):
        (library,) = (OPENSSL / "psycopg_binary.libs").glob(f"{name}-*.so.3")
        (OPENSSL / f"{name}.so.3").symlink_to(library)
    version = subprocess.check_output(
        [PYTHON, "-c", "import ssl; print(ssl.OPENSSL_VERSION, end='')"],
        env={"LD_LIBRARY_PATH": str(OPENSSL)},
        text=True,
    )
    return check_openssl(version)


def check_openssl(version: str) -> str:
    """Return a version of OpenSSL, or refuse one that Amazon Linux 2023 does not have."""
    if not version.startswith("OpenSSL 3.5."):
        raise MeasurementError(f"Amazon Linux 2023 has OpenSSL 3.5; this is {version}.")
    return version


def build(variant: str) -> Package:
    """Package a variant."""
    layer, task = BUILD / variant / "opt", BUILD / variant / "task"
    libraries = layer / "python"
    functions = dict.fromkeys(TEMPLATE.functions, task)
    machine = "arm64" if platform.machine() == "aarch64" else "x86_64"
    built = TARGETS[machine].build_dir
    roots = "amazon-roots.pem"
    if variant == OURS:
        shutil.copytree(built / "CommonLayer", layer)
        functions = {name: built / name for name in TEMPLATE.functions}
        bundle = layer / roots
    else:
        peer, _, variation = variant.partition("-")
        task.mkdir(parents=True)
        # What a variation has of its own replaces what the peers share.
        for folder in ("_shared", peer, f"{peer}/{variation}"):
            for file in (PEERS / folder).glob("*.py"):
                shutil.copy(file, task)
        _install(PEERS / peer / "requirements.txt", libraries)
        _compile(libraries, task)
        bundle = libraries / "botocore/cacert.pem"
        if variant == TUNED:
            bundle = Path(shutil.copy(built / "CommonLayer" / roots, task))
    folders = (functions["ListPetsFunction"], layer)
    zipped = sum(len(artifact.zipped(folder)) for folder in folders)
    # Replaces the last one, so that as many are parsed as in production.
    others = bundle.read_text().rpartition("-----BEGIN CERTIFICATE-----")[0]
    bundle.write_text(others + AUTHORITY.cert_pem.bytes().decode())
    figures = {"variant": variant, "zipped_mb": round(zipped / 1e6, 1)}
    return Package(variant, libraries, bundle, functions, figures)


def _install(requirements: Path, target: Path) -> None:
    uv = ROOT / ".tools/uv/bin/uv"
    _run(uv, "pip", "install", "--quiet", "--require-hashes", "--link-mode", "copy",
        "--python", PYTHON, "--target", target, "-r", requirements)  # fmt: skip


def _compile(*folders: Path) -> None:
    # Bytecode that does not depend on modification times, which archives change.
    _run(PYTHON, "-m", "compileall", "-q", "-j", "0",
        "--invalidation-mode", "unchecked-hash", *folders)  # fmt: skip


def _run(*command: str | Path) -> None:
    subprocess.run(command, check=True)
