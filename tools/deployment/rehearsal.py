"""Rehearse the deployment of a stage on an emulator of AWS, with the commands that deploy it.

It needs what `make build ARCH=x86_64` built, calls nobody outside this machine, and leaves nothing behind.
"""

import base64
import contextlib
import json
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import httpx
from botocore.exceptions import ClientError

from tools import ROOT
from tools.deployment import adaptation, bootstrap, emulator, live, release, restore, roles
from tools.deployment.prune import prune
from tools.deployment.service import Deployment, DeploymentError, temporary_keys
from tools.deployment.stage import TABLES, Stage, client
from tools.packaging import artifact
from tools.packaging.bytecode import compile_tree
from tools.packaging.targets import TARGETS
from tools.packaging.translate import translate

_TARGET = TARGETS["x86_64"]
# A text of the layer that every operation answers with, and what the changed layer answers.
_TEXT, _CHANGED_TEXT = "Missing or invalid API key.", "Missing or invalid API key: this is the changed layer."
_WRITERS = 4


@dataclass(slots=True)
class Rehearsal:
    """A stage on a running emulator, and what has been done and left out."""

    stage: Stage
    folder: Path
    aws: emulator.Emulator
    done: list[str] = field(default_factory=list)
    template: dict[str, Any] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    started: float = field(default_factory=time.monotonic)

    def note(self, what: str) -> None:
        """Note a step that went well."""
        self.done.append(what)
        print(f"[{time.monotonic() - self.started:5.1f} s] {what}", flush=True)

    def adapt(self, packaged: Path, parameters: dict[str, str]) -> None:
        """Change a packaged template and its parameters so that the emulator takes them."""
        parameters["Architecture"] = "x86_64"
        self.template, left_out = adaptation.adapt(translate(parameters, packaged))
        self.left_out |= left_out
        packaged.write_text(json.dumps(self.template), "utf-8")

    def check(self, path: Path) -> None:
        """Compare what runs with an artifact."""
        with release.unpacked(path) as unpacked:
            live.check(self.stage, unpacked)

    def variant(self, name: str, change: Callable[[Path, Path], None]) -> Path:
        """Pack the build with a change, made to a copy of it and of samconfig.toml."""
        build, config = self.folder / name, self.folder / f"{name}.toml"
        shutil.copytree(_TARGET.build_dir, build)
        shutil.copy(ROOT / "samconfig.toml", config)
        change(build, config)
        artifact.pack(build, self.folder / f"{name}.zip", config)
        return self.folder / f"{name}.zip"


def rehearse(stage: Stage, folder: Path, *, serve: bool) -> None:
    """Prepare an account, deploy, use, change, roll back, restore, prune and delete a stage."""
    if not _TARGET.artifact.exists():
        raise DeploymentError("nothing is built: make build ARCH=x86_64")
    os.environ["ALARM_EMAIL"] = "alarms@example.com"
    with emulator.running(folder / "emulator", settings=["AUTH=true"]) as aws:
        aws.use()
        run = Rehearsal(stage, folder, aws)
        _bootstrap(run)
        _deploy(run)
        base_url = aws.serve_api(stage.resources()["Api"], stage.name)
        with temporary_keys(stage.outputs()["ApiKeysTableName"]) as keys:
            deployment = Deployment(base_url, keys)
            if serve:
                deployment.serve()
            deployment.check_contract("rehearsal")
            run.note("the contract suite, through the emulated API Gateway")
            tried = roles.try_all(aws, run.template, stage.resources())
            run.note(f"IAM: {tried} calls of functions' roles, allowed where the template says so and nowhere else")
            made = set(stage.resources())
            _change(run, base_url)
            _restore(run, deployment)
            run.note(f"prune: {len(list(prune(stage, keep=1)))} old versions deleted")
            _expect(base_url, _TEXT)
        _delete(run)
    _report(run, made)


