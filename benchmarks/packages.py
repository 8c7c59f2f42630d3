"""Every measured variant, packaged as it would be deployed: a layer, and a folder per function."""

import os
import platform
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import trustme

from benchmarks.fake_dynamodb import TEMPLATE
from tools import ROOT
from tools.packaging import artifact
from tools.packaging.targets import TARGETS

HERE = Path(__file__).parent
PEERS = HERE / "peers"
# A folder of its own for each run, so that two at once do not meet.
BUILD = ROOT / "build" / f"benchmark-{os.getpid()}"
PYTHON = BUILD / "runtime/bin/python"
"""The interpreter of the execution environment: CPython and Lambda's runtime client."""
OPENSSL = BUILD / "openssl"
"""The folder with OpenSSL's libraries."""
_RUNTIME_SDK = BUILD / "runtime-sdk"
# Bytecode that does not depend on modification times, which archives change.
_COMPILE = (
    PYTHON,
    "-m",
    "compileall",
    "-q",
    "-j",
    "0",
    "--invalidation-mode",
    "unchecked-hash",
)

AUTHORITY = trustme.CA(key_type=trustme.KeyType.RSA)
"""What every measured function trusts, beside the authorities that it has."""

OURS, EMPTY, BARE, BARE_ON_RUNTIME = "ours", "empty", "bare", "bare-runtime"
TITLES = {
    OURS: "**this service**",
    EMPTY: "empty handler",
    BARE: "bare: one handler, `boto3.client`",
    BARE_ON_RUNTIME: "bare, on the runtime's own boto3",
    "powertools": "Powertools resolver",
    "fastapi": "FastAPI + Mangum",
}
"""What the report calls each variant."""
_SHARED = {
    EMPTY: (),
    BARE: ("store.py",),
    "powertools": ("store.py", "animals.py"),
    "fastapi": ("store.py", "animals.py"),
}
FUNCTIONS = {
    function.code.name: logical_id
    for logical_id, function in TEMPLATE.functions.items()
}


class MeasurementError(Exception):
    """What was to be measured does not do what it should; a figure of it would mean nothing."""


@dataclass(frozen=True, eq=False)
class Package:
    """A variant, ready to run."""

    variant: str
    libraries: Path
    bundle: Path
    """The authorities that it trusts."""
    functions: dict[str, Path]
    figures: dict[str, Any] = field(default_factory=dict)
    """Its row of results.json."""


def build_runtime() -> str:
    """Make the execution environment, and return which OpenSSL it loads.

    Raises:
        MeasurementError: It is not the series that Amazon Linux 2023 has.
    """
    interpreter = subprocess.check_output(
        [ROOT / "scripts/find-python"], text=True
    ).strip()
    # Not uv's own `venv`, which puts a start-up hook of its own into site-packages.
    _run(interpreter, "-m", "venv", "--without-pip", BUILD / "runtime")
    _install(HERE / "runtime.txt", BUILD / "runtime/lib/python3.13/site-packages")
    _install(PEERS / "bare/requirements.txt", _RUNTIME_SDK)
    for folder in (BUILD / "runtime", _RUNTIME_SDK):
        _run(*_COMPILE, folder)
    _install(HERE / "openssl.txt", OPENSSL)
    for name in ("libssl", "libcrypto"):
        (library,) = (OPENSSL / "psycopg_binary.libs").glob(f"{name}-*.so.3")
        (OPENSSL / f"{name}.so.3").symlink_to(library)
    return check_openssl(
        subprocess.check_output(
            [PYTHON, "-c", "import ssl; print(ssl.OPENSSL_VERSION)"],
            env={"LD_LIBRARY_PATH": str(OPENSSL)},
            text=True,
        ).strip()
    )


def check_openssl(version: str) -> str:
    """Return a version of OpenSSL, or refuse one that Amazon Linux 2023 does not have."""
    if not version.startswith("OpenSSL 3.5."):
        raise MeasurementError(f"Amazon Linux 2023 has OpenSSL 3.5; this is {version}.")
    return version


def build(variant: str) -> Package:
    """Package a variant."""
    folder = BUILD / variant
    layer, task = folder / "opt", folder / "task"
    libraries = layer / "python"
    libraries.mkdir(parents=True)
    task.mkdir()
    functions = dict.fromkeys(FUNCTIONS, task)
    if variant == OURS:
        machine = "arm64" if platform.machine() in ("arm64", "aarch64") else "x86_64"
        built = TARGETS[machine].build_dir
        shutil.copytree(built / "CommonLayer", layer, dirs_exist_ok=True)
        functions = {name: built / logical_id for name, logical_id in FUNCTIONS.items()}
        bundle = layer / "amazon-roots.pem"
    else:
        _lay_out_peer(variant, libraries, task)
        bundle = libraries / "botocore/cacert.pem"
    shipped = (layer, functions["list_pets"])
    zipped = sum(len(artifact.zipped(each)) for each in shipped)
    if variant == BARE_ON_RUNTIME:
        libraries = _RUNTIME_SDK
        bundle = libraries / "botocore/cacert.pem"
    if bundle.exists():
        # In place of the last one, so that as many are parsed as in production.
        others = bundle.read_text().rpartition("-----BEGIN CERTIFICATE-----")[0]
        bundle.write_text(others + AUTHORITY.cert_pem.bytes().decode())
    figures = {
        "variant": variant,
        "packaging": "precompiled",
        "zipped_mb": round(zipped / 1e6, 3),
    }
    return Package(variant, libraries, bundle, functions, figures)


def _lay_out_peer(variant: str, libraries: Path, task: Path) -> None:
    name = variant
    if variant == BARE_ON_RUNTIME:
        name = BARE
    else:
        _install(PEERS / name / "requirements.txt", libraries)
    shutil.copy(PEERS / name / "app.py", task)
    for file in _SHARED[name]:
        shutil.copy(PEERS / "_shared" / file, task)
    _run(*_COMPILE, libraries, task)


def _install(requirements: Path, target: Path) -> None:
    uv = ROOT / ".tools/uv/bin/uv"
    command = [
        uv,
        "pip",
        "install",
        "--quiet",
        "--require-hashes",
        "--link-mode",
        "copy",
    ]
    _run(*command, "--python", PYTHON, "--target", target, "-r", requirements)


def _run(*command: str | Path) -> None:
    subprocess.run(
        command, check=True, env={**os.environ, "UV_PYTHON_DOWNLOADS": "never"}
    )
