"""Pack the shared layer: locked libraries for the target, our package, nothing that is never loaded, bytecode.

`layers/common/Makefile` runs this for `sam build`: `python -m tools.packaging.layer --architecture arm64 --output DIR`.
The same input gives the same bytes.
"""

import argparse
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tools import ROOT
from tools.packaging import authorities, core_schemas, sbom, sdk_data
from tools.packaging.bytecode import compile_tree
from tools.packaging.targets import PYTHON, TARGETS, Target, require_python

UV = ROOT / ".tools/uv/bin/uv"
SOURCE = ROOT / "layers/common"


@dataclass(frozen=True, slots=True)
class Drop:
    """What does not ship, and why the functions never miss it."""

    patterns: tuple[str, ...]  # globs below the layer's `python` directory
    reason: str
    keep: frozenset[str] = frozenset()  # names right below a dropped directory that stay


DROPS = (
    Drop(
        ("botocore/data",),
        "descriptions of 450 services (27 of 40 MB, and listed at each start): the functions speak to DynamoDB only",
        keep=frozenset(
            {"_retry.json", "dynamodb", "endpoints.json", "partitions.json", "sdk-default-configuration.json"}
        ),
    ),
    Drop(("botocore/data/dynamodb",), "an API version that was replaced in 2012", keep=frozenset({"2012-08-10"})),
    Drop(("botocore/data/*/*/examples-1.json",), "texts for the SDK's own documentation"),
    Drop(
        ("aws_lambda_powertools/event_handler", "aws_lambda_powertools/middleware_factory"),
        "routing, which is API Gateway's work here",
    ),
    Drop(
        ("aws_lambda_powertools/utilities",),
        "features that the layer does not use; the Logger loads what stays",
        keep=frozenset({"__init__.py", "jmespath_utils"}),
    ),
    Drop(("animal_store/models.py",), "the layer has the models compiled"),
    Drop(("dateutil/zoneinfo",), "a time zone database that is read only where the system has none"),
    Drop(("urllib3/contrib/emscripten",), "the browser's transport"),
    Drop(
        ("*.dist-info",),
        "pip's records, which nothing asks for at run time; requirements.txt tells scanners names and versions",
    ),
    Drop(("bin", "**/*.pyi", "**/py.typed", "**/__pycache__", ".lock"), "for developers"),
)


EMPTIED = {
    "pydantic_core/core_schema.py": "CoreConfig = CoreSchema = CoreSchemaType = ErrorType = None",
    "botocore/docs/__init__.py": "",
    "botocore/docs/docstring.py": "ClientMethodDocstring = PaginatorDocstring = WaiterDocstring = lambda **_: None",
}
"""Modules that are loaded at each cold start and never used, with the names that their importers ask for: the types of
schemas (94 M instructions of a cold start), the texts of `help()` (28 M)."""


def _remove(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink()


def trim(python: Path, drops: Iterable[Drop] = DROPS) -> None:
    """Remove what does not ship; stop if the libraries have changed so that a rule matches nothing."""
    for drop in drops:
        for pattern in drop.patterns:
            found = sorted(python.glob(pattern))
            if not found and not (pattern.startswith("**") or pattern == ".lock"):
                raise SystemExit(f"tools/packaging/layer.py drops {pattern}, which the installed libraries do not have")
            for path in found:
                _drop(path, drop.keep)


def _drop(path: Path, keep: frozenset[str]) -> None:
    if not keep:
        _remove(path)
        return
    if missing := keep - {child.name for child in path.iterdir()}:
        raise SystemExit(
            f"tools/packaging/layer.py keeps {path.name}/{min(missing)}, which the installed libraries do not have"
        )
    for child in path.iterdir():
        if child.name not in keep:
            _remove(child)


def keep_licences(python: Path, output: Path) -> None:
    """Copy the licence texts of the installed libraries, which have to go along, to where no start looks for modules.

    Raises:
        SystemExit: A library brings none: look it up.
    """
    for records in sorted(python.glob("*.dist-info")):
        texts = [file for file in records.rglob("*") if re.match(r"(licen[cs]e|notice)\b", file.name, re.IGNORECASE)]
        if not (texts := [file for file in texts if file.is_file()]):
            raise SystemExit(f"{records.stem} brings no licence text: add it in tools/packaging/layer.py")
        folder = output / records.stem
        folder.mkdir(parents=True)
        for text in texts:
            shutil.copyfile(text, folder / text.name)


def _empty(python: Path) -> None:
    """Replace the modules that are never used; `tests/template` calls the functions on the result."""
    for name, text in EMPTIED.items():
        path = python / name
        if not path.exists():
            raise SystemExit(f"tools/packaging/layer.py empties {name}, which the installed libraries do not have")
        path.write_text(f"# Emptied by `make build`: see EMPTIED in tools/packaging/layer.py.\n{text}\n")


def _install(target: Target, python: Path) -> None:
    """Install the locked libraries, hashes checked, for the target's processor whatever this machine's is."""
    command = [str(UV), "pip", "install", "--quiet", "--target", str(python), "--link-mode", "copy"]
    command += ["--python", sys.executable, "--python-platform", target.platform]
    command += ["--python-version", f"{PYTHON[0]}.{PYTHON[1]}", "--require-hashes", "--no-deps"]
    command += ["--only-binary", ":all:", "--requirements", "-"]
    if subprocess.run(command, check=False, text=True, input=sbom.requirements()).returncode:
        raise SystemExit(
            "Cannot install the layer's libraries: is a Python package registry reachable (see the error above)?"
        )


def _write_requirements(python: Path) -> None:
    """List the libraries inside, one `name==version` a line: what vulnerability scanners read."""
    pins = re.findall(r"^[a-z0-9._-]+==[^\s;\\]+", sbom.requirements(), re.MULTILINE | re.IGNORECASE)
    (python / "requirements.txt").write_text("".join(f"{pin}\n" for pin in pins))


def build(target: Target, output: Path) -> None:
    """Pack the layer into a directory that becomes `/opt` on Lambda; what is in it goes."""
    require_python()
    shutil.rmtree(output, ignore_errors=True)
    python = output / "python"
    python.mkdir(parents=True)
    _install(target, python)
    keep_licences(python, output / "licences")
    shutil.copytree(SOURCE / "animal_store", python / "animal_store", ignore=shutil.ignore_patterns("__pycache__"))
    core_schemas.write(python / "animal_store")
    trim(python)
    _empty(python)
    sdk_data.reduce(python / "botocore/data")
    authorities.write(python / "botocore/cacert.pem", python / "animal_store/authorities")
    _write_requirements(python)
    compile_tree(python, "/opt/python")


def main() -> None:
    """Run as a command."""
    parser = argparse.ArgumentParser(description="Pack the shared layer.")
    parser.add_argument("--architecture", choices=sorted(TARGETS), required=True)
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    build(TARGETS[arguments.architecture], arguments.output)


if __name__ == "__main__":
    main()
