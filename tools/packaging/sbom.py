"""What ships in the layer, per the lock: requirements, and a bill of materials with licences."""

import json
import subprocess
from importlib.metadata import metadata
from pathlib import Path

from tools import ROOT

UV = ROOT / ".tools/uv/bin/uv"
NAME = "sbom.cdx.json"

# Resources and S3 transfers: the layer makes its only client with botocore's own session. What
# compiles the models: the layer has them compiled, and pydantic_core, which runs them.
_NOT_SHIPPED = (
    "boto3",
    "s3transfer",
    "pydantic",
    "annotated-types",
    "typing-inspection",
)

# SPDX expressions, checked against the licence files, where the metadata says something else.
_SPDX = {
    "aws-lambda-powertools": "MIT-0",
    "python-dateutil": "Apache-2.0 OR BSD-3-Clause",
}
_ACCEPTED_LICENCES = {"Apache-2.0", "MIT", "PSF-2.0", *_SPDX.values()}


def export(file_format: str, *more: str) -> str:
    """Return what ships, as `requirements.txt` or `cyclonedx1.5`, with more options of uv."""
    options = ["--quiet", "--locked", "--no-dev", "--no-emit-project", *more]
    options += [f"--no-emit-package={name}" for name in _NOT_SHIPPED]
    command = [str(UV), "export", "--format", file_format, *options]
    return subprocess.check_output(command, cwd=ROOT, text=True)


def licence(name: str) -> str:
    """Return the licence of a library as an SPDX expression; stop at one not looked at yet."""
    stated = metadata(name).json
    found = _SPDX.get(name, stated.get("license_expression", stated.get("license")))
    if found not in _ACCEPTED_LICENCES:
        raise SystemExit(
            f"look up the licence of {name} ({found}), and add it in {__file__}"
        )
    return str(found)


def write(output: Path) -> None:
    """Write uv's bill with each library's licence, without the time and number of the run."""
    bill = json.loads(export("cyclonedx1.5"))
    bill.pop("serialNumber")
    bill["metadata"].pop("timestamp")
    for library in bill["components"]:
        library["licenses"] = [{"expression": licence(library["name"])}]
    output.write_text(json.dumps(bill, indent=2, sort_keys=True) + "\n")
