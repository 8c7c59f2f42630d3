"""What the audit finds, and what it lets pass."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import pytest_socket
from animal_store import api_key
from werkzeug import Request, Response

from tests.support.scripted_server import reply, serve
from tools import ROOT, audit
from tools.packaging import sbom

HASH = f" --hash=sha256:{'0' * 64}"


@pytest.fixture
def osv(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Request]]:
    """An advisory database on this machine that knows of one bad release; what it has been asked."""

    def answer(request: Request, _: int) -> Response:
        queries = request.json["queries"]
        return reply(
            {
                "results": [
                    {"vulns": [{"id": "X-1"}]} if "evil" in str(query) else {} for query in queries
                ]
            }
        )

    pytest_socket.enable_socket()
    with serve(answer) as server:
        monkeypatch.setattr(audit, "OSV_URL", server.base_url)
        yield server.received


def test_this_tree_passes_and_every_lock_is_asked_for(osv: list[Request]) -> None:
    assert audit.main() == 0
    asked = {query["package"]["name"] for query in osv[0].json["queries"]}
    assert asked >= {
        "@stoplight/spectral-cli",
        "aws-sam-cli",
        "awslambdaric",
        "botocore",
        "chalice",
        "moto",
        "zizmor",
    }


@pytest.mark.parametrize(
    ("lock", "edit"),
    [
        ("benchmarks/runtime.txt", lambda text: re.sub(r" \\\n +--hash=\S+", "", text)),
        ("locks/spectral/package-lock.json", lambda text: re.sub(r'\n +"integrity": .*', "", text)),
        ("locks/spectral/package-lock.json", lambda text: text.replace('"integrity"', '"resolved": "x", "integrity"')),
        ("locks/sam.txt", lambda text: f"{text}evil @ https://evil.example/evil-1.0-py3-none-any.whl{HASH}\n"),
        ("locks/sam.txt", lambda text: f"--extra-index-url https://evil.example\n{text}"),
        ("uv.lock", lambda text: re.sub(r', hash = "[^"]*"', "", text, count=1)),
        ("uv.lock", lambda text: text.replace("{ registry =", "{ url =", 1)),
    ],
)  # fmt: skip
def test_entry_that_could_be_replaced_is_found(
    lock: str, edit: Callable[[str], str], tmp_path: Path
) -> None:
    changed = tmp_path / Path(lock).name
    changed.write_text(edit((ROOT / lock).read_text()))
    assert "" in {version for _, _, version in audit.entries(changed)}


@pytest.mark.usefixtures("osv")
def test_findings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lock, file, key = tmp_path / "requirements.txt", tmp_path / "file", api_key.generate("live")
    monkeypatch.setattr(audit, "ROOT", tmp_path)
    monkeypatch.setattr(audit, "files", lambda: [lock, file])
    lock.write_text(f"evil==1.0{HASH}\nloose>=1{HASH}\n")
    file.write_text(
        f"malformed = animal_live_{'a' * 38}\nkeys = {key} {api_key.generate('test')}\n"
    )
    assert audit.main() == 1
    output = capsys.readouterr().out
    for finding in (
        "requirements.txt: loose>=1",
        "evil 1.0: X-1",
        "tree: 2 findings",
        f"  file: {key[:20]}...\n",
    ):
        assert finding in output

    monkeypatch.setattr(audit, "OSV_URL", "http://127.0.0.1:9/")
    assert audit.main() == 1
    monkeypatch.setattr(audit, "files", list)
    assert audit.main() == 2


@pytest.mark.parametrize("licence", ["GPL-3.0", "MIT AND GPL-3.0", "none"])
def test_licence_that_was_not_looked_at_is_found(licence: str) -> None:
    assert (
        sbom.unknown_licences(
            {"components": [{"name": "it", "licenses": [{"expression": licence}]}]}
        )
        != []
    )
