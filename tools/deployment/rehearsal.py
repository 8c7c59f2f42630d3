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
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import boto3
import httpx
from botocore.exceptions import ClientError

from tools import ROOT
from tools.deployment import adaptation, bootstrap, emulator, housekeeping, live, release, restore, roles
from tools.deployment.emulator import Emulator
from tools.deployment.service import Deployment, DeploymentError, temporary_keys
from tools.deployment.stage import TABLES, Stage, client
from tools.packaging import artifact
from tools.packaging.bytecode import compile_tree
from tools.packaging.targets import TARGETS
from tools.packaging.translate import translate

_EXPECTED_FAILURES = ROOT / "tests/contract/expected_failures/rehearsal.yaml"
# A text of the layer that every operation answers with, and what the changed layer answers.
_TEXT, _CHANGED_TEXT = "Missing or invalid API key.", "Missing or invalid API key: this is the changed layer."
_WRITERS = 4


@dataclass(slots=True)
class Rehearsal:
    """A stage on a running emulator, and a log of what has been done."""

    stage: Stage
    folder: Path
    aws: Emulator
    done: list[str] = field(default_factory=list)
    template: dict[str, Any] = field(default_factory=dict)
    changed: dict[str, str] = field(default_factory=dict)
    started: float = field(default_factory=time.monotonic)

    def note(self, what: str) -> None:
        """Note a step that went well."""
        self.done.append(what)
        print(f"[{time.monotonic() - self.started:5.1f} s] {what}", flush=True)

    def adapt(self, packaged: Path, parameters: dict[str, str]) -> None:
        """Change a packaged template and its parameters so that the emulator takes them."""
        parameters["Architecture"] = "x86_64"
        self.template, changed = adaptation.adapt(translate(parameters, packaged))
        self.changed |= changed
        packaged.write_text(json.dumps(self.template), "utf-8")

    def install(self, path: Path, *, canary: bool = True) -> None:
        """Deploy an artifact and see that it runs."""
        release.install(self.stage, path, canary=canary, prepare=self.adapt)
        self.check(path)

    def reserve_concurrency(self) -> None:
        """Reserve what the template says, for the emulator does not."""
        if reserved := int(self.stage.used_parameters()["ReservedConcurrency"]):
            for name in self.stage.functions().values():
                client("lambda").put_function_concurrency(FunctionName=name, ReservedConcurrentExecutions=reserved)

    def become(self, subject: str) -> Any:
        """Give GitHub's token for a job, and get credentials of the role that deploys."""
        issuer = "https://token.actions.githubusercontent.com"
        claims = json.dumps({"iss": issuer, "aud": "sts.amazonaws.com", "sub": subject}).encode()
        token = ".".join(base64.urlsafe_b64encode(part).decode() for part in (b'{"alg": "none"}', claims, b""))
        arn = self.stage.account()["DeployRoleArn"]
        return client("sts").assume_role_with_web_identity(
            RoleArn=arn, RoleSessionName="rehearsal", WebIdentityToken=token
        )["Credentials"]

    @contextlib.contextmanager
    def deploying(self) -> Iterator[None]:
        """Act as the pipeline does, in the role that it becomes; the account's root user does the rest."""
        credentials = self.become(f"repo:octo@1/animals@2:environment:{self.stage.name}")
        os.environ["AWS_ACCESS_KEY_ID"] = credentials["AccessKeyId"]
        os.environ["AWS_SECRET_ACCESS_KEY"] = credentials["SecretAccessKey"]
        os.environ["AWS_SESSION_TOKEN"] = credentials["SessionToken"]
        boto3.setup_default_session()
        yield
        del os.environ["AWS_SESSION_TOKEN"]
        os.environ.update(self.aws.environment())
        boto3.setup_default_session()

    def check(self, path: Path) -> None:
        """Compare what runs with an artifact."""
        with release.unpacked(path) as unpacked:
            live.check(self.stage, unpacked)

    def variant(self, name: str, change: Callable[[Path], None]) -> Path:
        """Pack the build with a change, made to a copy of it and of samconfig.toml beside it."""
        build = self.folder / name
        shutil.copytree(TARGETS["x86_64"].build_dir, build)
        config = self.folder / f"{name}.toml"
        shutil.copy(ROOT / "samconfig.toml", config)
        change(build)
        artifact.pack(build, self.folder / f"{name}.zip", config)
        return self.folder / f"{name}.zip"


