"""Every measured variant, packaged as it would be deployed: a layer with all that it needs, and a folder per function.

Each package carries its own SDK, pinned like ours, as AWS advises
(https://docs.aws.amazon.com/lambda/latest/dg/python-package.html#python-package-dependencies).
`plain` is what `sam build` makes of a requirements file: no bytecode.
`precompiled` adds bytecode that needs no check against its source.
"""

import os
import platform
import shutil
import stat
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from benchmarks.fake_dynamodb import AUTHORITY, TEMPLATE
from tools import ROOT
from tools.packaging import artifact, authorities
from tools.packaging.targets import TARGETS

HERE = Path(__file__).parent
PEERS = HERE / "peers"
# A folder of its own for each run, so that two at once (a whole one, and the quick one of a test) do not meet.
BUILD = ROOT / "build" / f"benchmark-{os.getpid()}"

Packaging = Literal["precompiled", "plain"]
PACKAGINGS: tuple[Packaging, ...] = ("precompiled", "plain")

# Each variant: what the report calls it, and the files that it ships, of which several share some.
OURS = "ours"
_CLIENT, _RESOURCE = "_shared/client/store.py", ("_shared/animals.py", "_shared/resource/store.py")
VARIANTS: dict[str, tuple[str, tuple[str, ...]]] = {
    OURS: ("**this service**", ()),
    "empty": ("empty handler", ("empty/app.py",)),
    "bare": ("bare: one handler, `boto3.client`", ("bare/app.py", _CLIENT)),
    "powertools": ("Powertools resolver", ("powertools/app.py", *_RESOURCE)),
    "powertools-client": ("Powertools, `boto3.client`", ("powertools/app.py", "_shared/animals.py", _CLIENT)),
    "fastapi": ("FastAPI + Mangum", ("fastapi/app.py", *_RESOURCE)),
    "chalice": ("Chalice", ("chalice/app.py", *_RESOURCE)),
    "flask": ("Flask + apig-wsgi", ("flask/app.py", *_RESOURCE)),
}
FUNCTIONS = {function.code.name: logical_id for logical_id, function in TEMPLATE.functions.items()}


@dataclass(frozen=True)
class Package:
    """A variant, ready to run: what Lambda shows below `/opt`, and, for each function folder, as `/var/task`."""

    variant: str
    packaging: Packaging
    layer: Path
    functions: dict[str, Path]
    zipped: int
    unzipped: int

    @property
    def handler(self) -> str:
        """The handler setting."""
        return "app.app" if self.variant == "chalice" else "app.handler"


def python() -> Path:
    """Return the interpreter of the execution environment: CPython with Lambda's runtime client and nothing else."""
    return BUILD / "runtime" / "bin" / "python"


def build_runtime(interpreter: str) -> None:
    """Make the execution environment with a CPython 3.13, precompiled as AWS ships it."""
    environment = BUILD / "runtime"
    # Not uv's own `venv`, which puts a start-up hook of its own into site-packages.
    _run(interpreter, "-m", "venv", "--without-pip", str(environment))
    _install(HERE / "runtime.txt", next(environment.glob("lib/python3*")) / "site-packages")
    _compile(environment)


def clean_up() -> None:
    """Remove all that this run has packaged."""
    for path in (BUILD, *BUILD.rglob("*")):
        if path.is_dir() and not path.is_symlink():
            path.chmod(stat.S_IRWXU)
    shutil.rmtree(BUILD, ignore_errors=True)


def build(variant: str, packaging: Packaging) -> Package:
    """Package a variant."""
    place = BUILD / f"{variant}-{packaging}"
    layer, task = place / "opt", place / "task"
    (layer / "python").mkdir(parents=True)
    functions = dict.fromkeys(FUNCTIONS, task)
    if variant == OURS:
        functions = {name: task / name for name in FUNCTIONS}
        _lay_out_ours(packaging, layer, functions)
    else:
        _lay_out_peer(variant, layer, task)
    if packaging == "precompiled" and variant != OURS:
        _compile(place)
    shipped = (layer, functions["list_pets"])
    package = Package(
        variant,
        packaging,
        layer,
        functions,
        zipped=sum(len(artifact.zipped(folder)) for folder in shipped),
        unzipped=sum(path.stat().st_size for folder in shipped for path in folder.rglob("*") if path.is_file()),
    )
    _trust_the_benchmark(layer / "python")
    for path in (layer, task, *layer.rglob("*"), *task.rglob("*")):  # read-only, as Lambda shows them
        path.chmod(path.stat().st_mode & ~(stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH))
    return package


def _trust_the_benchmark(packages: Path) -> None:
    """Add the authority of this run to those of the SDK, in the form in which the variant has them."""
    for bundle in (packages / "botocore/cacert.pem", packages / "certifi/cacert.pem"):
        if bundle.exists():
            bundle.write_bytes(bundle.read_bytes() + AUTHORITY.cert_pem.bytes())
    if (directory := packages / "animal_store/authorities").exists():
        AUTHORITY.cert_pem.write_to_path(BUILD / "authority.pem")
        authorities.write(BUILD / "authority.pem", directory)


def _lay_out_ours(packaging: Packaging, layer: Path, functions: dict[str, Path]) -> None:
    """Take what `make build` has made, or, for `plain`, make what SAM's own builder would make of the same sources."""
    if packaging == "precompiled":
        build_dir = TARGETS["arm64" if platform.machine() in ("arm64", "aarch64") else "x86_64"].build_dir
        shutil.copytree(build_dir / "CommonLayer", layer, dirs_exist_ok=True)
        for name, folder in functions.items():
            shutil.copytree(build_dir / FUNCTIONS[name], folder)
        return
    sources = ROOT / "layers/common"
    _install(sources / "requirements.txt", layer / "python")
    no_bytecode = shutil.ignore_patterns("__pycache__")
    shutil.copytree(sources / "animal_store", layer / "python/animal_store", ignore=no_bytecode)
    for name, folder in functions.items():
        shutil.copytree(ROOT / "functions" / name, folder, ignore=no_bytecode)


def _lay_out_peer(variant: str, layer: Path, task: Path) -> None:
    _, files = VARIANTS[variant]
    requirements = (PEERS / files[0]).with_name("requirements.txt")
    _install(requirements, layer / "python")
    task.mkdir()
    for file in files:
        shutil.copy(PEERS / file, task)
    if variant == "chalice":
        # Of Chalice, `chalice package` ships these two modules (chalice/deploy/packager.py), not its command line.
        whole = task.parent / "chalice"
        _install(requirements.with_name("vendored.txt"), whole, "--no-deps")
        (task / "chalice").mkdir()
        for module in ("__init__.py", "app.py"):
            shutil.copy(whole / "chalice" / module, task / "chalice")
        shutil.rmtree(whole)


def _install(requirements: Path, target: Path, *options: str) -> None:
    if not requirements.read_text().strip():
        return
    uv = ROOT / ".tools" / "uv" / "bin" / "uv"
    _run(
        *(str(uv), "pip", "install", "--quiet", "--require-hashes", "--python", str(python())),
        *("--link-mode", "copy", "--target", str(target), "--requirement", str(requirements), *options),
    )


def _compile(place: Path) -> None:
    """Compile all below a folder, independent of modification times, which archives change."""
    _run(str(python()), "-m", "compileall", "-q", "-j", "0", "--invalidation-mode", "unchecked-hash", str(place))


def _run(*command: str) -> None:
    subprocess.run(command, check=True, env={**os.environ, "UV_PYTHON_DOWNLOADS": "never"})
