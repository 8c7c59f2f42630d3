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

    def import_file(base_url: str, content: str, encoding: str = "utf-8") -> str:
        monkeypatch.setenv("BASE_URL", base_url)
        file.write_bytes(content.encode(encoding))
        try:
            runpy.run_path(PROGRAM, run_name="__main__")
        except SystemExit as message:
            print(message)
        return capsys.readouterr().out

    return import_file


@pytest.mark.parametrize(
    ("content", "encoding"),
    [
        # Excel's "CSV UTF-8", "CSV" in Europe, "Unicode text" and "CSV (Macintosh)"
        ("name,category_id,status\r\nŒdipe,3,sold\r\n", "utf-8-sig"),
        ("name;category_id;status\r\nŒdipe;3;sold\r\n", "cp1252"),
        ("name\tcategory_id\tstatus\r\nŒdipe\t3\tsold\r\n", "utf-16"),
        ("name,category_id,status\rŒdipe,3,sold\r", "utf-8"),
        (" Status, Category_ID , Name\n sold , 3 , Œdipe\n\n,,\n", "utf-8"),
    ],
)
def test_csv_files_written_by_spreadsheets_or_shells_are_imported(
    import_file: Any, content: str, encoding: str
) -> None:
    with serve(reply(REX)) as server:
        output = import_file(server.base_url, content, encoding)
    assert output == "1 added, 0 added before, 0 refused\n"
    [request] = server.received
    assert request.json == {"name": "Œdipe", "categoryId": 3, "status": "sold"}


def test_rows_are_added_once_but_rows_of_a_changed_file_are_added_again(
    import_file: Any, service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("API_KEY", service.api_key)
    url, file = service.base_url, "name,category_id\nRex,8002\nRex,8002\n"
    assert import_file(url, file) == "2 added, 0 added before, 0 refused\n"
    assert import_file(url, file) == "0 added, 2 added before, 0 refused\n"
    changed_file = f"name,category_id\nRex,8002\nMia,{2**63}\n"
    assert import_file(url, changed_file) == (
        "1 added, 0 added before, 1 refused\n"
        "Put the refused rows, corrected, into a file of their own, and import that.\n"
    )


def test_invalid_cells_are_reported_with_their_row_and_nothing_is_added(
    import_file: Any,
) -> None:
    with serve(reply(REX)) as server:
        output = import_file(
            server.base_url,
            "name,category_id,status,\nRex,3,\nMia,,sold\n\n,3,\n"
            "Leo,9E+15,Sold\nKim,3,sold,surplus,\nTom,3,sold,,lost\n",
        )
    assert output == (
        "row 3: category_id is ''; it must be an integer of at most 19 digits\n"
        "row 5: name is ''; it must be 1 to 256 characters\n"
        "row 6: category_id is '9E+15'; it must be an integer of at most 19 digits\n"
        "row 6: status is 'Sold'; it must be available, pending, sold or empty\n"
        "row 7: surplus cell is 'surplus'; it must be empty\n"
        "row 8: surplus cell is 'lost'; it must be empty\n"
        "Nothing was added: correct these rows first.\n"
    )
    assert server.received == []


def test_import_retries_for_more_than_a_minute_while_the_service_is_down(
    import_file: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("time.sleep", pauses.append)
    monkeypatch.setattr("random.uniform", min)

    with serve(hang_up) as server:
        output = import_file(server.base_url, "name,category_id\nRex,3\n")

    assert "Stopped: POST" in output
    assert sum(pauses) > 60
