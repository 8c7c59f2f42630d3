"""What the audit finds, and what it lets pass."""

from pathlib import Path

import pytest
from animal_store import api_key

from tools import audit
from tools.packaging import sbom


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(audit, "ROOT", tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "line",
    [
        "-----BEGIN RSA " + "PRIVATE KEY-----",
        "AKIA" + "Z" * 16,
        "aws_secret_access_key = " + "a" * 40,
        "ghp_" + "a" * 36,
        "https://user:" + "password@example.org",
        api_key.generate("live"),
        api_key.generate("test"),
    ],
)
def test_secret_is_found(line: str, tree: Path) -> None:
    file = tree / "file"
    file.write_text(f"first\n{line}\n")
    assert [finding.split(": ")[0] for finding in audit._secrets_in(file)] == ["file:2"]


@pytest.mark.parametrize(
    "line",
    ["AKIAIOSFODNN7" + "EXAMPLE", "animal_test_AnExampleKeyThatOpensNothingHere0u1vgN", "http://127.0.0.1:3000/v1"],
)
def test_example_is_no_secret(line: str, tree: Path) -> None:
    file = tree / "file"
    file.write_text(line)
    assert list(audit._secrets_in(file)) == []


def test_requirement_without_a_hash_is_found(tree: Path) -> None:
    (tree / "layers/common").mkdir(parents=True)
    (tree / "locks").mkdir()
    (tree / "layers/common/requirements.txt").write_text("six==1.17.0 \\\n    --hash=sha256:00\n")
    (tree / "locks/tool.txt").write_text("six==1.17.0\n")
    assert list(audit.hashes()) == ["locks/tool.txt: six==1.17.0"]


@pytest.mark.parametrize(
    ("licence", "findings"), [("MIT", 0), ("Apache-2.0 OR BSD-3-Clause", 0), ("GPL-3.0", 1), ("MIT AND GPL-3.0", 1)]
)
def test_licence_that_was_not_looked_at_is_found(licence: str, findings: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sbom, "locked", lambda: {"components": [{"name": "library"}]})
    monkeypatch.setattr(sbom, "licence", lambda _: licence)
    assert len(list(audit.licences())) == findings
