"""docs/examples/import_csv.py with the files that spreadsheets and shells write."""

import runpy
from pathlib import Path
from typing import Any

import pytest
from animal_store_client import Client

from tests.support.processes import RunningService
from tests.support.scripted_server import hang_up, serve
from tools import ROOT

PROGRAM = str(ROOT / "docs/examples/import_csv.py")


@pytest.fixture
def import_file(
    service: RunningService,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Any:
    """Import `Tiere März.csv` with this content; return the program's output."""
    file = tmp_path / "Tiere März.csv"
    monkeypatch.setattr("sys.argv", [PROGRAM, str(file)])
    monkeypatch.setenv("BASE_URL", service.base_url)
    monkeypatch.setenv("API_KEY", service.api_key)

    def import_file(content: str, encoding: str = "utf-8") -> str:
        file.write_bytes(content.encode(encoding))
        try:
            runpy.run_path(PROGRAM, run_name="__main__")
        except SystemExit as message:
            print(message)
        return capsys.readouterr().out

    return import_file


def animals(service: RunningService, category: int) -> list[tuple[str, str | None]]:
    """Return name and status of each animal of a category, in the order of names."""
    with Client(service.base_url, service.api_key) as client:
        pets = [pet for pet in client.pets() if pet.category_id == category]
    return sorted((pet.name, pet.status) for pet in pets)


@pytest.mark.parametrize(
    ("content", "encoding"),
    [
        # Excel's "CSV UTF-8", "CSV" in Europe, "Unicode text" and "CSV (Macintosh)"
        ("name,category_id,status\r\nŒdipe,8001,sold\r\n", "utf-8-sig"),
        ("name;category_id;status\r\nŒdipe;8001;sold\r\n", "cp1252"),
        ("name\tcategory_id\tstatus\r\nŒdipe\t8001\tsold\r\n", "utf-16"),
        ("name,category_id,status\rŒdipe,8001,sold\r", "utf-8"),
        (" Status, Category_ID , Name\n sold , 8001 , Œdipe\n\n,,\n", "utf-8"),
    ],
)
def test_files_of_spreadsheets_and_shells_are_imported(
    import_file: Any, service: RunningService, content: str, encoding: str
) -> None:
    output = import_file(content, encoding)
    assert output == "1 added, 0 added before, 0 refused\n"
    assert set(animals(service, 8001)) == {("Œdipe", "sold")}


def test_rows_of_a_file_are_added_once_and_those_of_a_changed_file_again(
    import_file: Any, service: RunningService
) -> None:
    file = "name,category_id\nRex,8002\nRex,8002\n"
    assert import_file(file) == "2 added, 0 added before, 0 refused\n"
    assert import_file(file) == "0 added, 2 added before, 0 refused\n"
    changed = "name,category_id\nRex,8002\nLeo,8002\n"
    assert import_file(changed) == "2 added, 0 added before, 0 refused\n"
    names = [name for name, _ in animals(service, 8002)]
    assert names == ["Leo", "Rex", "Rex", "Rex"]


def test_invalid_cells_are_named_with_their_rows_and_nothing_is_added(
    import_file: Any, service: RunningService
) -> None:
    output = import_file(
        "name,category_id,status\nRex,8003,\nMia,,sold\n\n,8003,\n"
        "Leo,9E+15,Sold\nKim,8003,sold,surplus\nMax,99999999999999999999,\n"
    )
    assert output == (
        "row 3: category_id is '', not an integer of at most 19 digits\n"
        "row 5: name is empty\n"
        "row 6: category_id is '9E+15', not an integer of at most 19 digits\n"
        "row 6: status is 'Sold', not one of available, pending, sold\n"
        "row 7: there are more cells than columns: 'surplus'\n"
        "row 8: category_id is '99999999999999999999', not an integer of at most 19 digits\n"
        "Nothing was added: correct these rows first.\n"
    )
    assert animals(service, 8003) == []


def test_row_that_the_service_refuses_is_counted_as_refused(import_file: Any) -> None:
    output = import_file(f"name,category_id\nRex,8004\nMia,{2**63}\n")
    assert output == (
        "1 added, 0 added before, 1 refused\n"
        "Put the refused rows, corrected, into a file of their own, and import that.\n"
    )


def test_import_outlasts_a_minute_without_the_service(
    import_file: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("time.sleep", pauses.append)
    monkeypatch.setattr("random.uniform", min)

    with serve(hang_up) as server:
        monkeypatch.setenv("BASE_URL", server.base_url)
        output = import_file("name,category_id\nRex,8006\n")

    assert "Stopped: POST" in output
    assert sum(pauses) > 60
