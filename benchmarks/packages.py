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
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tools import ROOT
from tools.packaging.targets import TARGETS

PEERS = Path(__file__).parent / "peers"
# A folder of its own for each run, so that two at once (a whole one, and the quick one of a test) do not meet.
BUILD = ROOT / "build" / f"benchmark-{os.getpid()}"

Packaging = Literal["precompiled", "plain"]
PACKAGINGS: tuple[Packaging, ...] = ("precompiled", "plain")

OURS = "ours"
VARIANTS = (OURS, "empty", "bare", "powertools", "fastapi", "chalice", "flask")
_FUNCTIONS = {"list_pets": "ListPetsFunction", "create_pet": "CreatePetFunction", "get_pet": "GetPetFunction"}
# What the frameworks share; the floor and the bare handler do not.
_WITH_SHARED = ("powertools", "fastapi", "chalice", "flask")


@dataclass(frozen=True)
class Package:
    """A variant, ready to run.

    Args:
        variant: One of `VARIANTS`.
        packaging: How it was packaged.
        layer: What Lambda shows below `/opt`.
        functions: What Lambda shows as `/var/task`, by function folder.
        handler: The handler setting.
        zipped: The size of the layer's archive and that of one function's, together, in bytes.
        unzipped: The same, unpacked.
    """

    variant: str
    packaging: Packaging
    layer: Path
    functions: dict[str, Path]
    handler: str
    zipped: int
    unzipped: int


def python() -> Path:
    """Return the interpreter of the execution environment: CPython with Lambda's runtime client and nothing else."""
    return BUILD / "runtime" / "bin" / "python"


def build_runtime(interpreter: str) -> None:
    """Make the execution environment, precompiled as AWS ships it.

    Args:
        interpreter: The path of a CPython 3.13.
    """
    environment = BUILD / "runtime"
    _remove(environment)
    # Not uv's own `venv`, which puts a start-up hook of its own into site-packages.
    _run(interpreter, "-m", "venv", "--without-pip", str(environment))
    _install(Path(__file__).parent / "runtime.txt", next(environment.glob("lib/python3*")) / "site-packages")
    _compile(environment)


def clean_up() -> None:
    """Remove all that this run has packaged."""
    _remove(BUILD)


def build(variant: str, packaging: Packaging) -> Package:
    """Package a variant; what an earlier call has made of it is replaced."""
    place = BUILD / f"{variant}-{packaging}"
    _remove(place)
    layer, task = place / "opt", place / "task"
    (layer / "python").mkdir(parents=True)
    if variant == OURS:
        _lay_out_ours(packaging, layer, task)
        functions = {name: task / name for name in _FUNCTIONS}
    else:
        _lay_out_peer(variant, layer, task)
        functions = dict.fromkeys(_FUNCTIONS, task)
    if packaging == "precompiled" and variant != OURS:
        _compile(place)
    first_function = functions["list_pets"]
    package = Package(
        variant,
        packaging,
        layer,
        functions,
        "app.app" if variant == "chalice" else "app.handler",
        zipped=_zip(layer, place / "layer.zip") + _zip(first_function, place / "function.zip"),
        unzipped=_size(layer) + _size(first_function),
    )
    _make_read_only(layer, task)
    return package


def _lay_out_ours(packaging: Packaging, layer: Path, task: Path) -> None:
    """Take what `make build` has made, or, for `plain`, make what SAM's own builder would make of the same sources."""
    if packaging == "precompiled":
        build_dir = TARGETS["arm64" if platform.machine() in ("arm64", "aarch64") else "x86_64"].build_dir
        shutil.copytree(build_dir / "CommonLayer", layer, dirs_exist_ok=True)
        for name, logical_id in _FUNCTIONS.items():
            shutil.copytree(build_dir / logical_id, task / name)
        return
    sources = ROOT / "layers" / "common"
    _install(sources / "requirements.txt", layer / "python")
    no_bytecode = shutil.ignore_patterns("__pycache__")
    shutil.copytree(sources / "animal_store", layer / "python" / "animal_store", ignore=no_bytecode)
    for name in _FUNCTIONS:
        shutil.copytree(ROOT / "functions" / name, task / name, ignore=no_bytecode)


def _lay_out_peer(variant: str, layer: Path, task: Path) -> None:
    sources = PEERS / variant
    _install(sources / "requirements.txt", layer / "python")
    task.mkdir()
    shutil.copy(sources / "app.py", task)
    if variant in _WITH_SHARED:
        shutil.copy(PEERS / "_shared" / "animals.py", task)
    if variant == "chalice":
        # Of Chalice, `chalice package` ships these two modules (chalice/deploy/packager.py), not its command line.
        whole = task.parent / "chalice"
        _install(sources / "vendored.txt", whole, "--no-deps")
        (task / "chalice").mkdir()
        for module in ("__init__.py", "app.py"):
            shutil.copy(whole / "chalice" / module, task / "chalice")
        _remove(whole)


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


def _zip(folder: Path, archive: Path) -> int:
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        for path in _files(folder):
            file.write(path, path.relative_to(folder))
    size = archive.stat().st_size
    archive.unlink()
    return size


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in _files(folder))


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _make_read_only(*folders: Path) -> None:
    for folder in folders:
        for path in (folder, *folder.rglob("*")):
            path.chmod(path.stat().st_mode & ~(stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH))


def _remove(folder: Path) -> None:
    for path in (folder, *folder.rglob("*")):
        if path.is_dir() and not path.is_symlink():
            path.chmod(stat.S_IRWXU)
    if folder.exists():
        shutil.rmtree(folder)


def _run(*command: str) -> None:
    subprocess.run(command, check=True, env={**os.environ, "UV_PYTHON_DOWNLOADS": "never"})
