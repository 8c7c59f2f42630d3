"""`python -m tools docs`: a copy of the API page that any web server can publish, and a browser open as a file.

Operations cannot be tried on it: the service allows no other site's pages to call it (no CORS).
"""

import shutil
from importlib.metadata import files
from pathlib import Path
from typing import Annotated

import typer
import yaml

from tools import ROOT
from tools.local.docs import page, swagger_ui

_NOTE = (
    'The document itself: <a href="openapi.yaml">openapi.yaml</a>. '
    "To try the operations, run the service on your machine: <code>make run</code>."
    "<style>.swagger-ui .auth-wrapper { display: none }</style>"
)
_SWAGGER_UI_NOTICE = "Swagger UI (https://github.com/swagger-api/swagger-ui)\nCopyright SmartBear Software Inc.\n"


def docs(
    output: Annotated[Path, typer.Argument(file_okay=False, help="The folder to write to.")] = ROOT / "build/docs",
) -> None:
    """Write the documentation page for publishing."""
    document = ROOT / "openapi.yaml"
    # In the page, because a browser lets a page from a file read no other file.
    settings = {"spec": yaml.safe_load(document.read_text("utf-8")), "supportedSubmitMethods": []}
    output.mkdir(parents=True, exist_ok=True)
    (output / "index.html").write_bytes(page(".", _NOTE, settings))
    for name, content in swagger_ui().items():
        (output / name).write_bytes(content)
    shutil.copyfile(document, output / "openapi.yaml")
    # Powertools packages Swagger UI without its licence; the SDK's is the same.
    apache = next(file for file in files("botocore") or () if file.name == "LICENSE.txt")
    (output / "swagger-ui.LICENSE.txt").write_text(_SWAGGER_UI_NOTICE + apache.read_text("utf-8"), "utf-8")
    print(output / "index.html")
