"""What `make sam-local` prepares, and how it ends; no engine is needed."""

import json
import os
import signal
import socket
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.in_process import own_layer
from tests.support.processes import run_service
from tools import ROOT
from tools.local import LocalError, sam
from tools.local.folder import DataFolder
from tools.local.service import ENDPOINT_VARIABLE, client


def test_containers_get_sources_variables_and_the_store(tmp_path: Path) -> None:
    data = DataFolder(tmp_path / "data")
    with (
        own_layer(),
        data.held_by_service(),
        sam.prepared(data, tmp_path, "127.0.0.1"),
    ):
        file = tmp_path / sam.VARIABLES
        variables = json.loads(file.read_text())["Parameters"]
        url = variables[ENDPOINT_VARIABLE].replace(sam.STORE_HOST, "127.0.0.1")
        os.environ.update(variables | {ENDPOINT_VARIABLE: url})
        del os.environ["AWS_ENDPOINT_URL"]  # or the store would answer without HTTP
        with closing(client()) as dynamodb:
            found = dynamodb.scan(TableName="animal-store-local-AnimalsTable")["Items"]

    assert found == []
    assert file.stat().st_mode & 0o777 == 0o600
    template = (tmp_path / "template.yaml").read_text()
    assert f"    Default: {sam.PROCESSOR}\n" in template
    assert f"      CodeUri: {ROOT}/functions/list_pets/\n" in template
    assert f"      ContentUri: {sam.BUILD}/layer/\n" in template
    assert f"        {ENDPOINT_VARIABLE}: none\n" in template


# In place of sam, which needs an engine: it opens its port late, and takes time to end.
STAND_IN = """
import socket, sys, time
time.sleep(0.5)
with socket.create_server(("127.0.0.1", int(sys.argv[4]))):
    try:
        time.sleep(60)
    except KeyboardInterrupt:
        time.sleep(1)
        print("all containers are removed", flush=True)
"""
SAM_LOCAL = f"""
import os, sys
os.setpgrp()
from ops.__main__ import main
from tools.local import sam
sam.BUILD, sam.host_address = sam.DataFolder().path, lambda: "127.0.0.1"
sam._SAM, sys.argv = {STAND_IN!r}, ["animal-store", "sam-local"]
main()
"""


def test_it_answers_when_it_says_so_and_ends_with_its_containers(
    tmp_path: Path,
) -> None:
    with run_service(tmp_path, sys.executable, "-c", SAM_LOCAL) as service:
        address = service.http.base_url.host, service.http.base_url.port
        socket.create_connection(address).close()

        # To each process of the group, as a terminal does it.
        os.killpg(service.process.pid, signal.SIGTERM)

        assert service.process.wait(20) == 0
    assert "all containers are removed" in service.console.read_text()


def test_without_an_engine_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")

    with pytest.raises(LocalError, match="Start Docker"):
        sam.host_address()