def rehearse(stage: Stage, folder: Path, *, serve: bool) -> None:
    """Prepare an account, deploy, use, change, roll back, restore, prune and delete a stage."""
    path = TARGETS["x86_64"].artifact
    if not path.exists():
        raise DeploymentError("nothing is built: make build ARCH=x86_64")
    with emulator.running(folder / "emulator", settings=["AUTH=true"]) as aws:
        os.environ.update(aws.environment(), ALARM_EMAIL="alarms@example.com")
        run = Rehearsal(stage, folder, aws)
        run.note(f"bootstrap: {_bootstrap(stage, folder)}")
        with run.deploying():
            release.install(stage, path, canary=True, prepare=run.adapt)
        run.reserve_concurrency()
        run.check(path)
        first = release.released(stage)
        made = set(stage.resources())
        run.note(f"deploy: {len(made)} resources of {stage.stack}; what is live is what was asked for")
        aws.serve_api(stage.resources()["Api"])
        with temporary_keys(stage.outputs()["ApiKeysTableName"], os.environ) as keys:
            deployment = Deployment(f"{aws.api_origin}/{stage.name}/v1", keys)
            if serve:
                deployment.serve()
            deployment.check_contract(_EXPECTED_FAILURES)
            run.note("the contract suite, through the emulated API Gateway")
            run.note(f"IAM: {roles.try_all(run.template, stage.resources())} calls, allowed as the template says")
            _change(run, first, deployment.base_url)
            _restore(run, deployment)
            pruned = list(housekeeping.prune(stage, keep=1))
            _expect(deployment.base_url, _TEXT)
            run.note(f"prune: {len(pruned)} old versions are gone, and what is live answers")
        _delete(run)
    _report(run, made)


def _bootstrap(stage: Stage, folder: Path) -> str:
    """Prepare the emulated account, as GitHub's numbers of a repository would have it."""
    template = folder / "bootstrap.json"
    adapted, changed = adaptation.adapt(translate({}, bootstrap.TEMPLATE))
    template.write_text(json.dumps(adapted), "utf-8")
    bootstrap.create(stage, template, {"Owner": "octo", "Repository": "animals", "OwnerId": "1", "RepositoryId": "2"})
    return f"{len(adapted['Resources'])} resources, without {', '.join(changed) or 'nothing'}"


def _change(run: Rehearsal, first: str, base_url: str) -> None:
    """Change a parameter alone, the layer alone; go back by a rollback, and because a check fails."""

    def less_memory(build: Path) -> None:
        config = build.with_suffix(".toml")
        section = f"[{run.stage.name}.deploy.parameters]"
        before, after = config.read_text("utf-8").split(section)
        config.write_text(before + section + after.replace('"Stage=', '"MemorySize=512",\n    "Stage=', 1), "utf-8")

    run.install(run.variant("memory", less_memory))
    run.note("update with nothing changed but MemorySize: live has it")
    changed = run.variant("layer", _change_layer)
    promote = partial(release.promote, run.stage, changed, canary=True, prepare=run.adapt)
    promote(lambda: _expect(base_url, _CHANGED_TEXT))
    run.note("update with nothing changed but the layer: every operation answers from it")
    path = release.fetch(run.stage, first, run.folder)
    run.install(path, canary=False)
    _expect(base_url, _TEXT)
    run.note("roll back: the artifact deployed first, from the bucket, answers again")
    _expect_refusal(lambda: promote(lambda: _expect(base_url, "something else")), DeploymentError)
    _expect(base_url, _TEXT)
    run.check(path)
    run.note("a deployment whose check fails goes back by itself")


def _change_layer(build: Path) -> None:
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
        response = httpx.request(method, base_url + path, timeout=30, trust_env=False)
        if response.json() != {"code": "unauthorized", "message": message, "status": 401}:
            raise DeploymentError(f"{method} {path} answers {response.status_code} {response.text}, not {message}")


