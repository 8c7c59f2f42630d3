"""The stack of production as AWS would make it."""

import pytest

from tests.support.stack import Template, parameters
from tools.packaging.translate import translate


@pytest.fixture(scope="session")
def stack() -> Template:
    """Translate template.yaml for production; staging differs in values of parameters."""
    return translate(parameters("production"))
