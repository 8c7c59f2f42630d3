"""Write a copy of the API page that a web server can publish, or a browser open as a file.

Operations cannot be tried on it: the service allows no other site's pages to call it (no CORS).
"""

import shutil
from functools import reduce
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

from tools import ROOT
from tools.local.docs import page, swagger_ui

# Of the Swagger UI that Powertools packages without them (5.31.0), from its npm package
# swagger-ui-dist.
_LICENSES = Path(__file__).with_name("swagger_ui_licenses")
_NOTE = (
    'The document itself: <a href="openapi.yaml">openapi.yaml</a> (<a href="LICENSE">MIT</a>). '
    "To try the operations, run the service on your machine: <code>make run</code>. "
    'Shown by Swagger UI (<a href="swagger-ui.LICENSE.txt">Apache-2.0</a>, '
    '<a href="swagger-ui.NOTICE.txt">notice</a>, '
    '<a href="swagger-ui-bundle.js.LICENSE.txt">parts</a>).'
    "<style>.swagger-ui :is(.auth-wrapper, .scheme-container) { display: none }</style>"
)


def docs(
    output: Annotated[
        Path, typer.Argument(file_okay=False, help="The folder to write to.")
    ] = ROOT / "build/docs",
) -> None:
    """Write the documentation page for publishing, with the licenses of what it contains."""
    document = ROOT / "openapi.yaml"
    # In the page, because a browser lets a page from a file read no other file.
    spec = yaml.safe_load(document.read_text("utf-8"))
    settings = {"spec": _resolve(spec, spec), "supportedSubmitMethods": []}
    shutil.copytree(_LICENSES, output, dirs_exist_ok=True)
    (output / "index.html").write_bytes(page(".", _NOTE, settings))
    for name, content in swagger_ui().items():
        (output / name).write_bytes(content)
    for file in (document, ROOT / "LICENSE"):
        shutil.copy(file, output)
    print(output / "index.html")


def _resolve(value: Any, document: dict[str, Any]) -> Any:
    """Replace each `$ref` by what it stands for; Swagger UI would request the page to find it."""
    if isinstance(value, list):
        return [_resolve(item, document) for item in value]
    if not isinstance(value, dict):
        return value
    if "$ref" in value:
        return _resolve(
            reduce(
                lambda part, step: part[step], value["$ref"].split("/")[1:], document
            ),
            document,
        )
    return {name: _resolve(member, document) for name, member in value.items()}
