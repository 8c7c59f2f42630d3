"""The README's example, typed into an empty folder."""

import re
import subprocess
import sys
from pathlib import Path

import httpx2

README = Path(__file__).parents[1] / "README.md"


def test_example_works_as_typed(tmp_path: Path) -> None:
    blocks = re.findall(r"```\w+\n(.*?)```", README.read_text("utf-8"), re.DOTALL)
    (tmp_path / "notes").mkdir()
    for name, text in zip(
        ["template.yaml", "notes/app.py", "serve.py"], blocks, strict=True
    ):
        (tmp_path / name).write_text(text)
    command = [sys.executable, "-m", "uvicorn", "serve:app", "--port=0"]
    with subprocess.Popen(
        command, cwd=tmp_path, stderr=subprocess.PIPE, text=True
    ) as server:
        assert server.stderr
        url = next(line.split()[4] for line in server.stderr if "running on" in line)
        try:
            put = httpx2.put(f"{url}/notes/1", json={"text": "milk", "done": False})
            got = httpx2.get(f"{url}/notes/1")
        finally:
            server.terminate()

    assert put.status_code == 204
    assert got.json() == {"id": "1", "text": "milk", "done": False}
