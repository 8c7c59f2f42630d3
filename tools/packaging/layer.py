"""Pack the shared layer: locked libraries for the target, our package, nothing that is never loaded, bytecode.

The same input gives the same bytes. `layers/common/Makefile` runs this for `sam build`:

    python -m tools.packaging.layer --architecture arm64 --output DIR
"""

import argparse
import os
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

_FIXED_TIME = 315_532_800  # 1980-01-01, the earliest that a zip can say


@dataclass(frozen=True, slots=True)
class Drop:
    """What does not ship.

    Args:
        patterns: Globs below the layer's `python` directory.
        reason: Why the functions never miss it.
        keep: Names right below a dropped directory that stay.
    """

    patterns: tuple[str, ...]
    reason: str
    keep: frozenset[str] = frozenset()


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
        ("boto3", "s3transfer"), "resources and S3 transfers: the layer makes its one client by botocore's own session"
    ),
    Drop(
        ("aws_lambda_powertools/event_handler", "aws_lambda_powertools/middleware_factory"),
        "routing, which is API Gateway's work here",
    ),
    Drop(
        ("aws_lambda_powertools/utilities",),
        "features that the layer does not use; the Logger loads what stays",
        keep=frozenset({"__init__.py", "jmespath_utils"}),
    ),
    Drop(
        ("pydantic", "annotated_types", "typing_inspection", "animal_store/models.py"),
        "what compiles the models: the layer has them compiled, and pydantic_core, which runs them",
    ),
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
    """Remove what does not ship.

    Args:
        python: The layer's `python` directory.
        drops: What to remove, in order.

    Raises:
        SystemExit: A pattern or a name to keep matches nothing: the libraries have changed, look at its reason again.
    """
    for drop in drops:
        for pattern in drop.patterns:
            found = sorted(python.glob(pattern))
            optional = pattern.startswith("**") or pattern == ".lock"
            if not found and not optional:
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
    for child in sorted(path.iterdir()):
        if child.name not in keep:
            _remove(child)


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
    command += [
        "--python",
        sys.executable,
        "--python-platform",
        target.platform,
        "--python-version",
        f"{PYTHON[0]}.{PYTHON[1]}",
    ]
    command += [
        "--require-hashes",
        "--no-deps",
        "--only-binary",
        ":all:",
        "--requirements",
        str(SOURCE / "requirements.txt"),
    ]
    if subprocess.run(command, check=False).returncode:
        raise SystemExit(
            "Cannot install the layer's libraries: is a Python package registry reachable (see the error above)?"
        )


def _write_bill_of_materials(python: Path) -> None:
    """Say which libraries are inside, one `name==version` a line: what vulnerability scanners read."""
    pins = re.findall(
        r"^([a-z0-9._-]+)(==[^\s;\\]+)", (SOURCE / "requirements.txt").read_text(), re.MULTILINE | re.IGNORECASE
    )
    inside = sbom.packed((name for name, _ in pins), python)
    (python / "requirements.txt").write_text("".join(f"{name}{version}\n" for name, version in pins if name in inside))


def _normalise(directory: Path) -> None:
    """Give every file the same time and the rights that Lambda asks for: readable by all."""
    for path in [directory, *sorted(directory.rglob("*"))]:
        path.chmod(0o755 if path.is_dir() else 0o644)
        os.utime(path, (_FIXED_TIME, _FIXED_TIME))


def build(target: Target, output: Path) -> None:
    """Pack the layer.

    Args:
        target: The processor to pack for.
        output: Directory that becomes `/opt` on Lambda; what is in it goes.

    Raises:
        SystemExit: This Python is not Lambda's, or the libraries can not be installed.
    """
    require_python()
    shutil.rmtree(output, ignore_errors=True)
    python = output / "python"
    python.mkdir(parents=True)
    _install(target, python)
    shutil.copytree(SOURCE / "animal_store", python / "animal_store", ignore=shutil.ignore_patterns("__pycache__"))
    core_schemas.write(python / "animal_store")
    trim(python)
    _empty(python)
    sdk_data.reduce(python / "botocore/data")
    authorities.write(python / "botocore/cacert.pem", python / "animal_store/authorities")
    _write_bill_of_materials(python)
    compile_tree(python, "/opt/python")
    _normalise(output)


def main() -> None:
    """Run as a command."""
    parser = argparse.ArgumentParser(description="Pack the shared layer.")
    parser.add_argument("--architecture", choices=sorted(TARGETS), required=True)
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    build(TARGETS[arguments.architecture], arguments.output)


if __name__ == "__main__":
    main()
