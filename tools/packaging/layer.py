"""Pack the shared layer: locked libraries for the target, our package, bytecode; nothing unused.

`layers/common/Makefile` runs it: `python -m tools.packaging.layer FOLDER arm64`. The same input
gives the same bytes.
"""

import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tools import ROOT
from tools.packaging import sbom, sdk_data
from tools.packaging.bytecode import compile_tree, require_python
from tools.packaging.targets import TARGETS, Target

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

DROPS = {
    # Descriptions of 450 services (27 of 40 MB, listed at each start); we call DynamoDB only.
    "botocore/data/*/": "dynamodb",
    # Not the API version that was replaced in 2012.
    "botocore/data/dynamodb/*/": "2012-08-10",
    "botocore/data/*/*/examples-1.json": "",  # texts for the SDK's own documentation
    "aws_lambda_powertools/event_handler": "",  # routing, which is API Gateway's work here
    "aws_lambda_powertools/middleware_factory": "",
    "aws_lambda_powertools/utilities/*/": "jmespath_utils",  # what the Logger loads
    "animal_store/models.py": "",  # the layer has the models compiled
    "dateutil/zoneinfo": "",  # a time zone database that is read only where the system has none
    "urllib3/contrib/emscripten": "",  # the browser's transport
    "*.dist-info": "",  # not read at run time; requirements.txt tells scanners the versions
    # For developers.
    "bin": "",
    "**/*.pyi": "",
    # Written again.
    **dict.fromkeys(EMPTIED, ""),
}
"""What does not ship, as globs below `python`; a match with the name given here stays."""


AMAZON_ROOTS = (
    "Amazon Root CA 1",
    "Amazon Root CA 2",
    "Amazon Root CA 3",
    "Amazon Root CA 4",
    "Starfield Services Root Certificate Authority - G2",
)
"""The roots of Amazon Trust Services, all five: https://www.amazontrust.com/repository/"""


def trim(python: Path, drops: Mapping[str, str] = DROPS) -> None:
    """Remove what does not ship; stop if a rule no longer matches anything."""
    for pattern, kept in drops.items():
        found = [path for path in python.glob(pattern) if path.name != kept]
        if not found:
            raise SystemExit(f"DROPS in {__file__} matches nothing: {pattern}")
        for path in found:
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def write_amazon_roots(bundle: Path, output: Path) -> None:
    """Write only Amazon's authorities; OpenSSL parses a whole bundle, and the SDK's has 126."""
    certificates = bundle.read_text().split("\n\n")
    with output.open("w") as file:
        for label in AMAZON_ROOTS:
            (certificate,) = [each for each in certificates if f'"{label}"' in each]
            file.write(f"{certificate}\n")


def _install(target: Target, python: Path) -> None:
    """Install the locked libraries for the target's processor, hashes checked."""
    options = ["--quiet", "--no-deps", "--require-hashes", "--only-binary", ":all:"]
    options += ["--python", sys.executable, "--python-platform", target.platform]
    options += ["--link-mode", "copy", "--target", str(python)]
    command = [str(sbom.UV), "pip", "install", *options, "--requirements", "-"]
    pins = sbom.export("requirements.txt")
    if subprocess.run(command, check=False, text=True, input=pins).returncode:
        raise SystemExit("Cannot install the layer's libraries (see above)")


def build(target: Target, output: Path) -> None:
    """Pack the layer into a directory that becomes `/opt` on Lambda; old contents are deleted."""
    from animal_store.models import compile_core_schemas

    require_python()
    shutil.rmtree(output, ignore_errors=True)
    python = output / "python"
    _install(target, python)
    # Licence texts ship too, where no start looks for modules.
    for records in python.glob("*.dist-info"):
        folder = output / "licences" / records.stem
        others = shutil.ignore_patterns("METADATA", "RECORD", "sboms")
        shutil.copytree(records, folder, ignore=others)
    package = python / "animal_store"
    shutil.copytree(ROOT / "layers/common/animal_store", package)
    # Where `validators` looks first: no function loads pydantic.
    schemas = f"# Made from models.py.\nCORE_SCHEMAS = {compile_core_schemas()}\n"
    (package / "core_schemas.py").write_text(schemas)
    trim(python)
    for name, text in EMPTIED.items():
        (python / name).write_text(f"# Emptied by `make build`.\n{text}\n")
    sdk_data.reduce(python / "botocore/data")
    write_amazon_roots(python / "botocore/cacert.pem", output / "amazon-roots.pem")
    # What vulnerability scanners read.
    bare = ("--no-hashes", "--no-annotate", "--no-header")
    (python / "requirements.txt").write_text(sbom.export("requirements.txt", *bare))
    compile_tree(python, "/opt/python")


if __name__ == "__main__":
    build(TARGETS[sys.argv[2]], Path(sys.argv[1]))