def _bootstrap(run: Rehearsal) -> None:
    """Prepare the emulated account as for a repository of GitHub's, and try who becomes the role that deploys."""
    path = run.folder / "bootstrap.json"
    template, run.left_out = adaptation.adapt(translate({}, bootstrap.TEMPLATE))
    path.write_text(json.dumps(template), "utf-8")
    bootstrap.create(run.stage, path, ["Owner=octo", "OwnerId=1", "Repository=animals", "RepositoryId=2"])
    for subject in ("octo/animals:ref:refs/heads/main", "octo@3/animals@2:environment:" + run.stage.name):
        _expect_refusal(partial(_become_pipeline, run, subject), ClientError)
    run.note(f"bootstrap: {len(template['Resources'])} resources; only the stage's environment may deploy")


def _become_pipeline(run: Rehearsal, subject: str) -> None:
    """Become the role that deploys, as a job does whose token has this subject."""
    claims = {
        "iss": "https://token.actions.githubusercontent.com",
        "aud": "sts.amazonaws.com",
        "sub": f"repo:{subject}",
    }
    token = ".".join(
        base64.urlsafe_b64encode(json.dumps(part).encode()).decode() for part in ({"alg": "none"}, claims, 0)
    )
    role = run.stage.account()["DeployRoleArn"]
    answer = client("sts").assume_role_with_web_identity(RoleArn=role, RoleSessionName="job", WebIdentityToken=token)
    run.aws.use(answer["Credentials"])


def _deploy(run: Rehearsal) -> None:
    stage = run.stage
    for subject in ("octo/animals:environment:", "octo@1/animals@2:environment:"):
        run.aws.use()
        _become_pipeline(run, subject + stage.name)
    release.install(stage, _TARGET.artifact, canary=True, prepare=run.adapt)
    run.aws.use()
    reserved = int(stage.used_parameters()["ReservedConcurrency"])
    for name in stage.functions().values() if reserved else ():  # the emulator does not
        client("lambda").put_function_concurrency(FunctionName=name, ReservedConcurrentExecutions=reserved)
    run.check(_TARGET.artifact)
    run.note(f"deploy, in the pipeline's role: {len(stage.resources())} resources; live is what was asked for")


def _change(run: Rehearsal, base_url: str) -> None:
    """Change a parameter alone, the layer alone; go back by a rollback, and because a check fails."""
    first = release.released(run.stage)
    memory = run.variant("memory", _change_memory)
    release.promote(run.stage, memory, partial(run.check, memory), canary=True, prepare=run.adapt)
    run.note("update with nothing changed but MemorySize: live has it")
    changed = run.variant("layer", _change_layer)
    promote = partial(release.promote, run.stage, canary=True, prepare=run.adapt)
    promote(changed, partial(_expect, base_url, _CHANGED_TEXT))
    run.note("update with nothing changed but the layer: every operation answers from it")
    with release.fetched(run.stage, first) as path:
        promote(path, partial(_expect, base_url, _TEXT))
        run.note("roll back: the artifact deployed first, from the bucket, answers again")
        _expect_refusal(lambda: promote(changed, partial(_expect, base_url, "another text")), DeploymentError)
        _expect(base_url, _TEXT)
        run.check(path)
    run.note("a deployment whose check fails goes back by itself")


def _change_memory(_: Path, config: Path) -> None:
    config.write_text(config.read_text("utf-8").replace('    "Canary=', '    "MemorySize=512",\n    "Canary='), "utf-8")


def _change_layer(build: Path, _: Path) -> None:
    python = build / "CommonLayer/python"
    source = python / "animal_store/errors.py"
    text = source.read_text("utf-8")
    if text.count(f'"{_TEXT}"') != 1:
        raise DeploymentError(f"{source.name} does not have the text that the rehearsal changes: {_TEXT}")
    source.write_text(text.replace(f'"{_TEXT}"', f'"{_CHANGED_TEXT}"'), "utf-8")
    compile_tree(python, "/opt/python")


def _expect(base_url: str, message: str) -> None:
    """Ask every operation without a key and compare what it says."""
    for method, path in (("GET", "/pets"), ("POST", "/pets"), ("GET", "/pets/1")):
        response = httpx.request(method, base_url + path, timeout=30)
        if response.json() != {"code": "unauthorized", "message": message, "status": 401}:
            raise DeploymentError(f"{method} {path} answers {response.status_code} {response.text}, not {message}")


