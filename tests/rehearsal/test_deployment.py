"""The steps of a deployment, from an empty account to a deleted stack, each on top of the last.

`make rehearse` takes them on an emulator of AWS. After the bootstrap everything is done in the role
of the pipeline, with the functions behind the commands, up to the deletion.
"""

import shutil
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from botocore.exceptions import ClientError

from tests.rehearsal.conftest import BUILD, Rehearsal
from tools.deployment import bootstrap, release, restore, versions
from tools.deployment.service import DeploymentError, check_contract, serve_if_asked, temporary_keys
from tools.deployment.stage import TABLES, client
from tools.packaging.bytecode import compile_tree

REPOSITORY = ["Owner=octo", "OwnerId=1", "Repository=animals", "RepositoryId=2"]
# A text of the layer that every operation answers with, and what a changed layer answers.
TEXT = "Missing or invalid API key."
CHANGED_TEXT = "Missing or invalid API key: this is the changed layer."


def in_full(rehearsal: Rehearsal, request: pytest.FixtureRequest) -> bool:
    """Tell the first stage, which takes every step, from those beside it."""
    return bool(request.config.getoption("stages")[0] == rehearsal.stage.name)


@pytest.fixture
def first_stage(rehearsal: Rehearsal, request: pytest.FixtureRequest) -> Rehearsal:
    """Skip a step that is taken with one stage only."""
    if not in_full(rehearsal, request):
        pytest.skip("taken with the first stage only")
    return rehearsal


def change_layer(folder: Path) -> Path:
    """Build a layer that answers with another text."""
    build = shutil.copytree(BUILD, folder / "changed")
    source = build / "CommonLayer/python/animal_store/errors.py"
    text = source.read_text("utf-8")
    assert text.count(f'"{TEXT}"') == 1
    source.write_text(text.replace(f'"{TEXT}"', f'"{CHANGED_TEXT}"'), "utf-8")
    compile_tree(build / "CommonLayer/python", "/opt/python")
    return build


def assert_every_operation_answers(base_url: str, message: str) -> None:
    """Ask every operation without a key and compare what it says."""
    expected = {"code": "unauthorized", "message": message, "status": 401}
    for method, path in (("GET", "/pets"), ("POST", "/pets"), ("GET", "/pets/1")):
        assert httpx.request(method, base_url + path, timeout=30).json() == expected


def test_bootstrap(rehearsal: Rehearsal, request: pytest.FixtureRequest) -> None:
    rehearsal.become_administrator()
    once = f"CreateApiGatewayLoggingRole={str(in_full(rehearsal, request)).lower()}"
    bootstrap.create(rehearsal.stage, bootstrap.TEMPLATE, [*REPOSITORY, once])


@pytest.mark.parametrize(
    "subject", ["octo/animals:ref:refs/heads/main", "octo@3/animals@2:environment:{stage}"]
)
def test_nobody_else_may_deploy(rehearsal: Rehearsal, subject: str) -> None:
    with pytest.raises(ClientError, match="AccessDenied"):
        rehearsal.become_pipeline(subject.format(stage=rehearsal.stage.name))


@pytest.mark.parametrize(
    "subject", ["octo/animals:environment:{stage}", "octo@1/animals@2:environment:{stage}"]
)
def test_jobs_of_the_environment_may_deploy(rehearsal: Rehearsal, subject: str) -> None:
    rehearsal.become_pipeline(subject.format(stage=rehearsal.stage.name))


def test_deploy(rehearsal: Rehearsal) -> None:
    stage = rehearsal.stage
    with release.opened(rehearsal.pack("first")) as artifact:
        check = partial(versions.check, stage, artifact)
        release.deploy_and_check(stage, artifact, check, canary=True)
    rehearsal.deployed_first = release.released(stage)


