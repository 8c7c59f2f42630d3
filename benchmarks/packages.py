"""Every measured variant, packaged as it would be deployed: a layer, and a folder per function."""

import os
import shutil
import subprocess
from pathlib import Path

import trustme

from tests.support.handlers import TEMPLATE
from tools import ROOT
from tools.packaging.targets import TARGETS

HERE = ROOT / "benchmarks"
RESULTS = HERE / "results.json"
# A separate folder for each run, so that two at once do not collide.
BUILD = ROOT / "build" / f"benchmark-{os.getpid()}"
PYTHON = BUILD / "runtime/bin/python"
"""The interpreter of the execution environment: CPython and Lambda's runtime client."""
OPENSSL = BUILD / "openssl"
"""The folder with OpenSSL's libraries."""
AUTHORITY = trustme.CA(key_type=trustme.KeyType.RSA)
"""What every measured function trusts, besides its own authorities."""

OURS, TUNED, NODE = "this service", "tuned bare", "Node"
PEERS = {
    OURS: [],
    TUNED: ["bare", "tuned"],
    "bare": ["bare"],
    "boto3.resource": ["bare", "resource"],
    "tuned Powertools": ["bare", "frameworks", "powertools", "tuned"],
    "Powertools": ["bare", "frameworks", "powertools"],
    "FastAPI": ["bare", "frameworks", "fastapi"],
    NODE: ["node"],
}
"""The folders of `peers` that a variant is made of; a later one's files replace earlier ones."""
NODE_PROGRAMS = ROOT / ".tools/node/node_modules/.bin"


class MeasurementError(Exception):
    """What was to be measured does not do what it should; its figures would mean nothing."""


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
    """Return a version, or refuse one that Amazon Linux 2023 does not have."""
    if not version.startswith("OpenSSL 3.5."):
        raise MeasurementError(f"Amazon Linux 2023 has OpenSSL 3.5; this is {version}.")
    return version


def build(variant: str) -> Path:
    """Package a variant: a folder for each function, a layer, the authorities that it trusts."""
    package = BUILD / variant
    layer, task = package / "CommonLayer", package / "task"
    built = TARGETS[os.uname().machine.replace("aarch64", "arm64")].build_dir
    trusted = built / "CommonLayer/amazon-roots.pem"
    for part in PEERS[variant]:
        shutil.copytree(HERE / "peers" / part, task, dirs_exist_ok=True)
    if variant == OURS:
        shutil.copytree(built, package)
    else:
        for function in TEMPLATE.functions:
            (package / function).symlink_to(task)
    if variant == NODE:
        _bundle(task)
    elif variant != OURS:
        _install(task / "requirements.txt", layer / "python")
        _compile(layer, task)
        if "tuned" not in PEERS[variant]:
            trusted = layer / "python/botocore/cacert.pem"
    # Replaces the last one, so that as many are parsed as in production.
    others = trusted.read_text().rpartition("-----BEGIN CERTIFICATE-----")[0]
    authority = AUTHORITY.cert_pem.bytes().decode()
    (package / "authorities.pem").write_text(others + authority)
    return package


def _install(requirements: Path, target: Path) -> None:
    uv = ROOT / ".tools/uv/bin/uv"
    _run(uv, "pip", "install", "--quiet", "--require-hashes", "--link-mode", "copy",
        "--python", PYTHON, "--target", target, "-r", requirements)  # fmt: skip


def _bundle(task: Path) -> None:
    _run("env", f"NODE_PATH={NODE_PROGRAMS.parent}", NODE_PROGRAMS / "esbuild",
        "--bundle", "--minify", "--platform=node", "--target=node24", "--log-level=error",
        "--allow-overwrite", f"--outdir={task}", task / "app.js")  # fmt: skip


def _compile(*folders: Path) -> None:
    # Bytecode that does not depend on modification times, which archives change.
    _run(PYTHON, "-m", "compileall", "-q", "-j", "0",
        "--invalidation-mode", "unchecked-hash", *folders)  # fmt: skip


def _run(*command: str | Path) -> None:
    subprocess.run(command, check=True)
