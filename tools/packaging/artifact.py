"""Pack a build into one file for every stage: code, template, parameters, commit, contract suite.

The same build gives the same bytes, so that stages and rollbacks can be compared by one digest.
"""

import io
import tomllib
import zipfile
from hashlib import sha256
from pathlib import Path

import yaml

from tools import ROOT
from tools.git import git
from tools.packaging.targets import Target

# The contract suite and the files that it reads: a stage is asked what its own commit promises. In
# a folder of their own they run without this checkout (tests/ops/test_programs.py).
SUITE = (
    "openapi.yaml",
    "pyproject.toml",  # pytest's settings
    "tests/contract/**/*.py",
    "tests/contract/**/*.yaml",
    "tests/support/openapi.py",
    "tests/support/waiting.py",
)


def zipped(directory: Path) -> bytes:
    """Pack a directory so that the same files give the same bytes."""
    files = [path for path in directory.rglob("*") if path.is_file()]
    return _zip({str(path.relative_to(directory)): path.read_bytes() for path in files})


def _zip(entries: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in sorted(entries.items()):
            entry = zipfile.ZipInfo(name)  # dated 1980, whatever the file
            entry.external_attr = 0o644 << 16  # Lambda runs as another user
            archive.writestr(entry, content, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def commit() -> str:
    """Name the commit that is checked out."""
    return git(ROOT, "rev-parse", "HEAD").decode().strip()


def check_stages(config: str) -> None:
    """Refuse a samconfig.toml whose stages the artifact's commands would not deploy as `sam` does.

    Raises:
        SystemExit: Its parameters are not a list, or name the processor, which the artifact does.
    """
    for stage, sections in tomllib.loads(config).items():
        if stage in {"version", "default"}:
            continue
        overrides = sections["deploy"]["parameters"]["parameter_overrides"]
        if not isinstance(overrides, list):
            raise SystemExit(
                f"samconfig.toml: write parameter_overrides of {stage} as a list"
            )
        if any(override.startswith("Architecture=") for override in overrides):
            raise SystemExit(
                f"samconfig.toml: {stage} must not name Architecture: an artifact names its own"
            )


def pack(target: Target, commit: str) -> str:
    """Pack what `sam build` wrote, with the parameters of the stages, and return the SHA-256.

    The processor that it was built for is the default of the template's Architecture.
    """
    build = target.build_dir
    config = (ROOT / "samconfig.toml").read_bytes()
    check_stages(config.decode())
    template = yaml.safe_load((build / "template.yaml").read_text("utf-8"))
    template["Parameters"]["Architecture"]["Default"] = target.name
    for logical_id, resource in template["Resources"].items():
        for name in {"CodeUri", "ContentUri"} & set(resource.get("Properties", {})):
            resource["Properties"][name] = f"{logical_id}.zip"
    entries = {
        "COMMIT": commit.encode(),
        "samconfig.toml": config,
        "template.yaml": yaml.safe_dump(template, sort_keys=False).encode(),
    }
    for folder in build.glob("*/"):
        entries[f"{folder.name}.zip"] = zipped(folder)
    for pattern in SUITE:
        for file in ROOT.glob(pattern):
            entries[f"suite/{file.relative_to(ROOT)}"] = file.read_bytes()
    content = _zip(entries)
    target.artifact.write_bytes(content)
    return sha256(content).hexdigest()