def test_the_contract_suite_passes(
    rehearsal: Rehearsal, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    selected = [] if in_full(rehearsal, request) else ["-m", "smoke_read_only"]
    with temporary_keys(rehearsal.stage.outputs()["ApiKeysTableName"]) as keys:
        with capsys.disabled():
            serve_if_asked(rehearsal.base_url, keys)
        check_contract(rehearsal.base_url, keys, "rehearsal", *selected)
    assert_every_operation_answers(rehearsal.base_url, TEXT)


def test_a_changed_parameter_alone_reaches_live(first_stage: Rehearsal) -> None:
    stage = first_stage.stage
    with release.opened(first_stage.pack("memory", MemorySize="512")) as artifact:
        check = partial(versions.check, stage, artifact)
        release.deploy_and_check(stage, artifact, check, canary=True)


def test_a_deployment_whose_check_fails_is_taken_back(first_stage: Rehearsal) -> None:
    stage, before = first_stage.stage, release.released(first_stage.stage)

    def fail() -> None:
        assert_every_operation_answers(first_stage.base_url, CHANGED_TEXT)
        raise DeploymentError("the check fails")

    changed = first_stage.pack("changed", change_layer(first_stage.folder))
    with release.opened(changed) as artifact:
        with pytest.raises(DeploymentError, match="the check fails"):
            release.deploy_and_check(stage, artifact, fail, canary=False)
        with (
            pytest.raises(DeploymentError, match="not one artifact"),
            release.fetched(stage, artifact.name, "passed"),
        ):
            pass

    assert release.released(stage) == before
    assert_every_operation_answers(first_stage.base_url, TEXT)
    with release.fetched(stage, before) as artifact:
        versions.check(stage, artifact)


def test_rollback(first_stage: Rehearsal) -> None:
    stage = first_stage.stage
    with release.fetched(stage, first_stage.deployed_first, "passed") as artifact:
        check = partial(versions.check, stage, artifact)
        release.deploy_and_check(stage, artifact, check, canary=False, is_rollback=True)
    assert release.released(stage) == first_stage.deployed_first
    assert stage.used_parameters()["MemorySize"] == "1024"


class Writers:
    """Four clients that add animals until they are stopped."""

    def __init__(self, base_url: str, key: str) -> None:
        """Start them."""
        headers = {"Authorization": f"Bearer {key}"}
        self.http = httpx.Client(base_url=base_url, headers=headers, timeout=30)
        self.created: list[dict[str, Any]] = []
        self._stop = threading.Event()
        self._pool = ThreadPoolExecutor()
        self._pool.map(self._write, ("four", "clients", "at", "once"))

    def _write(self, name: str) -> None:
        while not self._stop.is_set():
            response = self.http.post("/pets", json={"name": name, "categoryId": 1})
            if response.status_code == httpx.codes.CREATED:
                self.created.append(response.json())

    def wait_for_more(self) -> None:
        """Wait until some more animals were added."""
        goal, deadline = len(self.created) + 20, time.monotonic() + 120
        while len(self.created) < goal:
            assert time.monotonic() < deadline, "nothing can be created"
            time.sleep(0.1)

    def stop(self) -> None:
        """Stop them, after the requests that are under way."""
        self._stop.set()
        self._pool.shutdown()


@pytest.fixture
def writers(first_stage: Rehearsal) -> Iterator[Writers]:
    """Let clients write for the time of a step."""
    with temporary_keys(first_stage.stage.outputs()["ApiKeysTableName"]) as keys:
        writers = Writers(first_stage.base_url, keys[0])
        yield writers
        writers.stop()


def test_restore_and_cut_over_under_writers(first_stage: Rehearsal, writers: Writers) -> None:
    stage, http = first_stage.stage, writers.http
    writers.wait_for_more()
    page = http.get("/pets", params={"limit": 10})
    table = restore.restore(stage)
    writers.wait_for_more()
    restore.cut_over(stage, table)
    writers.wait_for_more()
    writers.stop()

    kept = page.json()
    while "next" in page.links:
        page = http.get(page.links["next"]["url"]).raise_for_status()
        kept += page.json()
    assert stage.outputs()["AnimalsTableName"] == table
    assert len({pet["id"] for pet in writers.created}) == len(writers.created)
    assert [pet for pet in writers.created if pet not in kept] == []


def test_prune_leaves_what_is_in_use(first_stage: Rehearsal) -> None:
    versions.prune(first_stage.stage, keep=1)
    assert_every_operation_answers(first_stage.base_url, TEXT)


def test_delete(rehearsal: Rehearsal) -> None:
    rehearsal.become_administrator()
    stage, cloudformation = rehearsal.stage, client("cloudformation")
    resources = stage.resources()
    with pytest.raises(ClientError, match=r"(?i)protect"):
        cloudformation.delete_stack(StackName=stage.stack)
    cloudformation.update_termination_protection(
        StackName=stage.stack, EnableTerminationProtection=False
    )
    cloudformation.delete_stack(StackName=stage.stack)
    stage.wait()
    for table in TABLES:
        with pytest.raises(ClientError, match=r"(?i)protect"):
            client("dynamodb").delete_table(TableName=resources[table])