def _restore(run: Rehearsal, deployment: Deployment) -> None:
    """Restore the table of animals while clients write: nothing acknowledged is lost, no id is given twice."""
    created: list[dict[str, Any]] = []
    stop = threading.Event()
    options: Any = {"headers": {"Authorization": f"Bearer {deployment.keys[0]}"}, "timeout": 30, "trust_env": False}

    def write(number: int) -> None:
        with httpx.Client(**options) as http:
            while not stop.is_set():
                response = http.post(f"{deployment.base_url}/pets", json={"name": f"writer {number}", "categoryId": 1})
                if response.status_code == httpx.codes.CREATED:
                    created.append(response.json())

    writers = [threading.Thread(target=write, args=(number,)) for number in range(_WRITERS)]
    with httpx.Client(**options) as http:
        for writer in writers:
            writer.start()
        try:
            _wait_for(created, 20)
            page = http.get(f"{deployment.base_url}/pets?limit=1")
            table = restore.restore(run.stage, "AnimalsTable", None)
            _wait_for(created, len(created) + 20)
            restore.cut_over(run.stage, "AnimalsTable", table, carry=True, drain_s=2, prepare=run.adapt)
            _wait_for(created, len(created) + 20)
        finally:
            stop.set()
            for writer in writers:
                writer.join()
        if len({pet["id"] for pet in created}) != len(created):
            raise DeploymentError("an id was given twice")
        kept = {pet["id"]: pet for pet in page.json()}
        while "next" in page.links:
            page = http.get(page.links["next"]["url"]).raise_for_status()
            kept |= {pet["id"]: pet for pet in page.json()}
    if lost := [pet for pet in created if kept.get(pet["id"]) != pet]:
        raise DeploymentError(f"{len(lost)} acknowledged animals are lost, {lost[0]} is one")
    if run.stage.outputs()["AnimalsTableName"] != table:
        raise DeploymentError("the stage does not use the restored table")
    run.note(f"restore: {_WRITERS} clients wrote {len(created)} animals, none lost, no id twice; a cursor goes on")


def _wait_for(created: list[dict[str, Any]], count: int) -> None:
    deadline = time.monotonic() + 60
    while len(created) < count:
        if time.monotonic() > deadline:
            raise DeploymentError("nothing can be created")
        time.sleep(0.1)


def _delete(run: Rehearsal) -> None:
    """Delete the stack, which is protected; its tables outlive it and are protected too."""
    cloudformation, dynamodb = client("cloudformation"), client("dynamodb")
    resources = run.stage.resources()
    _expect_refusal(lambda: cloudformation.delete_stack(StackName=run.stage.stack), ClientError)
    cloudformation.update_termination_protection(StackName=run.stage.stack, EnableTerminationProtection=False)
    cloudformation.delete_stack(StackName=run.stage.stack)
    run.stage.wait()
    for table in TABLES:
        _expect_refusal(partial(dynamodb.delete_table, TableName=resources[table]), ClientError)
        if not dynamodb.scan(TableName=resources[table], Limit=1)["Items"]:
            raise DeploymentError(f"{resources[table]} did not outlive the stack")
    run.note("delete: refused while the stack is protected; the tables stayed, and are protected themselves")


def _expect_refusal(call: Callable[[], Any], error: type[Exception]) -> None:
    try:
        call()
    except error as refusal:
        print(f"  as it should be: {str(refusal).splitlines()[0]}", flush=True)
    else:
        raise DeploymentError("what should be refused was done")


def _report(run: Rehearsal, made: set[str]) -> None:
    sections = {
        "Rehearsed": run.done,
        "Completed for the emulator": adaptation.COMPLETED,
        "Accepted without effect": adaptation.without_effect(run.template, made),
        "Left out, because the emulator refuses it": [f"{name}: {why}" for name, why in run.changed.items()],
        "Not tried here at all": adaptation.NOT_TRIED,
    }
    for title, lines in sections.items():
        print(f"\n{title}", *(f"  - {line}" for line in lines), sep="\n")
