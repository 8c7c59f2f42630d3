"""docs/examples/import_csv.py with the files that spreadsheets and shells write."""

import itertools
import runpy
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from werkzeug import Request, Response

from tests.support.processes import RunningService
from tests.support.scripted_server import error, forward, hang_up, serve
from tools import ROOT

PROGRAM = ROOT / "docs/examples/import_csv.py"
# A run is one file in a folder of its own; animals of one run have a category of their own.
CATEGORIES = itertools.count(8000)


@pytest.fixture
def import_file(
    service: RunningService,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Any:
    """Write a file, and run the program on it; return what it prints."""
    monkeypatch.setenv("BASE_URL", service.base_url)
    monkeypatch.setenv("API_KEY", service.api_key)

    def import_file(content: str | bytes, name: str = "animals.csv") -> str:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        monkeypatch.setattr("sys.argv", [str(PROGRAM), str(path)])
        try:
            runpy.run_path(str(PROGRAM), run_name="__main__")
        except SystemExit as end:
            return f"{capsys.readouterr().out}{end.code}"
        return capsys.readouterr().out

    return import_file


@pytest.fixture
def category() -> int:
    return next(CATEGORIES)


def animals(service: RunningService, category: int) -> list[tuple[str, str | None]]:
    """Return name and status of the store's animals of a category, in the order of names."""
    pets: list[dict[str, Any]] = []
    url = "/pets?limit=100"
    while url:
        response = service.http.get(url)
        pets += response.json()
        url = response.links.get("next", {}).get("url", "")
    found = [pet for pet in pets if pet["categoryId"] == category]
    return sorted((pet["name"], pet.get("status")) for pet in found)


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("name,category_id,status\nZoé,{},sold\n", "utf-8"),
        (
            "name,category_id,status\r\nZoé,{},sold\r\n",
            "utf-8-sig",
        ),  # Excel, "CSV UTF-8"
        (
            "name;category_id;status\r\nZoé;{};sold\r\n",
            "cp1252",
        ),  # Excel in Europe, "CSV"
        ("name\tcategory_id\tstatus\r\nZoé\t{}\tsold\r\n", "utf-16"),  # "Unicode text"
        ('"name","category_id","status"\n"Zoé",{},"sold"\n', "utf-8"),  # LibreOffice
        ("name,category_id,status\rZoé,{},sold\r", "utf-8"),  # Excel, "CSV (Macintosh)"
        (" Status, Category_ID , Name\n sold , {} , Zoé\n\n,,\n", "utf-8"),
    ],
)
def test_files_of_spreadsheets_and_shells_are_read(
    import_file: Any, service: RunningService, category: int, text: str, encoding: str
) -> None:
    output = import_file(text.format(category).encode(encoding))
    assert output == "1 added, 0 added before, 0 refused\n"
    assert animals(service, category) == [("Zoé", "sold")]


@pytest.mark.parametrize("name", ["my animals.csv", "Tiere März.csv"])
def test_file_may_have_any_name_and_be_imported_again(
    import_file: Any, service: RunningService, category: int, name: str
) -> None:
    content = f"name,category_id\nRex,{category}\nRex,{category}\n"
    assert import_file(content, name) == "2 added, 0 added before, 0 refused\n"
    assert import_file(content, name) == "0 added, 2 added before, 0 refused\n"
    assert animals(service, category) == [("Rex", None), ("Rex", None)]


def test_second_file_of_the_same_name_adds_its_own_rows(
    import_file: Any, service: RunningService, category: int
) -> None:
    import_file(f"name,category_id\nRex,{category}\nMia,{category}\n")
    output = import_file(f"name,category_id\nRex,{category}\nLeo,{category}\n")
    assert output == "2 added, 0 added before, 0 refused\n"
    names = [name for name, _ in animals(service, category)]
    assert names == ["Leo", "Mia", "Rex", "Rex"]


def test_wrong_cells_are_named_with_their_rows_and_nothing_is_added(
    import_file: Any, service: RunningService, category: int
) -> None:
    output = import_file(
        f"name,category_id,status\nRex,{category},\nMia,,sold\n\n,{category},\n"
        f"Leo,9E+15,Sold\nKim,{category},sold,surplus\nMax,{'9' * 20},\n"
    )
    assert output == (
        "row 3: category_id is empty\n"
        "row 5: name is empty\n"
        "row 6: category_id is '9E+15', not an integer of at most 19 digits\n"
        "row 6: status is 'Sold', not one of available, pending, sold\n"
        "row 7: there are more cells than columns: 'surplus'\n"
        "row 8: category_id is '99999999999999999999', not an integer of at most 19 digits\n"
        "Nothing was added: correct these rows first."
    )
    assert animals(service, category) == []


def test_row_that_the_service_refuses_is_counted(
    import_file: Any, category: int
) -> None:
    output = import_file(f"name,category_id\nRex,{category}\nMia,{2**63}\n")
    assert output == (
        "1 added, 0 added before, 1 refused\n"
        "Put the refused rows, corrected, into a file of their own, and import that."
    )


def test_no_row_is_lost_or_added_twice_by_a_service_in_trouble(
    import_file: Any,
    service: RunningService,
    category: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def script(request: Request, number: int) -> Response:
        if number % 5 == 1:
            return error(429, Retry_After="0")
        if number % 5 == 2:
            return hang_up(request, number)
        response = forward(service.origin, request)
        if number % 5 == 3:  # the animal was added, but the response is lost
            return hang_up(request, number)
        return response

    monkeypatch.setattr("random.uniform", lambda *_: 0.01)  # of the client's pauses
    names = [f"Animal {number:02}" for number in range(40)]
    rows = [f"{name},{category}\n" for name in names]

    with serve(script) as server:
        monkeypatch.setenv("BASE_URL", server.base_url)
        output = import_file("name,category_id\n" + "".join(rows))

    assert output.endswith(" 0 refused\n")
    assert [name for name, _ in animals(service, category)] == names


def test_service_may_be_away_for_fifteen_seconds(
    import_file: Any, category: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("random.uniform", min)
    clock = SimpleNamespace(sleep=pauses.append, monotonic=time.monotonic)
    monkeypatch.setattr("animal_store_client.client.time", clock)

    with serve(hang_up) as server:
        monkeypatch.setenv("BASE_URL", server.base_url)
        output = import_file(f"name,category_id\nRex,{category}\n")

    assert "Stopped: POST" in output
    assert sum(pauses) > 60
