"""`make audit`: known vulnerabilities, licences of what ships, hashes of what is locked, risky code, secrets.

A check that cannot be made is no check that passed: without an advisory database it fails, unless OFFLINE=1 is given.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tools import ROOT
from tools.packaging import sbom

_LICENCES = re.compile(r"(MIT|MIT-0|Apache-2\.0|BSD-2-Clause|BSD-3-Clause|PSF-2\.0|ISC)( (AND|OR) (?=[A-Z])|$)")
_REQUIREMENT = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]*(\[[^]]*\])?==")
_SECRETS = {
    "a private key": re.compile(r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----"),
    "an AWS access key": re.compile(r"\b(?:AKIA|ASIA)(?![0-9A-Z]{9}EXAMPLE)[0-9A-Z]{16}\b"),
    "an AWS secret key": re.compile(r"(?i)aws_secret_access_key\s*[=:]\s*[\"']?[0-9a-z/+]{40}\b"),
    "a GitHub token": re.compile(r"\b(?:gh[pousr]_[0-9A-Za-z]{36}|github_pat_[0-9A-Za-z_]{60,})\b"),
    "a Slack token": re.compile(r"\bxox[abprs]-[0-9A-Za-z-]{10,}"),
    "a PyPI token": re.compile(r"\bpypi-[0-9A-Za-z_-]{50,}"),
    "a password in a URL": re.compile(r"[a-z]+://[^/\s:@\"'<>{}$]+:[^/\s:@\"'<>{}$]+@"),
}
_OUR_KEY = re.compile(r"animal_(?:live|test)_[0-9A-Za-z]{38}")
# The keys of the examples say of themselves that they open nothing.
_EXAMPLE = re.compile(r"animal_test_An(?:ExampleKey|otherKey)")


def main() -> int:
    """Run every check and print each of its findings.

    Returns:
        The exit status: 1 when there is a finding.
    """
    findings = 0
    for title, check in (
        ("known vulnerabilities (OSV)", vulnerabilities),
        ("licences of what ships", licences),
        ("hashes of what is locked", hashes),
        ("risky code (bandit's rules, by ruff)", risky_code),
        ("secrets in the tree", secrets),
    ):
        if check is vulnerabilities and os.environ.get("OFFLINE"):
            print(f"{title}: NOT CHECKED, because OFFLINE is set")
            continue
        found = list(check())
        findings += len(found)
        print(f"{title}: {'ok' if not found else f'{len(found)} findings'}")
        for finding in found:
            print(f"  {finding}")
    return 1 if findings else 0


def vulnerabilities() -> Iterator[str]:
    """Ask the advisory database about every locked library."""
    command = [str(sbom.UV), "audit", "--locked", "--preview-features", "audit"]
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    if done.returncode == 0:
        return
    if "error sending request" in done.stderr:
        yield "not checked: no advisory database answers (api.osv.dev); OFFLINE=1 leaves this out"
    else:
        yield (done.stdout + done.stderr).strip()


def licences() -> Iterator[str]:
    """Find libraries that may ship under a licence that has not been looked at."""
    for component in sbom.locked()["components"]:
        told = sbom.licence(component["name"])
        if _LICENCES.sub("", told):
            yield f"{component['name']}: {told}"


def hashes() -> Iterator[str]:
    """Find requirements in lock files that have no hash."""
    for path in [ROOT / "layers/common/requirements.txt", *sorted((ROOT / "locks").glob("*.txt"))]:
        text = path.read_text("utf-8").replace("\\\n", " ")
        for line in text.splitlines():
            if _REQUIREMENT.match(line) and "--hash=sha256:" not in line:
                yield f"{path.relative_to(ROOT)}: {line}"


def risky_code() -> Iterator[str]:
    """Run the rules that ruff has taken over from bandit."""
    command = [sys.executable, "-m", "ruff", "check", "--select", "S", "--output-format", "concise", "--quiet", "."]
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    if done.returncode:
        yield (done.stdout + done.stderr).strip()


def secrets() -> Iterator[str]:
    """Find what looks like a secret in any file that is, or could be, committed."""
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    names = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
    for path in (ROOT / name for name in names if name):
        yield from _secrets_in(path)


def _secrets_in(path: Path) -> Iterator[str]:
    from animal_store import api_key

    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return  # gone meanwhile, or no text
    for number, line in enumerate(text.splitlines(), 1):
        for what, pattern in _SECRETS.items():
            if pattern.search(line) and path != Path(__file__):
                yield f"{path.relative_to(ROOT)}:{number}: {what}"
        for key in set(_OUR_KEY.findall(line)):
            if api_key.is_well_formed(key) and not _EXAMPLE.match(key):
                yield f"{path.relative_to(ROOT)}:{number}: an API key of this service"


if __name__ == "__main__":
    sys.path.append(str(ROOT / "layers/common"))
    sys.exit(main())
