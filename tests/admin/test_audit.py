"""What the audit finds, and what it lets pass."""

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
import typer
from animal_store import api_key
from werkzeug import Request, Response

from tests.support.scripted_server import reply, serve
from tools import ROOT, audit
from tools.packaging import sbom

HASH = f"--hash=sha256:{'0' * 64}"
WHEEL = 'url = "https://files.pythonhosted.org/packages/'


@pytest.fixture
def osv_requests(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Request]]:
    """Serve an advisory database that knows of one bad release; give the requests that it got."""

    def answer(request: Request, _: int) -> Response:
        queries = request.json["queries"]
        known = [
            {"vulns": [{"id": "X-1"}]} if "evil" in str(each) else {}
            for each in queries
        ]
        return reply({"results": known})

    with serve(answer) as server:
        monkeypatch.setattr(audit, "OSV_URL", server.base_url)
        yield server.received


def exit_status() -> int:
    with pytest.raises(typer.Exit) as exited:
        audit.audit()
    return exited.value.exit_code


def test_this_tree_passes_and_every_lock_is_asked_for(
    osv_requests: list[Request],
) -> None:
    assert exit_status() == 0
    asked = {query["package"]["name"] for query in osv_requests[0].json["queries"]}
    assert asked >= {
        "@stoplight/spectral-cli",
        "aws-sam-cli",
        "awslambdaric",
        "botocore",
        "zizmor",
    }


@pytest.mark.parametrize(
    ("lock", "text", "replacement"),
    [
        ("locks/sam.txt", "annotated-types==", "annotated-types>="),
        (
            "locks/sam.txt",
            "annotated-types==",
            f"x @ https://evil.example/x.whl {HASH}\nx==",
        ),
        (
            "locks/sam.txt",
            "annotated-types==",
            "--extra-index-url https://evil.example\nx==",
        ),
        (
            "locks/sam.txt",
            "annotated-types==",
            f"x==1 {HASH} @ https://evil.example\nx==",
        ),
        (
            "locks/spectral/package-lock.json",
            '"integrity": "sha512',
            '"integrity": "sha1',
        ),
        (
            "locks/spectral/package-lock.json",
            '"integrity"',
            '"resolved": "x", "integrity"',
        ),
        ("uv.lock", 'hash = "sha256:', 'hash = "md5:'),
        ("uv.lock", WHEEL, 'url = "https://evil.example/packages/'),
        (
            "uv.lock",
            WHEEL,
            'url = "https://files.pythonhosted.org.evil.example/packages/',
        ),
        ("uv.lock", WHEEL, 'path = "'),
        ("uv.lock", '"https://pypi.org/simple"', '"https://evil.example/simple"'),
        (
            "uv.lock",
            'source = { editable = "clients',
            'source = { editable = "../clients',
        ),
    ],
)
def test_entry_that_could_be_replaced_is_found(
    lock: str, text: str, replacement: str, tmp_path: Path
) -> None:
    changed = tmp_path / Path(lock).name
    changed.write_text((ROOT / lock).read_text().replace(text, replacement, 1))

    assert [package for package in audit.read_lock(changed) if not package.pinned] != []


@pytest.mark.usefixtures("osv_requests")
def test_findings_are_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lock = tmp_path / "requirements.txt"
    lock.write_text(f"evil==1.0 {HASH}\nloose>=1 {HASH}\n")
    monkeypatch.setattr(audit, "ROOT", tmp_path)
    monkeypatch.setattr(audit, "tree", lambda: [lock])

    assert exit_status() == 1
    printed = capsys.readouterr().out
    assert "  requirements.txt: loose>=1 --hash" in printed
    assert "  evil 1.0: X-1\n" in printed


def test_status_is_2_when_only_the_advisory_database_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(audit, "OSV_URL", "http://127.0.0.1:9/")
    monkeypatch.setattr(audit, "tree", list)

    assert exit_status() == 2


@pytest.mark.parametrize("environment", ["live", "test"])
def test_key_of_this_service_is_found(
    environment: Literal["live", "test"],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(audit, "ROOT", tmp_path)
    file = tmp_path / "settings.py"
    file.write_text(f"KEY = {api_key.generate(environment)}\n")

    assert len(list(audit.secrets(file))) == 1


@pytest.mark.parametrize(
    "secret",
    [
        "AKIA" + "Z3MGT7QK2ABCDEFG",
        "ghp_" + "a1B2" * 9,
        "-----BEGIN " + "PRIVATE KEY-----",
        "xoxb-" + "123456789012-abcdefghijkl",
    ],
)
def test_secret_in_the_tree_is_found(
    secret: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "ROOT", tmp_path)
    file = tmp_path / "settings.py"
    file.write_text(f'value = "{secret}"\n')

    assert len(list(audit.secrets(file))) == 1


@pytest.mark.parametrize("text", ["animal_live_" + "a" * 38, "sha256:" + "0f" * 32])
def test_text_that_is_no_secret_passes(text: str, tmp_path: Path) -> None:
    file = tmp_path / "settings.py"
    file.write_text(f'value = "{text}"\n')

    assert list(audit.secrets(file)) == []


@pytest.mark.parametrize("licence", ["GPL-3.0", "MIT AND GPL-3.0", "none"])
def test_licence_that_was_not_looked_at_is_found(licence: str) -> None:
    bill = {"components": [{"name": "library", "licenses": [{"expression": licence}]}]}

    assert sbom.unknown_licences(bill) != []
