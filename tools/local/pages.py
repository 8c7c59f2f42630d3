"""The local gateway's own pages, beside the API: documentation and status."""

from typing import Protocol

from tools.local.events import Answer


class Page(Protocol):
    """Answers requests for one page and its files."""

    def answer(self, method: str, path: str, origin: str) -> Answer | None:
        """Answer a GET or HEAD of one of the page's files; None for every other request.

        Args:
            method: As in the request line.
            path: As in the request target.
            origin: By which the browser reached this server, so that the page may call it.
        """


class Pages:
    """Several pages as one.

    Args:
        pages: Asked in this order.
    """

    def __init__(self, *pages: Page) -> None:
        self._pages = pages

    def answer(self, method: str, path: str, origin: str) -> Answer | None:
        """Answer as the first page does that knows the path."""
        answers = (page.answer(method, path, origin) for page in self._pages)
        return next((answer for answer in answers if answer is not None), None)


def file_answer(content: bytes, content_type: str) -> Answer:
    """Make the answer with a page's file."""
    headers = [("Content-Type", content_type), ("Cache-Control", "no-store"), ("X-Content-Type-Options", "nosniff")]
    return Answer(200, headers, content)
