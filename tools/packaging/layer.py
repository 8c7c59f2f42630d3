"""Builds the shared layer: our package and the locked libraries without costly unused parts.

`layers/common/Makefile` runs this module: `python -m tools.packaging.layer FOLDER arm64`. With two
architectures, the layer has the libraries for both architectures. With the same Python, builds of a
commit have equal bytes.
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
    # Only models.py needs these three libraries, and models.py ships as compiled schemas.
    "--no-install-package=annotated-types",
    "--no-install-package=pydantic",
    "--no-install-package=typing-inspection",
    # The layer creates its only client with botocore, and does not use what boto3 adds to botocore:
    # resources and S3 transfers.
    "--no-install-package=boto3",
    "--no-install-package=s3transfer",
)
"""Options for `uv sync`: leave out the libraries that do not ship."""

# Each cold start would import these costly modules, which the functions hardly use. So STUBS
# replaces some, and DEFERRED delays others. docs/decisions.md says what this saves.

STUBS = {
    "pydantic_core/__init__.py": (
        "from ._pydantic_core import SchemaValidator, ValidationError, from_json, to_json"
    ),
    "botocore/docs/__init__.py": "",
    "botocore/docs/docstring.py": (
        "ClientMethodDocstring = PaginatorDocstring = WaiterDocstring = lambda **_: None"
    ),
    "botocore/endpoint_provider.py": (
        "EndpointProvider = S3_UNREFERENCED_PARAMS = VALID_HOST_LABEL_RE = None"
    ),
    "urllib3/http2/__init__.py": "",
}
"""Replacements for modules that the functions use little or not at all.

A replacement defines only the names that other modules import. If an upgrade needs another name,
the import of the built layer fails in `tests/packaging`.
"""

DEFERRED = {
    "dateutil/parser": ("parse",),
    "dateutil/tz": ("tzlocal", "tzutc"),
    "jmespath": (),
}
"""Packages that are imported at their first use, each with the functions that the SDK imports by
name. A cold start uses none of these packages."""

SHIPPED_MATCHES = {
    # A cold start lists the folders of all 439 services that the SDK describes. They are most of
    # the SDK.
    "botocore/data/*/": "dynamodb",
    # The older API version is 2011-12-05.
    "botocore/data/dynamodb/*/": "2012-08-10",
    # The layer needs only the Logger of Powertools, because API Gateway does the routing. The
    # Logger imports only the utility `jmespath_utils`. Leaving out the rest saves 3 MB.
    "aws_lambda_powertools/event_handler": "",
    "aws_lambda_powertools/utilities/*/": "jmespath_utils",
    "animal_store/models.py": "",  # its models ship as compiled schemas
    "pydantic_core/core_schema.py": "",  # used only by pydantic, which does not ship
    # A RECORD may have digests of scripts that contain the interpreter's path, so it may differ
    # between machines.
    "*.dist-info/RECORD": "",
}
"""Maps a glob below `python` to the name of the one match that ships; "" if none ships."""

# Matches the labels of Amazon's five root certificates in the SDK's bundle
# (https://www.amazontrust.com/repository/).
_AMAZON_LABEL = re.compile('# Label: "(Amazon Root CA|Starfield Services Root)')


def write_amazon_roots(bundle: Path, output: Path) -> None:
    """Write only Amazon's root certificates, which are 5 of the 126 in the SDK's bundle.

    OpenSSL would parse all 126 at each cold start.
    """
    certificates = bundle.read_text().split("\n\n")
    amazon_certificates = filter(_AMAZON_LABEL.search, certificates)
    output.write_text("\n".join(amazon_certificates) + "\n")


def defer_import(package: Path, functions: tuple[str, ...]) -> None:
    """Let Python import a package when one of its names is first used.

    Args:
        package: The package's folder. Its `__init__.py` becomes `original.py`.
        functions: The functions that other modules import by name. Each gets a stand-in, which
            calls the original.
    """
    init = package / "__init__.py"
    init.rename(package / "original.py")
    source = """\
from importlib import import_module

def __getattr__(name):
    return getattr(import_module(f"{__name__}.original"), name)
"""
    for name in functions:
        source += f"""
def {name}(*args, **options):
    return __getattr__("{name}")(*args, **options)
"""
    init.write_text(source)


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
        "--frozen",
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


def copy_sources(package: Path, output: Path) -> None:
    """Copy a package without the bytecode beside its sources.

    That bytecode contains the sources' modification times, which differ between checkouts.
    """
    ignore_bytecode = shutil.ignore_patterns("__pycache__", "*.pyc")
    shutil.copytree(package, output, ignore=ignore_bytecode)


def build(output: Path, *architectures: str) -> None:
    """Empty a folder and build the layer in it; on Lambda, the folder becomes `/opt`."""
    # Import this checkout's `animal_store`. If the checkout is a copy, `.venv` still has the
    # original's package.
    sys.path.insert(0, str(ROOT / "layers/common"))
    from animal_store.models import compile_core_schemas

    require_python()
    shutil.rmtree(output, ignore_errors=True)
    python = output / "python"
    for architecture in architectures:
        # Compiled libraries have the architecture in their file names, so none is overwritten.
        with TemporaryDirectory() as folder:
            libraries = install(Path(folder), architecture, *INSTALL_OPTIONS)
            shutil.copytree(libraries, python, dirs_exist_ok=True)
    package = python / "animal_store"
    copy_sources(ROOT / "layers/common/animal_store", package)
    # `validators` imports these schemas, so that no function imports pydantic.
    schemas = f"# Generated from models.py.\nCORE_SCHEMAS = {compile_core_schemas()}\n"
    (package / "core_schemas.py").write_text(schemas)
    for pattern, shipped_name in SHIPPED_MATCHES.items():
        for path in [*python.glob(pattern)]:
            if path.name != shipped_name:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
    for name, source in STUBS.items():
        (python / name).write_text(
            f"# Replaced by tools/packaging/layer.py.\n{source}\n"
        )
    for name, functions in DEFERRED.items():
        defer_import(python / name, functions)
    sdk_data.reduce(python / "botocore/data")
    write_amazon_roots(python / "botocore/cacert.pem", output / "amazon-roots.pem")
    compile_tree(python, "/opt/python")


if __name__ == "__main__":
    build(Path(sys.argv[1]), *sys.argv[2:])
