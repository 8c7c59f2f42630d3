"""The interactive API page: Swagger UI, from the copy that Powertools packages."""

import importlib.resources
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def swagger_ui() -> dict[str, bytes]:
    """Read the files of Swagger UI, by the names that the page uses."""
    folder = (
        importlib.resources.files("aws_lambda_powertools")
        / "event_handler/openapi/swagger_ui"
    )
    files = {
        "swagger-ui.js": "swagger-ui-bundle.min.js",
        "swagger-ui.css": "swagger-ui.min.css",
    }
    return {name: (folder / file).read_bytes() for name, file in files.items()}


def page(files: str, note: str, settings: Mapping[str, Any]) -> bytes:
    """Make the page, with a note above (HTML), Swagger UI's files below a URL, and its settings."""
    # In a script, "</" could end the element (HTML, 4.12.1.3).
    script = json.dumps(settings).replace("</", "<\\/")
    text = Path(__file__).with_name("docs.html").read_text("utf-8")
    return (
        text.replace("{{files}}", files)
        .replace("{{note}}", note)
        .replace("{{settings}}", script)
        .encode()
    )
