"""Audit how everything is locked, known vulnerabilities, and secrets."""

import json
import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import httpx2
import typer
from animal_store import api_key
from detect_secrets.core.scan import scan_file
from detect_secrets.settings import default_settings

from tools import ROOT

# https://google.github.io/osv.dev/post-v1-querybatch/
OSV_URL = "https://api.osv.dev/v1/querybatch"
_OWN = [{"editable": folder} for folder in (".", "clients/python")]
_INDEX = {"registry": "https://pypi.org/simple"}
_FILE = re.compile(r"https://files\.pythonhosted\.org/packages/[0-9a-f/]+/[\w.+-]+")

# The only form of a line: a version from the index, an environment if need be, and its hashes.
# No URL, no option.
_REQUIREMENT = re.compile(
    r"([A-Za-z0-9][\w.-]*)(?:\[[\w,.-]+\])?==([\w.!+-]+)(?: ; [^#@]+?)?"
    r"(?: +--hash=sha256:[0-9a-f]{64})+ *"
)
_API_KEY = re.compile(
    r"animal_(?:live|test)_(?!An(?:ExampleKey|otherKey))[0-9A-Za-z]{38}"
)
# detect-secrets knows GitHub's other tokens.
_GITHUB_TOKEN = re.compile(r"github_pat_\w{82}")


class Package(NamedTuple):
    """A package as a lock file has it; `pinned` if nothing else can be installed in its place."""

    ecosystem: str
    name: str
    version: str
    pinned: bool


def audit() -> None:
    """Check locks, known vulnerabilities and secrets; exit status 2: OSV did not answer."""
    packages, findings, status = set[Package](), list[str](), 0
    for lock in lock_files():
        for package in read_lock(lock):
            if package.pinned:
                packages.add(package)
            else:
                findings.append(f"{lock}: {package.name} is not pinned")
    for path in tree():
        findings += secrets(path)
    try:
        findings += vulnerabilities(sorted(packages))
    except (httpx2.HTTPError, ValueError) as error:
        print(f"known vulnerabilities: NOT CHECKED: {OSV_URL}: {error!r}")
        status = 2
    print(*findings, f"{len(findings)} findings", sep="\n")
    raise typer.Exit(1 if findings else status)


def tree(root: Path = ROOT) -> list[Path]:
    """List every file that is, or could be, committed."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    names = subprocess.check_output(command, cwd=root, text=True).split("\0")
    return [path for path in map(root.joinpath, names) if path.is_file()]


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
        for line in text.replace("\\\n", "").splitlines():
            found = _REQUIREMENT.fullmatch(line)
            name, version = found.groups() if found else (line, "")
            yield Package("PyPI", name, version, bool(found))
    elif lock.suffix == ".json":
        for path, entry in json.loads(text)["packages"].items():
            if path:  # not the root, which is package.json
                name = path.rpartition("node_modules/")[2]
                has_hash = entry.get("integrity", "").startswith("sha512-")
                pinned = has_hash and "resolved" not in entry
                yield Package("npm", name, entry["version"], pinned)
    else:
        for entry in tomllib.loads(text)["package"]:
            if entry["source"] not in _OWN:
                files = [*entry.get("wheels", ()), entry.get("sdist")]
                pinned = entry["source"] == _INDEX and all(
                    map(_is_pinned, filter(None, files))
                )
                yield Package("PyPI", entry["name"], entry["version"], pinned)


def _is_pinned(file: dict[str, str]) -> bool:
    is_on_pypi = bool(_FILE.fullmatch(file.get("url", "")))
    return is_on_pypi and file.get("hash", "").startswith("sha256:")


def vulnerabilities(packages: list[Package]) -> Iterator[str]:
    """Ask the advisory database about all packages at once; `uv audit` asks about uv.lock alone."""
    queries = [
        {
            "package": {"ecosystem": each.ecosystem, "name": each.name},
            "version": each.version,
        }
        for each in packages
    ]
    response = httpx2.post(OSV_URL, json={"queries": queries}, timeout=60)
    results = response.raise_for_status().json()["results"]
    for package, result in zip(packages, results, strict=True):
        for vulnerability in result.get("vulns", ()):
            yield f"{package.name} {package.version}: {vulnerability['id']}"


def secrets(path: Path) -> Iterator[str]:
    """Find this service's keys, except those of the examples, and other issuers' secrets."""
    text = path.read_text("utf-8", "replace")
    keys = filter(api_key.is_well_formed, _API_KEY.findall(text))
    for secret in (*keys, *_GITHUB_TOKEN.findall(text)):
        yield f"{path}: {secret[:20]}..."
    with default_settings() as settings:
        # They flag every hash in lock files; Telegram's flags every ARN with an account number.
        settings.disable_plugins(
            "Base64HighEntropyString",
            "HexHighEntropyString",
            "KeywordDetector",
            "TelegramBotTokenDetector",
        )
        for found in scan_file(str(path)):
            yield f"{path}:{found.line_number}: {found.type}"
