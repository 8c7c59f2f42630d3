"""Rehearse the deployment of a stage on an emulator of AWS: `python -m tools.deployment` (STAGE=..., SERVE=1).

It needs what `make build ARCH=x86_64` built, calls nobody outside this machine, and leaves nothing behind.
"""

import os
import shutil
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tools import ROOT
from tools.deployment import adaptation, emulator, roles
from tools.deployment.emulator import Emulator, EmulatorError
from tools.deployment.stack import Stack
from tools.deployment.surface import Surface, SurfaceError, end_on_signals, issue_key
from tools.packaging.bytecode import compile_tree
from tools.packaging.targets import TARGETS

if TYPE_CHECKING:
    from collections.abc import Callable

    from tools.deployment.adaptation import Adapted

EXPECTED_FAILURES = ROOT / "tests/contract/expected_failures/rehearsal.yaml"

_OPERATIONS = (("GET", "/pets"), ("POST", "/pets"), ("GET", "/pets/1"))
# A text of the layer that every operation answers with, and what the changed layer answers.
_TEXT, _CHANGED_TEXT = "Missing or invalid API key.", "Missing or invalid API key: this is the changed layer."


@dataclass(slots=True)
class Log:
    """Prints the steps as they are done, and keeps them for the closing list."""

    rehearsed: list[str] = field(default_factory=list)
    started: float = field(default_factory=time.monotonic)

    def done(self, what: str) -> None:
        """Note a step that went well."""
        self.rehearsed.append(what)
        print(f"[{time.monotonic() - self.started:5.1f} s] {what}", flush=True)


def rehearse(stage: str, folder: Path, *, serve: bool) -> None:
    """Deploy, use, change, roll back and delete a stage.

    Args:
        stage: Its name in samconfig.toml.
        folder: For everything that is written.
        serve: Leave the stage up until interrupted, and do nothing else.

    Raises:
        EmulatorError: The emulator can not be used.
        SurfaceError: A step failed.
    """
    build = folder / "build"
    shutil.copytree(_built(), build)
    log = Log()
    with emulator.running(folder / "emulator", settings=["AUTH=true"]) as aws:
        stack = Stack(aws, stage, folder / "stack")
        adapted = stack.deploy(build)
        made = set(stack.names())
        log.done(f"sam package and sam deploy: {len(made)} resources of {stack.name}")
        surface = _surface(aws, stack)
        log.done("the key tool issued two keys into the stack's table")
        if serve:
            surface.serve()
            return
        surface.check_contract(EXPECTED_FAILURES)
        log.done("the contract suite, through the emulated API Gateway")
        _try_roles(aws, stack, log)
        _change_and_roll_back(stack, surface, build, folder / "changed", log)
        _delete(aws, stack, log)
    _report(log, adapted, made)


def _built() -> Path:
    build = TARGETS["x86_64"].build_dir
    if not (build / "template.yaml").exists():
        raise SurfaceError("nothing is built: make build ARCH=x86_64")
    return build


def _surface(aws: Emulator, stack: Stack) -> Surface:
    """Serve the stack's API and issue keys for it."""
    outputs, names = stack.outputs(), stack.names()
    address = f"https://{names['Api']}.execute-api.{emulator.REGION}.amazonaws.com/{stack.parameters['Stage']}/v1"
    if outputs["BaseUrl"] != address:
        raise SurfaceError(f"the output BaseUrl is {outputs['BaseUrl']}, not {address}")
    aws.serve_api(names["Api"])
    environment = aws.environment(os.environ["PATH"])
    keys = [issue_key(outputs["ApiKeysTableName"], label, environment) for label in ("rehearsal", "rehearsal two")]
    return Surface(f"{aws.api_origin}/{stack.parameters['Stage']}/v1", *keys)


def _try_roles(aws: Emulator, stack: Stack, log: Log) -> None:
    outcome = roles.try_all(aws, stack.names())
    print("\n".join(outcome.table))
    if outcome.wrong:
        raise SurfaceError("roles: " + "; ".join(outcome.wrong))
    log.done(
        f"IAM: {outcome.allowed} calls that a role is allowed and {outcome.denied} that it is denied, as they should be"
    )


