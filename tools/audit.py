"""`make audit`: how everything is locked, its known vulnerabilities, licences of what ships, API keys in the tree.

Exits with 1 when there is a finding; with 2 when there is none, but the advisory database did not answer.
"""

import json
import re
import subprocess
import sys
import tomllib
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from tools import ROOT
from tools.packaging import sbom

OSV_URL = "https://api.osv.dev/v1/querybatch"  # https://google.github.io/osv.dev/post-v1-querybatch/
_OSV_TIMEOUT_S = 60

# The one form of a line: a version of the index, for an environment if need be, and its hashes. No URL, no option.
_REQUIREMENT = re.compile(
    r"([A-Za-z0-9][\w.-]*)(?:\[[\w,.-]+\])?==([\w.!+-]+)(?: ; [^#@]+?)?(?: +--hash=sha256:[0-9a-f]{64})+ *"
)
_OUR_OWN = ({"virtual": "."}, {"editable": "clients/python"})
_LICENCES = re.compile(r"(MIT|MIT-0|Apache-2\.0|BSD-2-Clause|BSD-3-Clause|PSF-2\.0|ISC)( (AND|OR) (?=[A-Z])|$)")
_API_KEY = re.compile(r"animal_(?:live|test)_(?!An(?:ExampleKey|otherKey))[0-9A-Za-z]{38}")

Package = tuple[str, ...]
"""Ecosystem, name and version, as OSV knows them."""


def main() -> int:
    """Print the findings of every check, and return the exit status."""
    locked = {lock: list(entries(lock)) for lock in locks()}
    findings = {
        "locks": [
            f"{lock.relative_to(ROOT)}: {name} is not pinned by hash to a release of the registry"
            for lock, packages in locked.items()
            for (_, name, _), pinned in packages
            if not pinned
        ],
        "licences of what ships": list(licences()),
        "API keys in the tree": list(api_keys()),
    }
    title, status = "known vulnerabilities (OSV)", 0
    try:
        findings[title] = list(vulnerabilities({package for packages in locked.values() for package, _ in packages}))
    except (OSError, ValueError, KeyError) as error:
        print(f"{title}: NOT CHECKED: no answer from {OSV_URL}: {error!r}")
        status = 2
    for title, found in findings.items():
        print(f"{title}: {f'{len(found)} findings' if found else 'ok'}", *found, sep="\n  ")
    return 1 if any(findings.values()) else status


def files() -> list[Path]:
    """List every file that is, or could be, committed."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
    return [path for name in names if name and (path := ROOT / name).is_file()]


def locks() -> list[Path]:
    """List every lock file: by its name, or because it is compiled from the file ending in `.in` next to it."""
    listed = files()
    compiled = {path.with_suffix(".txt") for path in listed if path.suffix == ".in"}
    names = {"uv.lock", "package-lock.json", "requirements.txt"}
    return [path for path in listed if path.name in names or path in compiled]


def entries(lock: Path) -> Iterator[tuple[Package, bool]]:
    """Yield each package of a lock file, and whether it can be nothing but one release of the registry."""
    text = lock.read_text("utf-8")
    if lock.suffix == ".txt":
        for line in filter(None, text.replace("\\\n", "").splitlines()):
            found = _REQUIREMENT.fullmatch(line)
            yield ("PyPI", *(found.groups() if found else (line[:80], ""))), found is not None
    elif lock.suffix == ".json":
        for path, package in json.loads(text)["packages"].items():
            if path:  # not the root, which is package.json
                pinned = package.get("integrity", "").startswith("sha512-") and "resolved" not in package
                yield ("npm", path.rpartition("node_modules/")[2], package.get("version", "")), pinned
    else:
        for package in tomllib.loads(text)["package"]:
            if package["source"] not in _OUR_OWN:
                sources = [*package.get("wheels", ()), *filter(None, [package.get("sdist")])]
                pinned = "registry" in package["source"] and all("hash" in source for source in sources)
                yield ("PyPI", package["name"], package.get("version", "")), pinned


def vulnerabilities(packages: set[Package]) -> Iterator[str]:
    """Ask the advisory database about all packages at once; `uv audit` would ask it about `uv.lock` alone."""
    ordered = sorted(packages)
    queries = [{"package": {"ecosystem": e, "name": name}, "version": version} for e, name, version in ordered]
    body = json.dumps({"queries": queries}).encode()
    request = urllib.request.Request(OSV_URL, body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=_OSV_TIMEOUT_S) as response:  # noqa: S310 - the URL is a constant
        results = json.load(response)["results"]
    for (_, name, version), result in zip(ordered, results, strict=True):
        if found := result.get("vulns"):
            yield f"{name} {version}: {', '.join(vulnerability['id'] for vulnerability in found)}"


def licences() -> Iterator[str]:
    """Find libraries that may ship under a licence that has not been looked at."""
    for component in sbom.locked()["components"]:
        told = sbom.licence(component["name"])
        if _LICENCES.sub("", told):
            yield f"{component['name']}: {told}"


def api_keys() -> Iterator[str]:
    """Find API keys of this service; those of the examples say of themselves that they open nothing."""
    from animal_store import api_key

    for path in files():
        for key in _API_KEY.findall(path.read_text("utf-8", "replace")):
            if api_key.is_well_formed(key):
                yield f"{path.relative_to(ROOT)}: {key[:20]}..."


if __name__ == "__main__":
    sys.path.append(str(ROOT / "layers/common"))
    sys.exit(main())
