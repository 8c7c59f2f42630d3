"""What the audit finds, and what it lets pass."""

import subprocess
from pathlib import Path
from unittest import mock

import httpx2
import pytest
import typer
from animal_store import api_key

from tools import ROOT, audit

HASH = f"--hash=sha256:{'0' * 64}"
WHEEL = 'url = "https://files.pythonhosted.org/packages/'
SPECTRAL = "locks/spectral/package-lock.json"


def test_every_lock_of_this_tree_is_pinned() -> None:
    locks = list(audit.lock_files())

    assert {*locks} >= {ROOT / "uv.lock", ROOT / "locks/sam.txt", ROOT / SPECTRAL}
    for lock in locks:
        for package in audit.read_lock(lock):
            assert package.pinned, f"{lock}: {package}"


@pytest.mark.parametrize(
    ("lock", "text", "replacement"),
    [
        ("locks/sam.txt", "attrs==", "attrs>="),
        ("locks/sam.txt", "attrs==", f"x @ https://evil.example {HASH}\nx=="),
        ("locks/sam.txt", "attrs==", f"x==1 {HASH} @ https://evil.example\nx=="),
        (SPECTRAL, '"integrity": "sha512', '"integrity": "sha1'),
        (SPECTRAL, '"integrity"', '"resolved": "x", "integrity"'),
        ("uv.lock", 'hash = "sha256:', 'hash = "md5:'),
        ("uv.lock", WHEEL, 'url = "https://files.pythonhosted.org.evil/packages/'),
        ("uv.lock", '"https://pypi.org/simple"', '"https://evil.example/simple"'),
        ("uv.lock", '{ editable = "clients', '{ editable = "../clients'),
    ],
)
def test_entry_that_could_be_replaced_is_found(
    lock: str, text: str, replacement: str, tmp_path: Path
) -> None:
    changed = tmp_path / Path(lock).name
    changed.write_text((ROOT / lock).read_text().replace(text, replacement, 1))

    assert not all(package.pinned for package in audit.read_lock(changed))


def exit_status() -> int:
    with pytest.raises(typer.Exit) as exited:
        audit.audit()
    return exited.value.exit_code


def test_findings_are_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lock = tmp_path / "requirements.txt"
    lock.write_text(f"evil==1.0 {HASH}\nloose>=1 {HASH}\n")
    monkeypatch.setattr(audit, "tree", lambda: [lock])
    known = {"results": [{"vulns": [{"id": "X-1"}]}]}
    response = httpx2.Response(200, json=known, request=httpx2.Request("POST", ""))
    monkeypatch.setattr(httpx2, "post", mock.Mock(return_value=response))

    assert exit_status() == 1

    printed = capsys.readouterr().out
    assert "requirements.txt: loose>=1 --hash" in printed
    assert "evil 1.0: X-1\n" in printed


def test_status_is_2_when_only_the_advisory_database_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(audit, "OSV_URL", "http://127.0.0.1:9/")
    monkeypatch.setattr(audit, "tree", list)

    assert exit_status() == 2


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("AKIA" + "Z3MGT7QK2ABCDEFG", 1),
        ("ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8", 1),
        ("github_pat_" + "a1" * 41, 1),
        ("-----BEGIN " + "PRIVATE KEY-----", 1),
        pytest.param(api_key.generate("live"), 1, id="our key"),
        ("animal_live_" + "a" * 38, 0),
        ("sha256:" + "0f" * 32, 0),
    ],
)
def test_secret_is_found_before_its_file_is_added(
    text: str, count: int, tmp_path: Path
) -> None:
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    (tmp_path / ".gitignore").write_text("ignored.py\n")
    for name in ("new.py", "ignored.py"):
        (tmp_path / name).write_text(f'value = "{text}"\n')

    found = [secret for path in audit.tree(tmp_path) for secret in audit.secrets(path)]

    assert len(found) == count
