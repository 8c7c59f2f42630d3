"""The interactive API page: Swagger UI, from the copy that Powertools packages."""

import importlib.util
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_PAGE = Path(__file__).with_name("docs.html")
_NOTE = (
    "Press <b>Authorize</b> and paste the API key that <code>make run</code> printed, then open an operation and press "
    '<b>Execute</b>. What the service has done since: <a href="/status">status</a>.'
)


def swagger_ui() -> dict[str, bytes]:
    """Read the files of Swagger UI, by the names that the page uses."""
    package = importlib.util.find_spec("aws_lambda_powertools")
    folder = (
        Path((package.submodule_search_locations or [""])[0] if package else "") / "event_handler/openapi/swagger_ui"
    )
    return {
        "swagger-ui.js": (folder / "swagger-ui-bundle.min.js").read_bytes(),
        "swagger-ui.css": (folder / "swagger-ui.min.css").read_bytes(),
    }


def page(files: str, note: str, settings: Mapping[str, Any]) -> bytes:
    """Make the page, with a note above (HTML), Swagger UI's files below a URL, and its settings."""
    # In a script, "</" could end the element: https://html.spec.whatwg.org/multipage/scripting.html#restrictions-for-contents-of-script-elements
    script = json.dumps(settings).replace("</", "<\\/")
    text = _PAGE.read_text("utf-8")
    for name, value in {"files": files, "note": note, "settings": script}.items():
        text = text.replace("{{" + name + "}}", value)
    return text.encode()


def local_page() -> bytes:
    """Make the page that `make run` serves."""
    return page("/docs", _NOTE, {"url": "/openapi.yaml"})