def _change_and_roll_back(stack: Stack, surface: Surface, build: Path, changed: Path, log: Log) -> None:
    """Deploy another layer and see every operation answer from it, then deploy the first one again."""
    first = stack.live_versions()
    _expect(surface, _TEXT)
    shutil.copytree(build, changed)
    _change_layer(changed / "CommonLayer/python")
    stack.deploy(changed)
    second = stack.live_versions()
    if moved := {name for name in first if first[name] == second[name]}:
        raise SurfaceError(f"a changed layer left the alias of {', '.join(sorted(moved))} where it was")
    _expect(surface, _CHANGED_TEXT)
    log.done("update with nothing changed but the layer: a new version of each function, and it answers")
    stack.deploy(build)
    _expect(surface, _TEXT)
    log.done("roll back by deploying the build before: its layer answers again")


def _change_layer(python: Path) -> None:
    source = python / "animal_store/errors.py"
    text = source.read_text("utf-8")
    if text.count(f'"{_TEXT}"') != 1:
        raise SurfaceError(f"{source.name} does not have the text that the rehearsal changes: {_TEXT}")
    source.write_text(text.replace(f'"{_TEXT}"', f'"{_CHANGED_TEXT}"'), "utf-8")
    compile_tree(python, "/opt/python")


def _expect(surface: Surface, message: str) -> None:
    """Ask every operation without a key and compare what it says."""
    import httpx

    for method, path in _OPERATIONS:
        answer = httpx.request(method, surface.base_url + path, timeout=30, trust_env=False)
        if answer.json() != {"code": "unauthorized", "message": message, "status": 401}:
            raise SurfaceError(f"{method} {path} answers {answer.status_code} {answer.text}, not {message}")


def _delete(aws: Emulator, stack: Stack, log: Log) -> None:
    """Delete the stack, see that its tables outlive it and are protected, then remove them too."""
    dynamodb = aws.client("dynamodb")
    tables = [stack.outputs()[name] for name in ("AnimalsTableName", "ApiKeysTableName")]
    items = [_count(dynamodb, table) for table in tables]
    stack.delete()
    if [_count(dynamodb, table) for table in tables] != items or not all(items):
        raise SurfaceError(f"the tables did not outlive the stack: {tables}, {items}")
    for table in tables:
        if not _refused(lambda table=table: dynamodb.delete_table(TableName=table)):  # type: ignore[misc]
            raise SurfaceError(f"{table} is not protected from deletion")
        dynamodb.update_table(TableName=table, DeletionProtectionEnabled=False)
        dynamodb.delete_table(TableName=table)
    log.done(f"sam delete: the tables and their {sum(items)} items stayed, and refused to be deleted while protected")


def _count(dynamodb: Any, table: str) -> int:
    return sum(page["Count"] for page in dynamodb.get_paginator("scan").paginate(TableName=table, Select="COUNT"))


def _refused(call: "Callable[[], Any]") -> bool:
    from botocore.exceptions import ClientError

    try:
        call()
    except ClientError as error:
        return "protection" in str(error).lower()
    return False


def _report(log: Log, adapted: "Adapted", made: set[str]) -> None:
    sections = {
        "Rehearsed": log.rehearsed,
        "Completed for the emulator": adaptation.COMPLETED,
        "Accepted without effect": list(adaptation.without_effect(adapted.template, made)),
        "Left out, because the emulator refuses it": [
            f"{name}: {why}" for name, why in (adapted.left_out | adapted.reduced).items()
        ],
        "Not tried here at all": [
            "arm64 code",
            "custom domain and certificate",
            "real IAM trust (root assumed the roles)",
        ],
    }
    for title, lines in sections.items():
        print(f"\n{title}")
        print("\n".join(f"  - {line}" for line in lines))


def main() -> None:
    """Run as a command."""
    end_on_signals()
    stage = os.environ.get("STAGE") or "production"
    try:
        with tempfile.TemporaryDirectory(prefix="rehearsal-") as folder:
            rehearse(stage, Path(folder), serve=bool(os.environ.get("SERVE")))
    except (EmulatorError, SurfaceError) as error:
        sys.exit(f"Rehearsal of {stage} failed: {error}")
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
