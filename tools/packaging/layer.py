"""Pack the shared layer: locked libraries for the target, our package, bytecode; nothing unused.

`layers/common/Makefile` runs it: `python -m tools.packaging.layer FOLDER arm64`. The same input
gives the same bytes.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tools import ROOT
from tools.packaging import sbom, sdk_data
from tools.packaging.bytecode import compile_tree, require_python
from tools.packaging.targets import PYTHON, TARGETS, Target

SOURCE = ROOT / "layers/common"

EMPTIED = {
    "pydantic_core/core_schema.py": "CoreConfig = CoreSchema = CoreSchemaType = ErrorType = None",
    "botocore/docs/__init__.py": "",
    "botocore/docs/docstring.py": (
        "ClientMethodDocstring = PaginatorDocstring = WaiterDocstring = lambda **_: None"
    ),
    "urllib3/http2/__init__.py": "",
}
"""Modules that are loaded at each cold start and never used, with the names that importers ask for.

They are the types of schemas (94 M instructions of a cold start), the texts of `help()` (28 M), and
HTTP/2, for which urllib3 would import the standard library's reader of package metadata (18 M).
"""

DROPS: dict[str, set[str]] = {
    # Descriptions of 450 services (27 of 40 MB, listed at each start); we call DynamoDB only.
    "botocore/data/*/": {"dynamodb"},
    "botocore/data/dynamodb/*": {
        "2012-08-10"
    },  # not the API version that was replaced in 2012
    "botocore/data/*/*/examples-1.json": set(),  # texts for the SDK's own documentation
    "aws_lambda_powertools/event_handler": set(),  # routing, which is API Gateway's work here
    "aws_lambda_powertools/middleware_factory": set(),
    "aws_lambda_powertools/utilities/*": {
        "__init__.py",
        "jmespath_utils",
    },  # what the Logger loads
    "animal_store/models.py": set(),  # the layer has the models compiled
    "dateutil/zoneinfo": set(),  # a time zone database that is read only where the system has none
    "urllib3/contrib/emscripten": set(),  # the browser's transport
    "*.dist-info": set(),  # not read at run time; requirements.txt tells scanners the versions
    **{
        for_developers: set()
        for for_developers in ("bin", "**/*.pyi", "**/py.typed", ".lock")
    },
    **{written_again: set() for written_again in EMPTIED},
}
"""What does not ship, as globs below `python`; of what they match, these names stay."""


AMAZON_ROOTS = (
    *(f"Amazon Root CA {number}" for number in (1, 2, 3, 4)),
    "Starfield Services Root Certificate Authority - G2",
)
"""The roots of Amazon Trust Services, all five: https://www.amazontrust.com/repository/"""


def trim(python: Path, drops: Mapping[str, set[str]] = DROPS) -> None:
    """Remove what does not ship; stop if a rule no longer matches anything."""
    for pattern, keep in drops.items():
        found = list(python.glob(pattern))
        if not found or keep - {path.name for path in found}:
            raise SystemExit(
                "DROPS in tools/packaging/layer.py no longer fits the installed libraries: "
                f"{pattern}"
            )
        for path in found:
            if path.name not in keep:
                shutil.rmtree(path) if path.is_dir() else path.unlink()


def keep_licences(python: Path, output: Path) -> None:
    """Copy the libraries' licence texts, which go along, to where no start looks for modules."""
    for records in sorted(python.glob("*.dist-info")):
        texts = [
            file
            for file in records.rglob("*")
            if re.match(r"(licen[cs]e|notice)\b", file.name, re.IGNORECASE)
        ]
        if not texts:
            raise SystemExit(
                f"{records.stem} brings no licence text: look it up, "
                "add it in tools/packaging/layer.py"
            )
        (output / records.stem).mkdir(parents=True)
        for text in texts:
            shutil.copyfile(text, output / records.stem / text.name)


def write_amazon_roots(bundle: Path, output: Path) -> None:
    """Write Amazon's authorities alone; OpenSSL parses all of a bundle, 126 in the SDK's own."""
    labelled = r'^# Label: "(.+)"\n(?:#.*\n)*(-----BEGIN[^#]+END CERTIFICATE-----\n)'
    certificates = dict(re.findall(labelled, bundle.read_text(), re.MULTILINE))
    output.write_text("".join(certificates[name] for name in AMAZON_ROOTS))


def _install(target: Target, python: Path) -> None:
    """Install the locked libraries for the target's processor, hashes checked."""
    command = [str(sbom.UV), "pip", "install", "--quiet", "--link-mode", "copy"]
    command += ["--target", str(python)]
    command += ["--python", sys.executable, "--python-platform", target.platform]
    command += [
        "--python-version",
        f"{PYTHON[0]}.{PYTHON[1]}",
        "--require-hashes",
        "--no-deps",
    ]
    command += ["--only-binary", ":all:", "--requirements", "-"]
    pins = sbom.export("requirements.txt")
    if subprocess.run(command, check=False, text=True, input=pins).returncode:
        raise SystemExit(
            "Cannot install the layer's libraries (see above): "
            "is a Python package registry reachable?"
        )


def _compile_models(package: Path) -> None:
    """Put the compiled models where `validators` looks first: no function loads pydantic."""
    from animal_store.models import compile_core_schemas

    docstring = '"""Made by `make build` from models.py."""'
    source = f"{docstring}\n\nCORE_SCHEMAS = {compile_core_schemas()}\n"
    (package / "core_schemas.py").write_text(source)


def build(target: Target, output: Path) -> None:
    """Pack the layer into a directory that becomes `/opt` on Lambda; what is in it goes."""
    require_python()
    shutil.rmtree(output, ignore_errors=True)
    python = output / "python"
    python.mkdir(parents=True)
    _install(target, python)
    keep_licences(python, output / "licences")
    shutil.copytree(
        SOURCE / "animal_store",
        python / "animal_store",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    _compile_models(python / "animal_store")
    trim(python)
    for name, text in EMPTIED.items():
        (python / name).write_text(
            f"# Emptied by `make build`: see EMPTIED in tools/packaging/layer.py.\n{text}\n"
        )
    sdk_data.reduce(python / "botocore/data")
    write_amazon_roots(python / "botocore/cacert.pem", output / "amazon-roots.pem")
    # What vulnerability scanners read.
    pins = re.findall(
        r"^[\w.-]+==[^\s;\\]+", sbom.export("requirements.txt"), re.MULTILINE
    )
    (python / "requirements.txt").write_text("\n".join((*pins, "")))
    compile_tree(python, "/opt/python")


def add_compiled_libraries(target: Target, output: Path) -> None:
    """Add those of another processor, whose names differ, so that the layer serves both."""
    with tempfile.TemporaryDirectory() as folder:
        _install(target, Path(folder))
        for library in Path(folder).rglob("*.so"):
            shutil.copy(library, output / "python" / library.relative_to(folder))


if __name__ == "__main__":
    output, first, *others = sys.argv[1:]
    build(TARGETS[first], Path(output))
    for name in others:
        add_compiled_libraries(TARGETS[name], Path(output))
