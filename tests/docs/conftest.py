"""The stack, which documents are compared with."""

from tests.template.conftest import stack, stages

__all__ = ["stack", "stages"]
