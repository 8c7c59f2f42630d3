"""What ships in the layer, read from the lock file by uv: its requirements, and its bill of materials as CycloneDX.

https://cyclonedx.org/docs/1.5/json/, with licences added. The same lock gives the same bytes.
"""

import json
import subprocess
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

from tools import ROOT

UV = ROOT / ".tools/uv/bin/uv"
NAME = "sbom.cdx.json"

# Resources and S3 transfers: the layer makes its one client by botocore's own session. What compiles the models: the
# layer has them compiled, and pydantic_core, which runs them.
_NOT_SHIPPED = ("boto3", "s3transfer", "pydantic", "annotated-types", "typing-inspection")

# SPDX expressions of libraries whose metadata has words instead: by their name, with their licence file looked at, or
# by the words.
_SPDX = {
    "Apache License 2.0": "Apache-2.0",
    "aws-lambda-powertools": "MIT-0",
    "python-dateutil": "Apache-2.0 OR BSD-3-Clause",
}


def _export(file_format: str) -> str:
    command = [str(UV), "export", "--quiet", "--locked", "--no-dev", "--no-emit-project", "--format", file_format]
    command += [f"--no-emit-package={name}" for name in _NOT_SHIPPED]
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{done.stderr}\ncannot list the locked libraries: make lock")
    return done.stdout


def requirements() -> str:
    """Return the libraries with hashes, as pip reads them."""
    return _export("requirements.txt")


def locked() -> dict[str, Any]:
    """Return uv's bill of materials."""
    bill: dict[str, Any] = json.loads(_export("cyclonedx1.5"))
    return bill


def licence(name: str) -> str:
    """Return the SPDX expression of a library's licence."""
    metadata = distribution(name).metadata.json
    words = str(metadata.get("license", ""))
    told = _SPDX.get(name) or metadata.get("license_expression") or _SPDX.get(words, words)
    if not told or (" " in str(told) and name not in _SPDX):  # a sentence is not an expression
        raise SystemExit(f"{name} states no licence that is an SPDX expression: add it to tools/packaging/sbom.py")
    return str(told)


def write(output: Path) -> int:
    """Write the bill, and return how many libraries it names."""
    bill = locked()
    for component in bill["components"]:
        component["licenses"] = [{"expression": licence(component["name"])}]
    # When and by which run it was written says nothing about what is inside.
    bill.pop("serialNumber", None)
    bill["metadata"].pop("timestamp", None)
    output.write_text(json.dumps(bill, indent=2, sort_keys=True) + "\n", "utf-8")
    return len(bill["components"])
