"""Load the functions' handlers into this process: imported once, with one copy of the layer for all of them.

AWS gives each function an execution environment. Here threads share one: handlers must not keep the state of a request
in a module's variable.
"""

import importlib.util
import os
import sys
import time
import traceback
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from tools.local import LocalError
from tools.local.output import summary
from tools.local.template import ACCOUNT_ID, REGION, Function, Template

Handler = Callable[[dict[str, Any], "LambdaContext"], Any]


@dataclass(frozen=True, slots=True)
class LambdaContext:
    """What Lambda's runtime gives a handler: https://docs.aws.amazon.com/lambda/latest/dg/python-context.html."""

    function_name: str
    memory_limit_in_mb: int
    deadline: float
    aws_request_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    function_version: str = "$LATEST"

    @property
    def invoked_function_arn(self) -> str:
        """Return an ARN like the real one."""
        return f"arn:aws:lambda:{REGION}:{ACCOUNT_ID}:function:{self.function_name}"

    def get_remaining_time_in_millis(self) -> int:
        """Return how many milliseconds the invocation has left."""
        return max(0, int((self.deadline - time.monotonic()) * 1000))


def load(template: Template) -> Mapping[str, Handler]:
    """Import every handler and what it shares with the others afresh; by logical id.

    When one cannot be imported, the modules from before stay.
    """
    functions = template.functions.values()
    variables: dict[str, str] = {}
    for function in functions:
        for name, value in function.environment.items():
            if variables.setdefault(name, value) != value:
                raise LocalError(f"{function.logical_id} needs its own {name}, but locally all functions share one")
    os.environ.update(variables)
    folders = {folder.resolve() for function in functions for folder in (function.code, *function.layers)}
    sys.path[:0] = [str(folder) for folder in folders if str(folder) not in sys.path]
    before = _forget(folders)
    try:
        return {function.logical_id: _handler(function) for function in functions}
    except LocalError:
        _forget(folders)
        sys.modules.update(before)
        raise


def _forget(folders: set[Path]) -> dict[str, ModuleType]:
    """Take the modules of these folders out of `sys.modules`."""
    importlib.invalidate_caches()
    return {
        name: sys.modules.pop(name)
        for name, module in list(sys.modules.items())
        if (file := getattr(module, "__file__", None)) and any(Path(file).is_relative_to(folder) for folder in folders)
    }


def _handler(function: Function) -> Handler:
    module_name, _, attribute = function.handler.rpartition(".")
    path = function.code.resolve() / f"{module_name.replace('.', '/')}.py"
    # Each function's module may be called `app`.
    spec: Any = importlib.util.spec_from_file_location(f"{function.logical_id}.{module_name}", path)
    try:
        module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        handler: Handler = getattr(module, attribute)
    except (Exception, SystemExit) as error:
        trace = "".join(traceback.format_exception(error))
        sys.stderr.write(trace)
        raise LocalError(f"{path} cannot be loaded: {summary(trace)}") from error
    return handler
