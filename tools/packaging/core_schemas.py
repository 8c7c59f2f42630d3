"""Compile the layer's models at build time, so that no function loads pydantic as a whole."""

import pprint
import sys
from pathlib import Path

from tools import ROOT


def write(package: Path) -> None:
    """Put the compiled schemas where `animal_store.validators` looks for them first.

    The locked pydantic compiles them and the locked pydantic_core reads them: they can drift from neither.
    """
    sys.path.insert(0, str(ROOT / "layers/common"))  # the layer is not an installed package
    try:
        from animal_store.models import compile_core_schemas
    finally:
        sys.path.pop(0)
    schemas = pprint.pformat(compile_core_schemas(), width=120)
    (package / "core_schemas.py").write_text(
        f'"""Made by `make build` from models.py."""\n\nCORE_SCHEMAS = {schemas}\n'
    )
