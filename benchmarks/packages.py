"""Every measured variant, packaged as it would be deployed: a layer with all that it needs, and a folder per function.

Each carries its own SDK, pinned like ours. `plain` is what `sam build` makes of a requirements file: no bytecode;
`precompiled` adds bytecode that needs no check against its source.
"""

import os
import platform
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import trustme

from benchmarks.fake_dynamodb import TEMPLATE
from tools import ROOT
from tools.packaging import artifact, authorities
from tools.packaging.targets import TARGETS

HERE = Path(__file__).parent
PEERS = HERE / "peers"
# A folder of its own for each run, so that two at once (a whole one, and the quick one of a test) do not meet.
BUILD = ROOT / "build" / f"benchmark-{os.getpid()}"
PYTHON = BUILD / "runtime/bin/python"
"""The interpreter of the execution environment: CPython with Lambda's runtime client and nothing else."""
# Independent of modification times, which archives change.
_COMPILE = (PYTHON, "-m", "compileall", "-q", "-j", "0", "--invalidation-mode", "unchecked-hash")

AUTHORITY = trustme.CA(key_type=trustme.KeyType.RSA)
"""What every measured function trusts, together with all the authorities that its SDK brings."""

PACKAGINGS = ("precompiled", "plain")
# Each variant: what the report calls it, and the files that it ships, of which several share some.
OURS = "ours"
_CLIENT, _RESOURCE = "_shared/client/store.py", ("_shared/animals.py", "_shared/resource/store.py")
VARIANTS: dict[str, tuple[str, tuple[str, ...]]] = {
    OURS: ("**this service**", ()),
    "empty": ("empty handler", ("empty/app.py",)),
    "bare": ("bare: one handler, `boto3.client`", ("bare/app.py", _CLIENT)),
    "powertools": ("Powertools resolver", ("powertools/app.py", *_RESOURCE)),
    "powertools-client": (
        "Powertools, `boto3.client`",
        ("powertools/app.py", "_shared/animals.py", _CLIENT),
    ),
    "fastapi": ("FastAPI + Mangum", ("fastapi/app.py", *_RESOURCE)),
    "chalice": ("Chalice", ("chalice/app.py", *_RESOURCE)),
    "flask": ("Flask + apig-wsgi", ("flask/app.py", *_RESOURCE)),
}
FUNCTIONS = {function.code.name: logical_id for logical_id, function in TEMPLATE.functions.items()}


@dataclass(frozen=True, eq=False)
class Package:
    """A variant, ready to run: what Lambda shows below `/opt`, and, for each function folder, as `/var/task`."""

    variant: str
    packaging: str
    layer: Path
    functions: dict[str, Path]
    figures: dict[str, Any]  # its row of results.json


def build_runtime() -> None:
    """Make the execution environment with a CPython 3.13, precompiled as AWS ships it."""
    interpreter = subprocess.check_output([ROOT / "scripts/find-python"], text=True).strip()
    # Not uv's own `venv`, which puts a start-up hook of its own into site-packages.
    _run(interpreter, "-m", "venv", "--without-pip", BUILD / "runtime")
    _install(HERE / "runtime.txt", BUILD / "runtime/lib/python3.13/site-packages")
    _run(*_COMPILE, BUILD / "runtime")


def build(variant: str, packaging: str) -> Package:
    """Package a variant."""
    place = BUILD / f"{variant}-{packaging}"
    layer, task = place / "opt", place / "task"
    functions = {name: task / name if variant == OURS else task for name in FUNCTIONS}
    if variant != OURS:
        _lay_out_peer(variant, layer, task)
        if packaging == "precompiled":
            _run(*_COMPILE, place)
    elif packaging == "precompiled":  # by `make build`
        built = TARGETS[
            "arm64" if platform.machine() in ("arm64", "aarch64") else "x86_64"
        ].build_dir
        shutil.copytree(built / "CommonLayer", layer)
        for name, folder in functions.items():
            shutil.copytree(built / FUNCTIONS[name], folder)
    else:  # what SAM's own builder would make of the same sources
        _install(ROOT / "layers/common/requirements.txt", layer / "python")
        no_bytecode = shutil.ignore_patterns("__pycache__")
        shutil.copytree(
            ROOT / "layers/common/animal_store", layer / "python/animal_store", ignore=no_bytecode
        )
        shutil.copytree(ROOT / "functions", task, ignore=no_bytecode)
    shipped = (layer, functions["list_pets"])
    zipped = sum(len(artifact.zipped(folder)) for folder in shipped)
    unzipped = sum(
        path.stat().st_size for folder in shipped for path in folder.rglob("*") if path.is_file()
    )
    _trust_the_benchmark(layer / "python")
    figures = {"zipped_mb": round(zipped / 1e6, 3), "unzipped_mb": round(unzipped / 1e6, 3)}
    return Package(
        variant,
        packaging,
        layer,
        functions,
        {"variant": variant, "packaging": packaging, **figures},
    )


def _lay_out_peer(variant: str, layer: Path, task: Path) -> None:
    files = [PEERS / file for file in VARIANTS[variant][1]]
    _install(files[0].with_name("requirements.txt"), layer / "python")
    task.mkdir()
    for file in files:
        shutil.copy(file, task)
    if variant == "chalice":
        # Of Chalice, `chalice package` ships these two modules (chalice/deploy/packager.py), not its command line.
        _install(PEERS / "chalice/vendored.txt", BUILD / "chalice", "--no-deps")
        (task / "chalice").mkdir(exist_ok=True)
        for module in ("__init__.py", "app.py"):
            shutil.copy(BUILD / "chalice/chalice" / module, task / "chalice")


def _trust_the_benchmark(packages: Path) -> None:
    """Add the authority of this run to those of the SDK, in the form in which the variant has them."""
    for bundle in packages.glob("*/cacert.pem"):  # of botocore and certifi
        bundle.write_bytes(bundle.read_bytes() + AUTHORITY.cert_pem.bytes())
    if (directory := packages / "animal_store/authorities").exists():
        AUTHORITY.cert_pem.write_to_path(BUILD / "authority.pem")
        authorities.write(BUILD / "authority.pem", directory)


def _install(requirements: Path, target: Path, *options: str) -> None:
    target.mkdir(parents=True, exist_ok=True)
    install = (
        ROOT / ".tools/uv/bin/uv",
        "pip",
        "install",
        "--quiet",
        "--require-hashes",
        "--link-mode",
        "copy",
    )
    _run(*install, *options, "--python", PYTHON, "--target", target, "-r", requirements)


def _run(*command: str | Path) -> None:
    subprocess.run(command, check=True, env={**os.environ, "UV_PYTHON_DOWNLOADS": "never"})