def _expect_refusal(call: Callable[[], Any], error: type[Exception]) -> None:
    try:
        call()
    except error as refusal:
        print(f"  as it should be: {str(refusal).splitlines()[0]}", flush=True)
    else:
        raise DeploymentError("what should be refused was done")


def _restore(run: Rehearsal, deployment: Deployment) -> None:
    """Restore the table of animals while clients write: nothing acknowledged is lost, no id is given twice."""
    http = httpx.Client(headers={"Authorization": f"Bearer {deployment.keys[0]}"}, timeout=30)
    url = f"{deployment.base_url}/pets"
    with _writers(http, url) as created:
        _wait_for(created, 20)
        page = http.get(url, params={"limit": 1})
        table = restore.restore(run.stage, "AnimalsTable", None)
        _wait_for(created, len(created) + 20)
        restore.cut_over(run.stage, "AnimalsTable", table, carry=True, drain_s=2, prepare=run.adapt)
        _wait_for(created, len(created) + 20)
    kept = page.json()
    while "next" in page.links:
        page = http.get(page.links["next"]["url"]).raise_for_status()
        kept += page.json()
    if run.stage.outputs()["AnimalsTableName"] != table:
        raise DeploymentError("the stage does not use the restored table")
    if len({pet["id"] for pet in created}) != len(created):
        raise DeploymentError("an id was given twice")
    if lost := [pet for pet in created if pet not in kept]:
        raise DeploymentError(f"{len(lost)} acknowledged animals are lost, {lost[0]} is one")
    run.note(f"restore: {_WRITERS} clients wrote {len(created)} animals, none lost, no id twice; a cursor goes on")


@contextlib.contextmanager
def _writers(http: httpx.Client, url: str) -> Iterator[list[dict[str, Any]]]:
    """Create animals all the time, and keep what was acknowledged."""
    created: list[dict[str, Any]] = []
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            response = http.post(url, json={"name": threading.current_thread().name, "categoryId": 1})
            if response.status_code == httpx.codes.CREATED:
                created.append(response.json())

    with ThreadPoolExecutor(_WRITERS) as pool:
        for _ in range(_WRITERS):
            pool.submit(write)
        try:
            yield created
        finally:
            stop.set()


def _wait_for(created: list[dict[str, Any]], count: int) -> None:
    deadline = time.monotonic() + 120
    while len(created) < count:
        if time.monotonic() > deadline:
            raise DeploymentError("nothing can be created")
        time.sleep(0.1)


def _delete(run: Rehearsal) -> None:
    """Delete the stack, which is protected; its tables outlive it and are protected too."""
    cloudformation, dynamodb, resources = client("cloudformation"), client("dynamodb"), run.stage.resources()
    delete = partial(cloudformation.delete_stack, StackName=run.stage.stack)
    _expect_refusal(delete, ClientError)
    cloudformation.update_termination_protection(StackName=run.stage.stack, EnableTerminationProtection=False)
    delete()
    run.stage.wait()
    for table in TABLES:
        _expect_refusal(partial(dynamodb.delete_table, TableName=resources[table]), ClientError)
        if not dynamodb.scan(TableName=resources[table], Limit=1)["Items"]:
            raise DeploymentError(f"{resources[table]} did not outlive the stack")
    run.note("delete: refused while the stack is protected; the tables stayed, and are protected themselves")


def _report(run: Rehearsal, made: set[str]) -> None:
    sections = {
        "Rehearsed": run.done,
        "Completed for the emulator": adaptation.EMULATOR["completed"],
        "Accepted without effect": adaptation.without_effect(run.template, made),
        "Left out, because it cannot be on the emulator": [f"{name}: {why}" for name, why in run.left_out.items()],
        "Not tried here at all": adaptation.EMULATOR["not tried"],
    }
    for title, lines in sections.items():
        print(f"\n{title}", *(f"  - {line}" for line in lines), sep="\n")
