"""docs/examples/import_csv.py with the files that spreadsheets and shells write."""

import runpy
from pathlib import Path
from typing import Any

import pytest

from tests.support.processes import RunningService
from tests.support.scripted_server import REX, reply, serve
from tools import ROOT

PROGRAM = str(ROOT / "docs/examples/import_csv.py")


@pytest.fixture
def import_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Import `Tiere März.csv` with this content, without the client's pauses."""
    file = tmp_path / "Tiere März.csv"
    monkeypatch.setattr("sys.argv", [PROGRAM, str(file)])
    monkeypatch.setattr("time.sleep", id)
    monkeypatch.setenv("API_KEY", "key")

    def import_file(content: bytes, base_url: str = "") -> None:
        monkeypatch.setenv("BASE_URL", base_url)
        file.write_bytes(content)
        runpy.run_path(PROGRAM, run_name="__main__")

    return import_file


@pytest.mark.parametrize(
    "content",
    [
        "\ufeffname,category_id,status\r\nŒdipe,3,sold\r\n",  # Excel's "CSV UTF-8"
        "name;category_id;status\r\nŒdipe;3;sold\r\n",  # the same in Europe
        'name,category_id,status\r"Œdipe",3,sold\r',  # "CSV (Macintosh)"
        "name,category_id,status\n\n,,\nŒdipe,3,sold\n",
    ],
)
def test_file_is_imported_in_spite_of_an_outage(import_file: Any, content: str) -> None:
    with serve([*[reply({}, 503)] * 19, reply(REX)]) as server:
        import_file(content.encode(), server.base_url)
    pet = {"name": "Œdipe", "categoryId": 3, "status": "sold"}
    assert server.received[-1].json == pet


def test_only_rows_of_a_changed_file_are_added_again(
    import_file: Any,
    service: RunningService,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("API_KEY", service.api_key)
    file = (
        b"name,category_id,status\nRex,-9223372036854775808,\nRex,9223372036854775807,"
    )
    for content in (file, file, file + b"\n"):
        import_file(content, service.base_url)
    assert capsys.readouterr().out == (
        "2 added, 0 added before\n0 added, 2 added before\n2 added, 0 added before\n"
    )


LONG_NAME = "x" * 257
FAULTY_ROWS = f"""name,category_id,status
"Rex
",3,sold
 \ufeff,9223372036854775808,Sold
{LONG_NAME},-9223372036854775809,
Mia,+1,

Leo,1e3,
Kim,٣,
Tom,3
Max,3,,
"""
FAULTS = f"""Row 3: the name is ' \\ufeff'.
Row 3: the category_id is '9223372036854775808'.
Row 3: the status is 'Sold'.
Row 4: the name is '{LONG_NAME}'.
Row 4: the category_id is '-9223372036854775809'.
Row 5: the category_id is '+1'.
Row 7: the category_id is '1e3'.
Row 8: the category_id is '٣'.
Row 9: 2 cells, not 3.
Row 10: 4 cells, not 3.
A name has 1 to 256 characters, not only white space. A category_id is a
64-bit integer. A status is available, pending, sold or empty.
Nothing was added."""


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (FAULTY_ROWS.encode(), FAULTS),
        (
            b"name,category_id,status\nJos\xe9,3,",
            "'utf-8' codec can't decode byte 0xe9",
        ),
        (b'name,category_id,status\nMia,3,\n"Rex,3,\nLeo,3,', "Row 3: unexpected end"),
        (b'name,category_id,status\n"Rex"s,3,', "Row 2: ',' expected after"),
        (b"", "Row 1 must be name,category_id,status."),
        (b"name\tcategory_id\tstatus\n", "Row 1 must be "),
        (b"name,category_id,stauts\n", "Row 1 must be "),
    ],
)
def test_faulty_file_is_explained_and_adds_nothing(
    import_file: Any, content: bytes, error: str
) -> None:
    with pytest.raises(SystemExit) as explanation:
        import_file(content)
    assert str(explanation.value).startswith(error)


def test_missing_key_or_file_is_explained(
    import_file: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    explained = pytest.raises(SystemExit, match="Set BASE_URL and API_KEY, and give")
    monkeypatch.delenv("API_KEY")
    with explained:
        import_file(b"")
    monkeypatch.setenv("API_KEY", "key")
    monkeypatch.setattr("sys.argv", [PROGRAM])
    with explained:
        import_file(b"")
