"""Load the functions' handlers into this process: imported once, with one copy of the layer for all of them.

AWS gives each function an execution environment. Here threads share one: handlers must not keep the state of a request
in a module's variable.
"""

import importlib
import os
import runpy
import sys
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tools.local import LocalError
from tools.local.output import summary
from tools.local.template import Function, Template

Handler = Callable[[dict[str, Any], Any], Any]


def load(template: Template) -> Mapping[str, Handler]:
    """Import every handler, by logical id, and what they share, afresh; if one cannot be, the modules before stay."""
    functions = template.functions.values()
    folders = {folder.resolve() for folder in (*template.layers, *(function.code for function in functions))}
    sys.path[:0] = [str(folder) for folder in folders if str(folder) not in sys.path]
    importlib.invalidate_caches()
    before = {
        name: sys.modules.pop(name)
        for name, module in list(sys.modules.items())
        if not folders.isdisjoint(Path(getattr(module, "__file__", None) or "").parents)
    }
    try:
        return {function.logical_id: _handler(function) for function in functions}
    except LocalError:
        sys.modules.update(before)
        raise


def _handler(function: Function) -> Handler:
    os.environ.update(function.environment)
    module_name, _, attribute = function.handler.rpartition(".")
    path = function.code.resolve() / f"{module_name}.py"
    try:
        handler: Handler = runpy.run_path(str(path))[attribute]
    except (Exception, SystemExit) as error:
        trace = "".join(traceback.format_exception(error))
        sys.stderr.write(trace)
        raise LocalError(f"{path} cannot be loaded: {summary(trace)}") from error
    return handler
