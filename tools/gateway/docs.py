"""The interactive API page: Swagger UI from the copy that Powertools packages, and `openapi.yaml` for this server."""

import importlib.util
from pathlib import Path

import yaml

from tools.gateway.events import Answer
from tools.gateway.pages import file_answer

_PAGE = Path(__file__).with_name("docs.html")
_SWAGGER_UI = "event_handler/openapi/swagger_ui"


class Docs:
    """Answers requests for the page and its files.

    Args:
        document: Of `openapi.yaml`; read anew for each request, so that the page shows what is being written.
        base_path: What follows the host in the base URL, for instance `/v1`.
    """

    def __init__(self, document: Path, base_path: str) -> None:
        self._document = document
        self._base_path = base_path
        package = importlib.util.find_spec("aws_lambda_powertools")
        folder = Path((package.submodule_search_locations or [""])[0] if package else "") / _SWAGGER_UI
        self._files = {
            "/docs": (_PAGE, "text/html; charset=utf-8"),
            "/docs/swagger-ui.js": (folder / "swagger-ui-bundle.min.js", "text/javascript; charset=utf-8"),
            "/docs/swagger-ui.css": (folder / "swagger-ui.min.css", "text/css; charset=utf-8"),
        }

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
        if path in self._files:
            file, content_type = self._files[path]
            return file_answer(file.read_bytes(), content_type)
        return None

    def _api(self, origin: str) -> bytes:
        try:
            document = yaml.safe_load(self._document.read_text("utf-8"))
            document["servers"] = [{"url": f"{origin}{self._base_path}", "description": "this machine"}]
        except (yaml.YAMLError, TypeError):
            return self._document.read_bytes()  # half written: the page says what is wrong with it
        return yaml.safe_dump(document, sort_keys=False, allow_unicode=True).encode()
