"""`make sam-local`, without a container engine: its files, its start and its end."""

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
        sam.container_files(data, tmp_path, "127.0.0.1"),
    ):
        file = tmp_path / sam.VARIABLES
        variables = json.loads(file.read_text())["Parameters"]
        url = variables[ENDPOINT_VARIABLE].replace(sam.STORE_HOST, "127.0.0.1")
        os.environ.update(variables | {ENDPOINT_VARIABLE: url})
        with closing(client()) as dynamodb:
            page = dynamodb.scan(TableName="animal-store-local-AnimalsTable")

    assert page["Items"] == []
    assert file.stat().st_mode & 0o777 == 0o600
    template = json.loads((tmp_path / "template.yaml").read_text())
    resources = template["Resources"]
    function, layer = resources["ListPetsFunction"], resources["CommonLayer"]
    declared = template["Globals"]["Function"]["Environment"]["Variables"]
    assert template["Parameters"]["Architecture"]["Default"] == sam.PROCESSOR
    assert function["Properties"]["CodeUri"] == f"{ROOT}/functions/list_pets"
    assert layer["Properties"]["ContentUri"] == f"{sam.BUILD}/layer"
    assert declared.keys() == variables.keys()


# It stands in for sam, which needs an engine: it opens its port late, and takes time to end.
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


def test_port_is_open_when_announced_and_termination_waits_for_sam(
    tmp_path: Path,
) -> None:
    with run_service(tmp_path, sys.executable, "-c", SAM_LOCAL) as service:
        address = service.http.base_url.host, service.http.base_url.port
        socket.create_connection(address).close()

        # A terminal sends a signal to each process of the group.
        os.killpg(service.process.pid, signal.SIGTERM)

        assert service.process.wait(20) == 0
    assert "all containers are removed" in service.console.read_text()


def test_missing_container_engine_is_reported_with_advice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")

    with pytest.raises(LocalError, match="Start Docker"):
        sam.host_address()
