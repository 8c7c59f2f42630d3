"""The interactive API page: Swagger UI from the copy that Powertools packages, and `openapi.yaml` for this server."""

import importlib.util
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from tools.local.events import Answer
from tools.local.pages import file_answer

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
    """Make the page.

    Args:
        files: Where Swagger UI's files are, relative to the page or absolute.
        note: HTML above the documentation.
        settings: For Swagger UI: where the document is, or the document itself.
    """
    # In a script, "</" could end the element: https://html.spec.whatwg.org/multipage/scripting.html#restrictions-for-contents-of-script-elements
    script = json.dumps(settings).replace("</", "<\\/")
    text = _PAGE.read_text("utf-8")
    for name, value in {"files": files, "note": note, "settings": script}.items():
        text = text.replace("{{" + name + "}}", value)
    return text.encode()


class Docs:
    """Answers requests for the page and its files.

    Args:
        document: Of `openapi.yaml`; read anew for each request, so that the page shows what is being written.
        base_path: What follows the host in the base URL, for instance `/v1`.
    """

    def __init__(self, document: Path, base_path: str) -> None:
        self._document = document
        self._base_path = base_path

    def answer(self, method: str, path: str, origin: str) -> Answer | None:
        """Answer a GET or HEAD of one of the page's files; None for every other request.

        Args:
            method: As in the request line.
            path: As in the request target.
            origin: By which the browser reached this server, so that the page may call it.
        """
        if method not in {"GET", "HEAD"}:
            return None
        if path == "/openapi.yaml" and self._document.is_file():
            return file_answer(self._api(origin), "application/yaml")
        if path == "/docs":
            return file_answer(page("/docs", _NOTE, {"url": "/openapi.yaml"}), "text/html; charset=utf-8")
        if path == "/docs/swagger-ui.js":
            return file_answer(swagger_ui()["swagger-ui.js"], "text/javascript; charset=utf-8")
        if path == "/docs/swagger-ui.css":
            return file_answer(swagger_ui()["swagger-ui.css"], "text/css; charset=utf-8")
        return None

    def _api(self, origin: str) -> bytes:
        try:
            document = yaml.safe_load(self._document.read_text("utf-8"))
            document["servers"] = [{"url": f"{origin}{self._base_path}", "description": "this machine"}]
        except (yaml.YAMLError, TypeError):
            return self._document.read_bytes()  # half written: the page says what is wrong with it
        return yaml.safe_dump(document, sort_keys=False, allow_unicode=True).encode()
