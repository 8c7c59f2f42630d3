"""Rehearse the deployment of a stage on an emulator of AWS, with the commands that deploy it.

It needs what `make build ARCH=x86_64` built, calls nobody outside this machine, and leaves nothing behind.
"""
# ruff: noqa: S101 - what it asserts is its result

import base64
import contextlib
import json
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import httpx
import pytest
import typer
from botocore.exceptions import ClientError

from tools import ROOT
from tools.deployment import bootstrap, emulator, release, restore, versions
from tools.deployment.service import DeploymentError, check_contract, serve_if_asked, temporary_keys
from tools.deployment.stage import TABLES, Stage, client
from tools.packaging import artifact
from tools.packaging.bytecode import compile_tree
from tools.packaging.targets import TARGETS

_TARGET = TARGETS["x86_64"]
# A text of the layer that every operation answers with, and what the changed layer answers.
_TEXT, _CHANGED_TEXT = (
    "Missing or invalid API key.",
    "Missing or invalid API key: this is the changed layer.",
)


def rehearse(
    stages: Annotated[list[Stage], typer.Argument(parser=Stage, metavar="STAGE...")],
) -> None:
    """Rehearse the first stage in full on an emulator of AWS, and others beside it (SERVE=1: leave it up)."""
    os.environ["ALARM_EMAIL"] = "alarms@example.com"
    start = time.monotonic()
    with (
        tempfile.TemporaryDirectory(prefix="rehearsal-") as folder,
        emulator.running(Path(folder) / "emulator", settings={"AUTH": "true"}) as aws,
    ):
        for stage in stages:
            adapted = Stage(stage.name, emulator.adapt, {"Architecture": "x86_64"})
            for step in _rehearse(adapted, aws, Path(folder), full=stage is stages[0]):
                print(f"[{time.monotonic() - start:5.1f} s] {stage.name}: {step}", flush=True)
    print("", emulator.LACKS.read_text("utf-8"), sep="\n")


def _rehearse(stage: Stage, aws: str, folder: Path, *, full: bool) -> Iterator[str]:
    """Prepare an account, deploy, use, change, roll back, restore, prune and delete a stage; tell each step."""
    emulator.use(aws)
    yield _bootstrap(stage, aws, folder / "bootstrap.json", first=full)
    yield _deploy(stage, aws)
    base_url = f"{aws}/{stage.name}/v1"
    with temporary_keys(stage.outputs()["ApiKeysTableName"]) as keys:
        serve_if_asked(base_url, keys)
        check_contract(base_url, keys, "rehearsal", *([] if full else ["-m", "smoke_read_only"]))
        yield "the contract suite, through the emulated API Gateway" + (
            "" if full else ": what only reads"
        )
        if full:
            yield from _change(stage, folder, base_url)
            yield _restore(stage, base_url, keys[0])
            versions.prune(stage, keep=1)
            yield "prune: old versions are deleted"
        _expect(base_url, _TEXT)
    yield _delete(stage)


def _bootstrap(stage: Stage, aws: str, path: Path, *, first: bool) -> str:
    """Prepare the emulated account as for a repository of GitHub's, and try who becomes the role that deploys."""
    shutil.copy(bootstrap.TEMPLATE, path)
    emulator.adapt(path, {})
    once = f"CreateApiGatewayLoggingRole={str(first).lower()}"
    bootstrap.create(
        stage, path, ["Owner=octo", "OwnerId=1", "Repository=animals", "RepositoryId=2", once]
    )
    for subject in (
        "octo/animals:ref:refs/heads/main",
        f"octo@3/animals@2:environment:{stage.name}",
    ):
        with pytest.raises(ClientError, match="AccessDenied"):
            _become_pipeline(stage, aws, subject)
    return "bootstrap; only jobs of the stage's environment may deploy"


def _become_pipeline(stage: Stage, aws: str, subject: str) -> None:
    """Become the role that deploys, as a job does whose token has this subject."""
    issuer = {"iss": "https://token.actions.githubusercontent.com", "aud": "sts.amazonaws.com"}
    parts = ({"alg": "none"}, issuer | {"sub": f"repo:{subject}"}, 0)
    token = ".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).decode() for part in parts)
    role = stage.account()["DeployRoleArn"]
    answer = client("sts").assume_role_with_web_identity(
        RoleArn=role, RoleSessionName="job", WebIdentityToken=token
    )
    emulator.use(aws, answer["Credentials"])


def _deploy(stage: Stage, aws: str) -> str:
    for subject in ("octo/animals:environment:", "octo@1/animals@2:environment:"):
        emulator.use(aws)
        _become_pipeline(stage, aws, subject + stage.name)
    release.promote(stage, _TARGET.artifact, lambda: None, canary=True)
    emulator.use(aws)
    reserved = int(stage.used_parameters()["ReservedConcurrency"])
    for name in stage.functions().values() if reserved else ():  # the emulator does not
        client("lambda").put_function_concurrency(
            FunctionName=name, ReservedConcurrentExecutions=reserved
        )
    versions.check(stage, _TARGET.artifact)
    return f"deploy, in the pipeline's role: {len(stage.resources())} resources; live is what was asked for"


