"""Packs a build, the parameters of every stage and the contract suite into one ZIP file.

With one version of Python and zlib, the same build gives the same bytes.
"""

import io
import zipfile
from pathlib import Path

import yaml

from tools import ROOT

# The contract suite and the files that it reads. An artifact contains these files, so that a
# stage is tested against the contract of the commit that it runs.
SUITE = (
    "openapi.yaml",
    "pyproject.toml",  # pytest's settings
    "tests/contract/**/*.py",
    "tests/contract/**/*.yaml",
)


def zip_files(entries: dict[str, bytes]) -> bytes:
    """Return a ZIP file, whose bytes do not depend on the time or the order of entries."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in sorted(entries.items()):
            entry = zipfile.ZipInfo(name)  # its date in the archive is 1980
            entry.external_attr = 0o644 << 16  # so that Lambda can read it
            archive.writestr(entry, content, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def _files(folder: Path, *patterns: str) -> dict[str, bytes]:
    """Return the contents of the files that match a pattern, by their paths below the folder."""
    contents = {}
    for pattern in patterns:
        for file in folder.glob(pattern):
            if file.is_file():
                contents[str(file.relative_to(folder))] = file.read_bytes()
    return contents


def pack(build: Path, architecture: str, commit: str) -> bytes:
    """Return the artifact with the output of `sam build`.

    The architecture becomes the default of the template's parameter `Architecture`.
    """
    template = yaml.safe_load((build / "template.yaml").read_text("utf-8"))
    template["Parameters"]["Architecture"]["Default"] = architecture
    entries = {
        "COMMIT": commit.encode(),
        "samconfig.toml": (ROOT / "samconfig.toml").read_bytes(),
    }
    # Each folder is named after its function or layer.
    for folder in build.glob("*/"):
        code = f"{folder.name}.zip"
        entries[code] = zip_files(_files(folder, "**/*"))
        resource = template["Resources"][folder.name]
        is_layer = resource["Type"] == "AWS::Serverless::LayerVersion"
        resource["Properties"]["ContentUri" if is_layer else "CodeUri"] = code
    entries["template.yaml"] = yaml.safe_dump(template, sort_keys=False).encode()
    for name, content in _files(ROOT, *SUITE).items():
        entries[f"suite/{name}"] = content
    return zip_files(entries)
