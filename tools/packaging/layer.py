"""Builds the shared layer: the locked libraries and our package, compiled, without unused parts.

`layers/common/Makefile` runs it: `python -m tools.packaging.layer FOLDER arm64`. With two
architectures, the layer has the libraries of both. Every build of a commit has the same bytes.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tools import ROOT
from tools.packaging import sdk_data
from tools.packaging.bytecode import compile_tree, require_python
from tools.packaging.targets import PLATFORMS, PYTHON

INSTALL_OPTIONS = (
    # Only models.py imports these, and its models ship as compiled schemas.
    "--no-install-package=annotated-types",
    "--no-install-package=pydantic",
    "--no-install-package=typing-inspection",
    # The layer creates its only client with botocore. boto3 adds resources and S3 transfers.
    "--no-install-package=boto3",
    "--no-install-package=s3transfer",
)
"""Options of `uv sync` that leave out libraries that do not ship."""

STUBS = {
    "pydantic_core/core_schema.py": "CoreConfig = CoreSchema = CoreSchemaType = ErrorType = None",
    "botocore/docs/__init__.py": "",
    "botocore/docs/docstring.py": (
        "ClientMethodDocstring = PaginatorDocstring = WaiterDocstring = lambda **_: None"
    ),
    "urllib3/http2/__init__.py": "",
}
"""Replacements for modules that every cold start imports but never uses.

They define only the names that other modules import. Of a cold start's 720 million instructions,
they save 93 million for the types of schemas, 28 million for the texts of `help()`, and 17 million
for HTTP/2, for which urllib3 would import a reader of package metadata.
"""

SHIPPED_MATCHES = {
    # A cold start lists the SDK's descriptions of 439 services (27 of its 40 MB), which takes 44
    # million instructions.
    "botocore/data/*/": "dynamodb",
    # Dropping the older API version, 2011-12-05, saves 4 million instructions.
    "botocore/data/dynamodb/*/": "2012-08-10",
    # API Gateway does the routing, and the Logger imports no other utility: saves 3 MB.
    "aws_lambda_powertools/event_handler": "",
    "aws_lambda_powertools/utilities/*/": "jmespath_utils",
    "animal_store/models.py": "",  # its models ship as compiled schemas
    # This file lists scripts that contain the interpreter's path, so the file differs between
    # machines.
    "*.dist-info/RECORD": "",
    # These are replaced below.
    **dict.fromkeys(STUBS, ""),
}
"""Maps globs below `python` to the only name among their matches that ships; "" for none."""

# The labels of Amazon's five roots (https://www.amazontrust.com/repository/) in the SDK's bundle.
_AMAZON_LABEL = re.compile('# Label: "(Amazon Root CA|Starfield Services Root)')


def write_amazon_roots(bundle: Path, output: Path) -> None:
    """Write the certificates of Amazon's authorities, which are 5 of the 126 in the SDK's bundle.

    OpenSSL parses a whole bundle, so this saves 37 million instructions of a cold start.
    """
    certificates = bundle.read_text().split("\n\n")
    amazon_certificates = filter(_AMAZON_LABEL.search, certificates)
    output.write_text("\n".join(amazon_certificates) + "\n")


def install(environment: Path, architecture: str, *options: str) -> Path:
    """Install the locked libraries for an architecture in a new environment.

    uv compares the wheels with the hashes in uv.lock.

    Returns:
        The folder of the libraries.
    """
    command = [
        f"{ROOT}/.tools/uv/bin/uv",
        "sync",
        "--quiet",
        "--locked",
        "--no-default-groups",
        "--no-install-project",
        "--no-build",
        f"--python={sys.executable}",
        f"--python-platform={PLATFORMS[architecture]}",
        "--link-mode=copy",
        *options,
    ]
    variables = os.environ | {"UV_PROJECT_ENVIRONMENT": str(environment)}
    subprocess.run(command, cwd=ROOT, env=variables, check=True)
    return environment / f"lib/python{PYTHON}/site-packages"


def build(output: Path, *architectures: str) -> None:
    """Replace a folder by the layer; on Lambda, it becomes `/opt`."""
    from animal_store.models import compile_core_schemas

    require_python()
    shutil.rmtree(output, ignore_errors=True)
    python = output / "python"
    for architecture in architectures:
        # Compiled libraries have the architecture in their names, so no file is overwritten.
        with TemporaryDirectory() as folder:
            libraries = install(Path(folder), architecture, *INSTALL_OPTIONS)
            shutil.copytree(libraries, python, dirs_exist_ok=True)
    package = python / "animal_store"
    # Leave out bytecode beside the sources, because it contains their modification times.
    ignore_bytecode = shutil.ignore_patterns("__pycache__", "*.pyc")
    shutil.copytree(
        ROOT / "layers/common/animal_store", package, ignore=ignore_bytecode
    )
    # `validators` imports these schemas, so that no function imports pydantic (348 million
    # instructions of a cold start).
    schemas = f"# Generated from models.py.\nCORE_SCHEMAS = {compile_core_schemas()}\n"
    (package / "core_schemas.py").write_text(schemas)
    for pattern, shipped_name in SHIPPED_MATCHES.items():
        for path in [*python.glob(pattern)]:
            if path.name != shipped_name:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
    for name, source in STUBS.items():
        (python / name).write_text(f"# Replaced by `make build`.\n{source}\n")
    sdk_data.reduce(python / "botocore/data")
    write_amazon_roots(python / "botocore/cacert.pem", output / "amazon-roots.pem")
    compile_tree(python, "/opt/python")


if __name__ == "__main__":
    build(Path(sys.argv[1]), *sys.argv[2:])
