"""Audit how everything is locked, known vulnerabilities, licences of what ships, and secrets."""

import json
import re
import subprocess
import tomllib
import urllib.request
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import typer
from animal_store import api_key
from detect_secrets.core.scan import scan_file
from detect_secrets.settings import transient_settings

from tools import ROOT
from tools.packaging import sbom

OSV_URL = "https://api.osv.dev/v1/querybatch"  # https://google.github.io/osv.dev/post-v1-querybatch/
_INDEX = {"registry": "https://pypi.org/simple"}
_FILE = re.compile(r"https://files\.pythonhosted\.org/packages/[0-9a-f/]+/[\w.+-]+")
_SHA256 = re.compile(r"sha256:[0-9a-f]{64}")

# The one form of a line: a version of the index, for an environment if need be, and its hashes.
# No URL, no option.
_REQUIREMENT = re.compile(
    r"([A-Za-z0-9][\w.-]*)(?:\[[\w,.-]+\])?==([\w.!+-]+)(?: ; [^#@]+?)?"
    r"(?: +--hash=sha256:[0-9a-f]{64})+ *"
)
_API_KEY = re.compile(
    r"animal_(?:live|test)_(?!An(?:ExampleKey|otherKey))[0-9A-Za-z]{38}"
)
# Patterns of known issuers; what only looks random would find each hash of each lock file.
_DETECTORS = (
    *(
        "AWSKeyDetector",
        "AzureStorageKeyDetector",
        "GitHubTokenDetector",
        "GitLabTokenDetector",
    ),
    *("JwtTokenDetector", "NpmDetector", "OpenAIDetector", "PrivateKeyDetector"),
    *("PypiTokenDetector", "SendGridDetector", "SlackDetector", "StripeDetector"),
)


class Package(NamedTuple):
    """A package as a lock file has it; `pinned` if nothing else can be installed in its place."""

    ecosystem: str
    name: str
    version: str
    pinned: bool


def audit() -> None:
    """Check locks, known vulnerabilities, licences and secrets; status 2: OSV did not answer."""
    packages = {lock: list(read_lock(lock)) for lock in lock_files()}
    findings = {
        "locks (pinned by hash to a release of the registry)": [
            f"{lock.relative_to(ROOT)}: {package.name}"
            for lock, locked in packages.items()
            for package in locked
            if not package.pinned
        ],
        "licences of what ships": sbom.unknown_licences(sbom.bill_of_materials()),
        "secrets in the tree": [
            finding for path in tree() for finding in secrets(path)
        ],
    }
    title, status = "known vulnerabilities (OSV)", 0
    try:
        findings[title] = list(vulnerabilities(sorted(set(chain(*packages.values())))))
    except (OSError, ValueError, KeyError) as error:
        print(f"{title}: NOT CHECKED: no answer from {OSV_URL}: {error!r}")
        status = 2
    for title, found in findings.items():
        print(
            f"{title}: {f'{len(found)} findings' if found else 'ok'}",
            *found,
            sep="\n  ",
        )
    raise typer.Exit(1 if any(findings.values()) else status)


def tree() -> list[Path]:
    """List every file that is, or could be, committed."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    names = subprocess.check_output(command, cwd=ROOT, text=True).split("\0")
    return [path for path in map(ROOT.joinpath, names) if path.is_file()]


def lock_files() -> Iterator[Path]:
    """Find every lock file: by its name, or because it is compiled from the `.in` beside it."""
    for path in tree():
        if path.name in {"uv.lock", "package-lock.json", "requirements.txt"}:
            yield path
        elif path.suffix == ".in":
            yield path.with_suffix(".txt")


def read_lock(lock: Path) -> Iterator[Package]:
    """Read the packages of a lock file."""
    text = lock.read_text("utf-8")
    if lock.suffix == ".txt":
        for line in filter(None, text.replace("\\\n", "").splitlines()):
            found = _REQUIREMENT.fullmatch(line)
            name, version = found.groups() if found else (line[:80], "")
            yield Package("PyPI", name, version, pinned=bool(found))
    elif lock.suffix == ".json":
        for path, entry in json.loads(text)["packages"].items():
            pinned = (
                entry.get("integrity", "").startswith("sha512-")
                and "resolved" not in entry
            )
            if path:  # not the root, which is package.json
                yield Package(
                    "npm", path.rpartition("node_modules/")[2], entry["version"], pinned
                )
    else:
        for entry in tomllib.loads(text)["package"]:
            if entry["source"] not in (
                {"editable": "."},
                {"editable": "clients/python"},
                {"editable": "packages/lambda_local"},
            ):
                files = [*entry.get("wheels", ()), *filter(None, [entry.get("sdist")])]
                pinned = entry["source"] == _INDEX and all(map(_is_pinned, files))
                yield Package("PyPI", entry["name"], entry["version"], pinned)


def _is_pinned(file: dict[str, str]) -> bool:
    return bool(
        _FILE.fullmatch(file.get("url", "")) and _SHA256.fullmatch(file.get("hash", ""))
    )


def vulnerabilities(packages: list[Package]) -> Iterator[str]:
    """Ask the advisory database about all packages at once; `uv audit` asks about uv.lock alone."""
    asked = [package for package in packages if package.pinned]
    queries = [
        {
            "package": {"ecosystem": each.ecosystem, "name": each.name},
            "version": each.version,
        }
        for each in asked
    ]
    body, headers = (
        json.dumps({"queries": queries}).encode(),
        {"Content-Type": "application/json"},
    )
    request = urllib.request.Request(OSV_URL, body, headers)
    with urllib.request.urlopen(request, timeout=60) as response:  # noqa: S310
        results = json.load(response)["results"]
    for package, result in zip(asked, results, strict=True):
        for vulnerability in result.get("vulns", ()):
            yield f"{package.name} {package.version}: {vulnerability['id']}"


def secrets(path: Path) -> Iterator[str]:
    """Find keys of this service but those of the examples, and secrets of other issuers."""
    for key in _API_KEY.findall(path.read_text("utf-8", "replace")):
        if api_key.is_well_formed(key):
            yield f"{path.relative_to(ROOT)}: {key[:20]}..."
    with transient_settings({"plugins_used": [{"name": name} for name in _DETECTORS]}):
        for secret in scan_file(str(path)):
            yield f"{path.relative_to(ROOT)}:{secret.line_number}: {secret.type}"
