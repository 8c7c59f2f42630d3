"""Loads the functions' handlers into this process and invokes them, each function with modules of its own.

AWS gives each function an execution environment; here each has its own copy of its handler and of its layers' modules.
One copy serves many threads, where AWS starts more environments: handlers must not keep the state of a request in a
module's variable.
"""

import contextvars
import importlib
import importlib.util
import itertools
import os
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from tools.local.output import OutputLines
from tools.local.template import ACCOUNT_ID, REGION, Function

Handler = Callable[[dict[str, Any], "LambdaContext"], Any]

_loading = threading.Lock()  # os.environ, sys.path and sys.modules are the process's
_generation = itertools.count()


class LoadError(Exception):
    """A handler cannot be imported; the cause is the exception that its code raised."""


@dataclass(frozen=True, slots=True)
class LambdaContext:
    """What Lambda's runtime gives a handler beside the event.

    Source: https://docs.aws.amazon.com/lambda/latest/dg/python-context.html
    """

    function_name: str
    memory_limit_in_mb: int
    deadline: float
    aws_request_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    function_version: str = "$LATEST"
    identity: None = None
    client_context: None = None

    @property
    def invoked_function_arn(self) -> str:
        """An ARN like the real one's."""
        return f"arn:aws:lambda:{REGION}:{ACCOUNT_ID}:function:{self.function_name}"

    @property
    def log_group_name(self) -> str:
        """The log group that the function would write to."""
        return f"/aws/lambda/{self.function_name}"

    @property
    def log_stream_name(self) -> str:
        """There is one stream."""
        return "local"

    def get_remaining_time_in_millis(self) -> int:
        """Tell how many milliseconds the invocation has left."""
        return max(0, int((self.deadline - time.monotonic()) * 1000))


@dataclass(frozen=True, slots=True)
class LoadedFunction:
    """A function whose handler has been imported."""

    definition: Function
    handler: Handler
    output: OutputLines

    def invoke(self, event: dict[str, Any], deadline: float) -> Any:
        """Call the handler in this thread.

        Args:
            event: The proxy event.
            deadline: When the function's time is over, in seconds of `time.monotonic()`.

        Raises:
            BaseException: Whatever the handler raises.
        """
        definition = self.definition
        context = LambdaContext(definition.logical_id, definition.memory_mb, deadline)
        return contextvars.copy_context().run(self._call, event, context)

    def _call(self, event: dict[str, Any], context: LambdaContext) -> Any:
        with self.output.of(self.definition.logical_id):
            return self.handler(event, context)


def load(definition: Function, output: OutputLines) -> LoadedFunction:
    """Import a handler afresh, with the function's environment, and with its layers' modules to itself.

    Raises:
        LoadError: The import failed.
    """
    module_name, _, attribute = definition.handler.rpartition(".")
    path = definition.code / f"{module_name.replace('.', '/')}.py"
    with _loading, _environment(definition), _private_modules(definition), output.of(definition.logical_id):
        try:
            module = _import_file(path, f"{definition.logical_id}_{next(_generation)}_{module_name}")
            handler = getattr(module, attribute)
        except (Exception, SystemExit) as error:
            raise LoadError(f"{path} cannot be loaded: {type(error).__name__}: {error}") from error
    return LoadedFunction(definition, handler, output)


def share_environment(definitions: Iterable[Function]) -> None:
    """Set the variables on which all functions agree for the whole process, for code that reads them while it runs.

    A variable that differs between functions is there only while a function's code is imported: threads share one
    environment.
    """
    environments = [definition.environment.items() for definition in definitions]
    os.environ.update(set.intersection(*map(set, environments)) if environments else {})


def _import_file(path: Path, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # pydantic and dataclasses look a class's module up there
    spec.loader.exec_module(module)
    return module


@contextmanager
def _environment(definition: Function) -> Iterator[None]:
    """Show the function's environment variables while its code is imported."""
    variables = {
        **definition.environment,
        # https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars.html#configuration-envvars-runtime
        "AWS_LAMBDA_FUNCTION_NAME": definition.logical_id,
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(definition.memory_mb),
        "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
        "AWS_LAMBDA_INITIALIZATION_TYPE": "on-demand",
        "LAMBDA_TASK_ROOT": str(definition.code),
    }
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        # One by one: handlers that run in other threads meanwhile must find what they share.
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def _private_modules(definition: Function) -> Iterator[None]:
    """Let the modules of the function's own folders be imported anew, and forget them afterwards."""
    folders = [folder.resolve() for folder in (definition.code, *definition.layers)]
    path = list(sys.path)
    _forget(folders)
    sys.path[:0] = map(str, folders)
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path[:] = path
        _forget(folders)


def _forget(folders: list[Path]) -> None:
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if file and any(Path(file).is_relative_to(folder) for folder in folders):
            del sys.modules[name]
