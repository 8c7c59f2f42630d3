"""Pack the shared layer: locked libraries for the target, our package, bytecode; nothing unused.

`layers/common/Makefile` runs it: `python -m tools.packaging.layer FOLDER arm64`. Of two processors,
the layer has the compiled libraries of both. The same input gives the same bytes.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tools import ROOT
from tools.packaging import sdk_data
from tools.packaging.bytecode import compile_tree, require_python
from tools.packaging.targets import PLATFORMS

SHIPPED = (
    # The models need these, and ship as compiled schemas.
    "--no-emit-package=annotated-types",
    "--no-emit-package=pydantic",
    "--no-emit-package=typing-inspection",
    # The layer makes its only client with botocore's session: no resources, no S3 transfers.
    "--no-emit-package=boto3",
    "--no-emit-package=s3transfer",
)
"""Options of `uv export` that leave only the libraries that ship."""

EMPTIED = {
    "pydantic_core/core_schema.py": "CoreConfig = CoreSchema = CoreSchemaType = ErrorType = None",
    "botocore/docs/__init__.py": "",
    "botocore/docs/docstring.py": (
        "ClientMethodDocstring = PaginatorDocstring = WaiterDocstring = lambda **_: None"
    ),
    "urllib3/http2/__init__.py": "",
}
"""Modules that each cold start would load and never use, with the names that importers ask for.

They are the types of schemas (93 M instructions of a cold start's 720), the texts of `help()`
(28 M), and HTTP/2, for which urllib3 would import a reader of package metadata (17 M).
"""

DROPS = {
    # A cold start lists the descriptions of 439 services (27 of 40 MB): 44 M instructions.
    "botocore/data/*/": "dynamodb",
    # Dropping the older API version, 2011-12-05, saves 4 M instructions.
    "botocore/data/dynamodb/*/": "2012-08-10",
    # API Gateway does the routing, and the Logger loads none of these utilities: 3 MB.
    "aws_lambda_powertools/event_handler": "",
    "aws_lambda_powertools/utilities/*/": "jmespath_utils",
    "animal_store/models.py": "",  # the layer has the models compiled
    # They name the interpreter, so that the same input would not give the same bytes.
    "bin": "",
    "*.dist-info/RECORD": "",
    # Written again.
    **dict.fromkeys(EMPTIED, ""),
}
"""Globs below `python` of what does not ship; a match with the name given here stays."""

# https://www.amazontrust.com/repository/ has five.
_AMAZONS_LABEL = re.compile('# Label: "(Amazon Root CA|Starfield Services Root)')


def write_amazon_roots(bundle: Path, output: Path) -> None:
    """Write only Amazon's authorities: OpenSSL parses a whole bundle, and the SDK's has 126.

    That saves 37 M instructions of a cold start.
    """
    certificates = bundle.read_text().split("\n\n")
    amazons = filter(_AMAZONS_LABEL.search, certificates)
    output.write_text("\n".join(amazons) + "\n")


def install(folder: Path, architecture: str, *export_options: str) -> None:
    """Install the locked libraries for a processor, hashes checked."""
    uv = str(ROOT / ".tools/uv/bin/uv")
    export = [
        uv,
        "export",
        "--quiet",
        "--locked",
        "--no-default-groups",
        "--no-emit-project",
        *export_options,
    ]
    pins = subprocess.check_output(export, cwd=ROOT)
    command = [
        uv,
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--require-hashes",
        "--only-binary=:all:",
        f"--python={sys.executable}",
        f"--python-platform={PLATFORMS[architecture]}",
        "--link-mode=copy",
        f"--target={folder}",
        "--requirements=-",
    ]
    subprocess.run(command, check=True, input=pins)


def build(output: Path, *architectures: str) -> None:
    """Pack the layer into a directory that becomes `/opt` on Lambda; old contents are deleted."""
    from animal_store.models import compile_core_schemas

    require_python()
    shutil.rmtree(output, ignore_errors=True)
    python = output / "python"
    for architecture in architectures:
        # The compiled libraries of two processors have different file names.
        with TemporaryDirectory() as folder:
            install(Path(folder), architecture, *SHIPPED)
            shutil.copytree(folder, python, dirs_exist_ok=True)
    package = python / "animal_store"
    # Compiled modules that lie beside the sources hold the sources' dates.
    compiled = shutil.ignore_patterns("__pycache__", "*.pyc")
    shutil.copytree(ROOT / "layers/common/animal_store", package, ignore=compiled)
    # Where `validators` looks first: no function loads pydantic (348 M of a cold start).
    schemas = f"# Made from models.py.\nCORE_SCHEMAS = {compile_core_schemas()}\n"
    (package / "core_schemas.py").write_text(schemas)
    for pattern, kept in DROPS.items():
        for path in [*python.glob(pattern)]:
            if path.name != kept:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
    for name, text in EMPTIED.items():
        (python / name).write_text(f"# Emptied by `make build`.\n{text}\n")
    sdk_data.reduce(python / "botocore/data")
    write_amazon_roots(python / "botocore/cacert.pem", output / "amazon-roots.pem")
    compile_tree(python, "/opt/python")


if __name__ == "__main__":
    build(Path(sys.argv[1]), *sys.argv[2:])
