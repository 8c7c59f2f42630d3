"""docs/examples/import_csv.py with the files that spreadsheets and shells write."""

import runpy
from pathlib import Path
from typing import Any

import pytest

from tests.support.processes import RunningService
from tests.support.scripted_server import REX, hang_up, reply, serve
from tools import ROOT

PROGRAM = str(ROOT / "docs/examples/import_csv.py")


@pytest.fixture
def import_file(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Any:
    """Import `Tiere März.csv` with this content; return the program's output."""
    file = tmp_path / "Tiere März.csv"
    monkeypatch.setattr("sys.argv", [PROGRAM, str(file)])
    monkeypatch.setenv("API_KEY", "key")

    def import_file(base_url: str, content: bytes) -> str:
        monkeypatch.setenv("BASE_URL", base_url)
        file.write_bytes(content)
        try:
            runpy.run_path(PROGRAM, run_name="__main__")
        except SystemExit as message:
            print(message)
        return capsys.readouterr().out

    return import_file


@pytest.mark.parametrize(
    "content",
    [
        "\ufeffname,category_id,status\r\nŒdipe,3,sold\r\n",  # Excel's "CSV UTF-8"
        "name;category_id;status\r\nŒdipe;3;sold\r\n",  # the same in Europe
        'name,category_id,status\r"Œdipe",3,sold\r',  # "CSV (Macintosh)"
        "status,category_id,name\nsold,3,Œdipe\n\n,,\n",
    ],
)
def test_each_kind_of_csv_file_is_imported(import_file: Any, content: str) -> None:
    with serve(reply(REX)) as server:
        output = import_file(server.base_url, content.encode())
    assert output == "1 added, 0 added before\n"
    [request] = server.received
    assert request.json == {"name": "Œdipe", "categoryId": 3, "status": "sold"}


def test_only_rows_of_a_changed_file_are_added_again(
    import_file: Any, service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("API_KEY", service.api_key)
    url, file = service.base_url, b"name,category_id\nRex,8002\nRex,8002\n"
    assert import_file(url, file) == "2 added, 0 added before\n"
    assert import_file(url, file) == "0 added, 2 added before\n"
    assert import_file(url, file + b"\n") == "2 added, 0 added before\n"


def test_every_faulty_row_is_reported_and_none_is_added(import_file: Any) -> None:
    file = f"""name,category_id,status
"Rex
",3,sold
 \ufeff,9223372036854775808,Sold
{"x" * 257},-9223372036854775809,
Mia,+1,

Leo,1e3,
Kim,٣,
Tom,3
"Max"s,3,
"""
    with serve(reply(REX)) as server:
        output = import_file(server.base_url, file.encode())
    assert server.received == []
    assert output == (
        "Row 3: name must have 1 to 256 characters, not only white space\n"
        "Row 3: category_id is '9223372036854775808', not a 64-bit integer\n"
        "Row 3: status is 'Sold', not available, pending, sold or empty\n"
        "Row 4: name must have 1 to 256 characters, not only white space\n"
        "Row 4: category_id is '-9223372036854775809', not a 64-bit integer\n"
        "Row 5: category_id is '+1', not a 64-bit integer\n"
        "Row 7: category_id is '1e3', not a 64-bit integer\n"
        "Row 8: category_id is '٣', not a 64-bit integer\n"
        "Row 9: 2 cells, not 3\n"
        "Row 10: ',' expected after '\"'\n"
        "Nothing was added.\n"
    )


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (b"name,category_id\nRex,3\nJos\xe9,3\n", "Line 3 is not UTF-8"),
        (b"\xff\xfen\0a\0m\0e\0", "Line 1 is not UTF-8"),
        (b"", "Row 1 must be name,category_id,status; it is []."),
        (b"sep=;\nname;category_id\nRex;3\n", "Row 1 must be "),
        (b"name\tcategory_id\nRex\t3\n", "Row 1 must be "),
        (b"name,category_id,name\nRex,3,Mia\n", "Row 1 must be "),
        (b"name,category_id,stauts\nRex,3,sold\n", "Row 1 must be "),
        (b'name,category_id\nMia,3\n"Rex,3\nLeo,3\n', "Row 3: unexpected end"),
    ],
)
def test_file_that_is_not_such_csv_is_refused(
    import_file: Any, content: bytes, error: str
) -> None:
    assert import_file("http://127.0.0.1:1/v1", content).startswith(error)


def test_missing_key_or_file_is_explained(
    import_file: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    explanation = "Set BASE_URL and API_KEY, and give the name of a CSV file.\n"
    monkeypatch.delenv("API_KEY")
    assert import_file("http://127.0.0.1:1/v1", b"") == explanation
    monkeypatch.setenv("API_KEY", "key")
    monkeypatch.setattr("sys.argv", [PROGRAM])
    assert import_file("http://127.0.0.1:1/v1", b"") == explanation


def test_import_survives_a_minute_without_the_service(
    import_file: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("time.sleep", pauses.append)
    monkeypatch.setattr("random.uniform", min)

    with serve(hang_up) as server:
        output = import_file(server.base_url, b"name,category_id\nRex,3\n")

    assert "Stopped: POST" in output
    assert sum(pauses) > 60
