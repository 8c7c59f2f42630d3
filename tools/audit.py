"""`make audit`: how everything is locked, its known vulnerabilities, licences of what ships, API keys in the tree.

Exits with 1 when there is a finding; with 2 when there is none, but the advisory database did not answer.
"""

import json
import re
import subprocess
import tomllib
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from animal_store import api_key

from tools import ROOT
from tools.packaging import sbom

OSV_URL = (
    "https://api.osv.dev/v1/querybatch"  # https://google.github.io/osv.dev/post-v1-querybatch/
)

# The one form of a line: a version of the index, for an environment if need be, and its hashes. No URL, no option.
_REQUIREMENT = re.compile(
    r"([A-Za-z0-9][\w.-]*)(?:\[[\w,.-]+\])?==([\w.!+-]+)(?: ; [^#@]+?)?(?: +--hash=sha256:[0-9a-f]{64})+ *"
)
_API_KEY = re.compile(r"animal_(?:live|test)_(?!An(?:ExampleKey|otherKey))[0-9A-Za-z]{38}")


def main() -> int:
    """Print the findings of every check, and return the exit status."""
    locked = {(lock, *package) for lock in locks() for package in entries(lock)}
    loose = (
        f"{lock.relative_to(ROOT)}: {name}"
        for lock, _, name, version in sorted(locked)
        if not version
    )
    findings = {
        "locks (pinned by hash to a release of the registry)": list(loose),
        "licences of what ships": sbom.unknown_licences(sbom.bill_of_materials()),
        "API keys in the tree": list(api_keys()),
    }
    title, status = "known vulnerabilities (OSV)", 0
    try:
        findings[title] = list(
            vulnerabilities(sorted({package[1:] for package in locked if package[3]}))
        )
    except (OSError, ValueError, KeyError) as error:
        print(f"{title}: NOT CHECKED: no answer from {OSV_URL}: {error!r}")
        status = 2
    for title, found in findings.items():
        print(f"{title}: {f'{len(found)} findings' if found else 'ok'}", *found, sep="\n  ")
    return 1 if any(findings.values()) else status


def files() -> list[Path]:
    """List every file that is, or could be, committed."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    names = subprocess.run(
        command, cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.split("\0")
    return [path for path in map(ROOT.joinpath, names) if path.is_file()]


def locks() -> Iterator[Path]:
    """Find every lock file: by its name, or because it is compiled from the file ending in `.in` next to it."""
    for path in files():
        if path.name in {"uv.lock", "package-lock.json", "requirements.txt"}:
            yield path
        elif path.suffix == ".in":
            yield path.with_suffix(".txt")


def entries(lock: Path) -> Iterator[tuple[str, str, str]]:
    """Yield ecosystem, name and version of each package; no version if it can be another than that of the registry."""
    text = lock.read_text("utf-8")
    if lock.suffix == ".txt":
        for line in filter(None, text.replace("\\\n", "").splitlines()):
            found = _REQUIREMENT.fullmatch(line)
            yield ("PyPI", found[1], found[2]) if found else ("PyPI", line[:80], "")
    elif lock.suffix == ".json":
        for path, package in json.loads(text)["packages"].items():
            if path:  # not the root, which is package.json
                pinned = (
                    package.get("integrity", "").startswith("sha512-") and "resolved" not in package
                )
                yield (
                    "npm",
                    path.rpartition("node_modules/")[2],
                    package["version"] if pinned else "",
                )
    else:
        for package in tomllib.loads(text)["package"]:
            if not package["source"].keys() & {"virtual", "editable"}:  # our own
                sources = [*package.get("wheels", ()), package.get("sdist", {"hash": None})]
                pinned = "registry" in package["source"] and all(
                    "hash" in source for source in sources
                )
                yield "PyPI", package["name"], package["version"] if pinned else ""


def vulnerabilities(packages: list[tuple[str, str, str]]) -> Iterator[str]:
    """Ask the advisory database about all packages at once; `uv audit` would ask it about `uv.lock` alone."""
    queries = [
        {"package": {"ecosystem": e, "name": name}, "version": version}
        for e, name, version in packages
    ]
    body, headers = json.dumps({"queries": queries}).encode(), {"Content-Type": "application/json"}
    with urllib.request.urlopen(
        urllib.request.Request(OSV_URL, body, headers), timeout=60
    ) as response:
        for (_, name, version), result in zip(
            packages, json.load(response)["results"], strict=True
        ):
            if found := result.get("vulns"):
                yield f"{name} {version}: {', '.join(vulnerability['id'] for vulnerability in found)}"


def api_keys() -> Iterator[str]:
    """Find API keys of this service; those of the examples say of themselves that they open nothing."""
    for path in files():
        for key in _API_KEY.findall(path.read_text("utf-8", "replace")):
            if api_key.is_well_formed(key):
                yield f"{path.relative_to(ROOT)}: {key[:20]}..."


if __name__ == "__main__":
    raise SystemExit(main())
