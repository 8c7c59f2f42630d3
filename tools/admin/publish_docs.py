"""`python -m tools docs`: a copy of the API page that any web server can publish, and a browser open as a file.

Operations cannot be tried on it: the service allows no other site's pages to call it (no CORS).
"""

import shutil
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
    print(output / "index.html")
