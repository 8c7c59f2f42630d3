"""What ships in the layer, by the lock: requirements, and a bill of materials with licences."""

import json
import re
import subprocess
from importlib.metadata import metadata
from pathlib import Path
from typing import Any

from tools import ROOT

UV = ROOT / ".tools/uv/bin/uv"
NAME = "sbom.cdx.json"

# Resources and S3 transfers: the layer makes its one client by botocore's own session. What
# compiles the models: the layer has them compiled, and pydantic_core, which runs them.
_NOT_SHIPPED = (
    "boto3",
    "s3transfer",
    "pydantic",
    "annotated-types",
    "typing-inspection",
)

# SPDX expressions where the metadata says something else, with the licence files looked at.
_SPDX = {
    "aws-lambda-powertools": "MIT-0",
    "python-dateutil": "Apache-2.0 OR BSD-3-Clause",
}
_LOOKED_AT = re.compile(
    r"(MIT|MIT-0|Apache-2\.0|BSD-2-Clause|BSD-3-Clause|PSF-2\.0|ISC)( (AND|OR) (?=[A-Z])|$)"
)


def export(file_format: str) -> str:
    """Return what ships, as `requirements.txt` (with hashes) or `cyclonedx1.5`."""
    command = [
        str(UV),
        "export",
        "--quiet",
        "--locked",
        "--no-dev",
        "--no-emit-project",
    ]
    command += ["--format", file_format]
    command += [f"--no-emit-package={name}" for name in _NOT_SHIPPED]
    done = subprocess.run(
        command, cwd=ROOT, check=False, stdout=subprocess.PIPE, text=True
    )
    if done.returncode:
        raise SystemExit("cannot list the locked libraries (see above): make lock")
    return done.stdout


def bill_of_materials() -> dict[str, Any]:
    """Return uv's bill with each library's licence, without the time and number of this run."""
    bill: dict[str, Any] = json.loads(export("cyclonedx1.5"))
    bill.pop("serialNumber", None)
    bill["metadata"].pop("timestamp", None)
    for library in bill["components"]:
        name, stated = library["name"], metadata(library["name"]).json
        licence = (
            _SPDX.get(name)
            or stated.get("license_expression")
            or stated.get("license", "none")
        )
        library["licenses"] = [{"expression": licence}]
    return bill


def unknown_licences(bill: dict[str, Any]) -> list[str]:
    """List libraries whose licence has not been looked at, or is not an SPDX expression."""
    licences = {
        library["name"]: library["licenses"][0]["expression"]
        for library in bill["components"]
    }
    return [
        f"{name}: {licence}"
        for name, licence in licences.items()
        if _LOOKED_AT.sub("", licence)
    ]


def write(output: Path) -> int:
    """Write the bill, and return how many libraries it names."""
    bill = bill_of_materials()
    if unknown := unknown_licences(bill):
        raise SystemExit(
            f"add to tools/packaging/sbom.py the licences of {', '.join(unknown)}"
        )
    output.write_text(json.dumps(bill, indent=2, sort_keys=True) + "\n", "utf-8")
    return len(bill["components"])