def _change(stage: Stage, folder: Path, base_url: str) -> Iterator[str]:
    """Change a parameter alone, then the layer too; go back because a check fails, and by a rollback."""

    def check_layer() -> None:
        _expect(base_url, _CHANGED_TEXT)
        raise DeploymentError("the check of the changed layer fails")

    first = release.released(stage)
    memory, changed = _variant(folder / "memory", _TEXT), _variant(folder / "layer", _CHANGED_TEXT)
    release.promote(stage, memory, partial(versions.check, stage, memory), canary=True)
    yield "update with nothing changed but MemorySize: live has it"
    with pytest.raises(DeploymentError, match=r"check of the changed layer fails\n.* again"):
        release.promote(stage, changed, check_layer, canary=True)
    _expect(base_url, _TEXT)
    versions.check(stage, memory)
    with (
        release.unpacked(changed) as failed,
        pytest.raises(DeploymentError, match="not one artifact"),
    ):
        release.fetched(stage, failed.name, "passed").__enter__()
    yield "update with nothing changed but the layer: every operation answers from it"
    yield "a deployment whose check fails goes back by itself, and no rollback takes it"
    with release.fetched(stage, first, "passed") as path:
        release.promote(stage, path, partial(_expect, base_url, _TEXT), canary=False, back=True)
        versions.check(stage, path)
    yield "roll back: the artifact deployed first, from the bucket, answers again; MemorySize is back"


def _variant(build: Path, message: str) -> Path:
    """Pack the build with another MemorySize, and a layer that answers with another message."""
    shutil.copytree(_TARGET.build_dir, build)
    source = build / "CommonLayer/python/animal_store/errors.py"
    text = source.read_text("utf-8")
    assert text.count(f'"{_TEXT}"') == 1
    source.write_text(text.replace(f'"{_TEXT}"', f'"{message}"'), "utf-8")
    compile_tree(build / "CommonLayer/python", "/opt/python")
    config, packed = build.with_suffix(".toml"), build.with_suffix(".zip")
    text = (ROOT / "samconfig.toml").read_text("utf-8")
    config.write_text(text.replace('    "Canary=', '    "MemorySize=512",\n    "Canary='), "utf-8")
    artifact.pack(build, packed, config)
    return packed


def _expect(base_url: str, message: str) -> None:
    """Ask every operation without a key and compare what it says."""
    for method, path in (("GET", "/pets"), ("POST", "/pets"), ("GET", "/pets/1")):
        response = httpx.request(method, base_url + path, timeout=30)
        assert response.json() == {"code": "unauthorized", "message": message, "status": 401}, (
            method,
            path,
        )


def _restore(stage: Stage, base_url: str, key: str) -> str:
    """Restore the table of animals while clients write: nothing acknowledged is lost, no id is given twice."""
    http = httpx.Client(base_url=base_url, headers={"Authorization": f"Bearer {key}"}, timeout=30)
    created: list[dict[str, Any]] = []
    stop = threading.Event()

    def write(name: str) -> None:
        while not stop.is_set():
            response = http.post("/pets", json={"name": name, "categoryId": 1})
            if response.status_code == httpx.codes.CREATED:
                created.append(response.json())

    def wait_for_more() -> None:
        goal, deadline = len(created) + 20, time.monotonic() + 120
        while len(created) < goal:
            assert time.monotonic() < deadline, "nothing can be created"
            time.sleep(0.1)

    with ThreadPoolExecutor() as pool, contextlib.ExitStack() as stopping:
        stopping.callback(stop.set)
        pool.map(write, ("four", "clients", "at", "once"))
        wait_for_more()
        page = http.get("/pets", params={"limit": 10})
        table = restore.restore(stage)
        wait_for_more()
        restore.cut_over(stage, table)
        wait_for_more()
    kept = page.json()
    while "next" in page.links:
        page = http.get(page.links["next"]["url"]).raise_for_status()
        kept += page.json()
    assert stage.outputs()["AnimalsTableName"] == table
    assert len({pet["id"] for pet in created}) == len(created), "an id was given twice"
    assert [pet for pet in created if pet not in kept] == [], "acknowledged animals are lost"
    return f"restore: clients wrote {len(created)} animals meanwhile, none lost, no id twice; a cursor goes on"


def _delete(stage: Stage) -> str:
    """Delete the stack, which is protected; its tables outlive it and are protected too."""
    cloudformation, dynamodb, resources = (
        client("cloudformation"),
        client("dynamodb"),
        stage.resources(),
    )
    with pytest.raises(ClientError, match=r"(?i)protect"):
        cloudformation.delete_stack(StackName=stage.stack)
    cloudformation.update_termination_protection(
        StackName=stage.stack, EnableTerminationProtection=False
    )
    cloudformation.delete_stack(StackName=stage.stack)
    stage.wait()
    for table in TABLES:
        with pytest.raises(ClientError, match=r"(?i)protect"):
            dynamodb.delete_table(TableName=resources[table])
    return "delete: refused while the stack is protected; the tables stayed, and are protected themselves"
