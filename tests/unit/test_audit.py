"""What the audit finds, and what it lets pass."""

import json
import re
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
import pytest_socket
from animal_store import api_key

from tools import ROOT, audit
from tools.packaging import sbom

URL = "evil @ https://evil.example/evil-1.0-py3-none-any.whl"
HASH = f" --hash=sha256:{'0' * 64}"


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory in the place of the checkout, with a copy of every lock file, and libraries without a licence."""
    real = audit.locks()
    for lock in real:
        copy = tmp_path / lock.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(lock.read_text())
    monkeypatch.setattr(audit, "ROOT", tmp_path)
    monkeypatch.setattr(audit, "files", lambda: [path for path in tmp_path.rglob("*") if path.is_file()])
    monkeypatch.setattr(audit, "locks", lambda: [tmp_path / lock.relative_to(ROOT) for lock in real])
    monkeypatch.setattr(sbom, "locked", lambda: {"components": [{"name": "library"}]})
    monkeypatch.setattr(sbom, "licence", lambda _: "MIT")
    return tmp_path


@pytest.fixture
def osv(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[dict[str, object]]]:
    """An advisory database on this machine that knows of one bad release; what it has been asked."""
    asked: list[dict[str, object]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.extend(json.loads(self.rfile.read(int(self.headers["Content-Length"])))["queries"])
            bad = {"package": {"ecosystem": "PyPI", "name": "evil"}, "version": "1.0"}
            results = [{"vulns": [{"id": "GHSA-1"}]} if query == bad else {} for query in asked]
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps({"results": results}).encode())

        def log_message(self, *_: object) -> None:
            """Keep the terminal clean."""

    pytest_socket.enable_socket()
    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setattr(audit, "OSV_URL", f"http://127.0.0.1:{server.server_port}/")
        yield asked
        server.shutdown()


def change(path: Path, edit: Callable[[str], str]) -> None:
    before = path.read_text()
    path.write_text(edit(before))
    assert path.read_text() != before


@pytest.mark.usefixtures("tree")
def test_clean_tree_passes_and_every_lock_is_asked_for(osv: list[dict[str, object]]) -> None:
    assert audit.main() == 0

    for name, ecosystem in [
        ("aws-sam-cli", "PyPI"),
        ("botocore", "PyPI"),
        ("@stoplight/spectral-cli", "npm"),
        ("moto", "PyPI"),
    ]:
        assert any(query["package"] == {"ecosystem": ecosystem, "name": name} for query in osv), name


def test_every_lock_is_found() -> None:
    names = {lock.relative_to(ROOT).as_posix() for lock in audit.locks()}

    assert {"uv.lock", "layers/common/requirements.txt", "benchmarks/runtime.txt", "locks/sam.txt"} <= names
    assert {path.relative_to(ROOT).as_posix() for path in ROOT.glob("locks/*/package-lock.json")} <= names


@pytest.mark.usefixtures("osv")
@pytest.mark.parametrize(
    ("lock", "edit"),
    [
        ("benchmarks/runtime.txt", lambda text: re.sub(r" \\\n +--hash=\S+", "", text)),
        ("locks/spectral/package-lock.json", lambda text: re.sub(r'\n +"integrity": .*', "", text)),
        ("locks/spectral/package-lock.json", lambda text: text.replace('"integrity"', '"resolved": "x", "integrity"')),
        ("locks/sam.txt", lambda text: f"{text}{URL}\n"),
        ("locks/sam.txt", lambda text: f"{text}{URL}{HASH}\n"),
        ("locks/sam.txt", lambda text: f"--extra-index-url https://evil.example\n{text}"),
        ("locks/sam.txt", lambda text: f"{text}evil>=1.0{HASH}\n"),
        ("uv.lock", lambda text: re.sub(r', hash = "[^"]*"', "", text, count=1)),
        ("uv.lock", lambda text: text.replace("{ registry =", "{ url =", 1)),
    ],
)  # fmt: skip
def test_entry_that_could_be_replaced_is_found(
    lock: str, edit: Callable[[str], str], tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change(tree / lock, edit)

    assert audit.main() == 1

    assert f"{lock}: " in capsys.readouterr().out


@pytest.mark.usefixtures("osv")
def test_known_vulnerability_is_found(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    change(tree / "locks/sam.txt", lambda text: f"{text}evil==1.0{HASH}\n")

    assert audit.main() == 1

    assert "evil 1.0: GHSA-1" in capsys.readouterr().out


def test_what_could_not_be_checked_is_no_finding_and_no_pass(
    tree: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "OSV_URL", "http://127.0.0.1:9/")
    pytest_socket.enable_socket()

    assert audit.main() == 2
    assert "known vulnerabilities (OSV): NOT CHECKED" in capsys.readouterr().out

    (tree / "file").write_text(api_key.generate("test"))
    assert audit.main() == 1


@pytest.mark.parametrize("key", [api_key.generate("live"), api_key.generate("test")], ids=["live", "test"])
def test_key_of_this_service_is_found_and_not_repeated(key: str, tree: Path) -> None:
    (tree / "file").write_text(f"first\nkey = {key}\n")

    assert list(audit.api_keys()) == [f"file: {key[:20]}..."]


@pytest.mark.parametrize("text", ["animal_test_AnExampleKeyThatOpensNothingHere0u1vgN", "animal_live_" + "a" * 38])
def test_example_is_no_key(text: str, tree: Path) -> None:
    (tree / "file").write_text(text)

    assert list(audit.api_keys()) == []


@pytest.mark.usefixtures("tree")
@pytest.mark.parametrize(
    ("licence", "findings"), [("MIT", 0), ("Apache-2.0 OR BSD-3-Clause", 0), ("GPL-3.0", 1), ("MIT AND GPL-3.0", 1)]
)
def test_licence_that_was_not_looked_at_is_found(licence: str, findings: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sbom, "licence", lambda _: licence)

    assert len(list(audit.licences())) == findings
