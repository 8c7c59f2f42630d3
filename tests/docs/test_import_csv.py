"""docs/examples/import_csv.py with the files that spreadsheets and shells write."""

import os
import runpy
from pathlib import Path

import pytest

from tests.support.processes import RunningService
from tests.support.scripted_server import REX, reply, serve
from tools import ROOT

PROGRAM = str(ROOT / "docs/examples/import_csv.py")
FILE = "Tiere März.csv"


@pytest.fixture(autouse=True)
def _environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the program in an empty folder, without the client's pauses."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", [PROGRAM, FILE])
    monkeypatch.setattr("time.sleep", id)
    monkeypatch.setenv("BASE_URL", "")
    monkeypatch.setenv("API_KEY", "key")


def import_file(content: bytes) -> None:
    """Run the program with a file of this content."""
    Path(FILE).write_bytes(content)
    runpy.run_path(PROGRAM, run_name="__main__")


@pytest.mark.parametrize(
    "content",
    [
        "\ufeffname,category_id,status\r\nŒdipe,3,sold\r\n",  # Excel's "CSV UTF-8"
        "name;category_id;status\r\nŒdipe;3;sold\r\n",  # with semicolons
        'name,category_id,status\r"Œdipe",3,sold\r',  # line ends of old Macs
        "name,category_id,status\n\n,,\nŒdipe,3,sold\n",
    ],
)
def test_csv_dialects_are_imported_despite_an_outage(content: str) -> None:
    with serve([*[reply({}, 503)] * 19, reply(REX)]) as server:
        os.environ["BASE_URL"] = server.base_url
        import_file(content.encode())
    pet = {"name": "Œdipe", "categoryId": 3, "status": "sold"}
    assert server.received[-1].json == pet


def test_rows_are_added_again_only_if_the_file_has_changed(
    service: RunningService, capsys: pytest.CaptureFixture[str]
) -> None:
    os.environ |= {"BASE_URL": service.base_url, "API_KEY": service.api_key}
    file = (
        b"name,category_id,status\nRex,-9223372036854775808,\nRex,9223372036854775807,"
    )
    import_file(file)
    import_file(file)
    import_file(file + b"\n")
    assert capsys.readouterr().out == (
        "2 added, 0 added by an earlier attempt\n0 added, 2 added by an earlier attempt\n"
        "2 added, 0 added by an earlier attempt\n"
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
def test_faulty_file_is_explained_and_adds_nothing(content: bytes, error: str) -> None:
    with pytest.raises(SystemExit) as explanation:
        import_file(content)
    assert str(explanation.value).startswith(error)


def test_missing_key_or_file_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    explained = pytest.raises(SystemExit, match="Set BASE_URL and API_KEY, and give")
    del os.environ["API_KEY"]
    with explained:
        import_file(b"")
    os.environ["API_KEY"] = "key"
    monkeypatch.setattr("sys.argv", [PROGRAM])
    with explained:
        import_file(b"")
