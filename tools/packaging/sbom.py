"""The bill of materials of a packed layer, as CycloneDX 1.5 JSON (https://cyclonedx.org/docs/1.5/json/).

uv writes the locked libraries with their hashes; what the packing has left out is left out here too, and licences are
added. The same layer gives the same bytes.
"""

import json
import subprocess
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from tools import ROOT

UV = ROOT / ".tools/uv/bin/uv"
NAME = "sbom.cdx.json"

# What libraries mean that say it in words only: by their name, with their licence file looked at, or by the words.
_SPDX = {
    "Apache License 2.0": "Apache-2.0",
    "aws-lambda-powertools": "MIT-0",
    "python-dateutil": "Apache-2.0 OR BSD-3-Clause",
}


def locked() -> dict[str, Any]:
    """Return uv's bill of all libraries that are locked for the layer, packed or not.

    Raises:
        SystemExit: The lock file is out of step.
    """
    command = [str(UV), "export", "--quiet", "--locked", "--no-dev", "--no-emit-project", "--format", "cyclonedx1.5"]
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{done.stderr}\ncannot list the locked libraries: make lock")
    bill: dict[str, Any] = json.loads(done.stdout)
    return bill


def packed(names: Iterable[str], python: Path) -> set[str]:
    """Return the libraries that have a module in a layer.

    Args:
        names: Names of libraries, installed in this environment.
        python: The layer's `python` directory.
    """
    return {name for name in names if any((python / module).exists() for module in _modules(name))}


def licence(name: str) -> str:
    """Return the SPDX expression of a library's licence.

    Raises:
        SystemExit: It does not tell one: look it up.
    """
    metadata = distribution(name).metadata.json
    words = str(metadata.get("license", ""))
    told = _SPDX.get(name) or metadata.get("license_expression") or _SPDX.get(words, words)
    if not told or (" " in str(told) and name not in _SPDX):  # a sentence is no expression
        raise SystemExit(f"{name} tells no licence that is an SPDX expression: add it to tools/packaging/sbom.py")
    return str(told)


def bill(python: Path) -> dict[str, Any]:
    """Make the bill of a packed layer.

    Args:
        python: The layer's `python` directory.
    """
    made = locked()
    inside = packed((component["name"] for component in made["components"]), python)
    made["components"] = [component for component in made["components"] if component["name"] in inside]
    references = {component["bom-ref"] for component in made["components"]}
    references.add(made["metadata"]["component"]["bom-ref"])
    made["dependencies"] = [
        {**entry, "dependsOn": [one for one in entry.get("dependsOn", ()) if one in references]}
        for entry in made.get("dependencies", ())
        if entry["ref"] in references
    ]
    for component in made["components"]:
        component["licenses"] = [{"expression": licence(component["name"])}]
    # When and by which run it was written says nothing about what is inside.
    made.pop("serialNumber", None)
    made["metadata"].pop("timestamp", None)
    return made


def write(layer: Path, output: Path) -> int:
    """Write the bill of a packed layer.

    Args:
        layer: The layer, which has a directory `python`.
        output: The file to write.

    Returns:
        How many libraries are inside.
    """
    made = bill(layer / "python")
    output.write_text(json.dumps(made, indent=2, sort_keys=True) + "\n", "utf-8")
    return len(made["components"])


def _modules(name: str) -> set[str]:
    """Return the names of a library's modules and packages, as they lie in `site-packages`."""
    try:
        files = distribution(name).files or ()
    except PackageNotFoundError:
        return set()  # for another platform
    return {
        file.parts[0]
        for file in files
        if not file.parts[0].endswith((".dist-info", ".data")) and ".." not in file.parts
    }
