"""The stack, which documents are compared with."""

from tests.template.conftest import stack

__all__ = ["stack"]
