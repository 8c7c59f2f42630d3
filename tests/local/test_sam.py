"""What `make sam-local` and `make sam-invoke` prepare, and how they end; no engine is needed."""

import json
import os
import subprocess
from pathlib import Path
from unittest import mock

import pytest
from lambda_local import LocalError

from tests.support.in_process import own_layer
from tools import ROOT
from tools.local import sam
from tools.local.folder import DataFolder
from tools.local.service import ENDPOINT_VARIABLE, client


def test_containers_get_sources_variables_and_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sam, "BUILD", tmp_path)
    monkeypatch.setattr(sam, "_address", lambda: "127.0.0.1")
    file = tmp_path / "env.json"
    with own_layer(), sam._prepared(DataFolder(tmp_path / "data"), file):
        variables = json.loads(file.read_text())["Parameters"]
        url = variables[ENDPOINT_VARIABLE].replace(sam.STORE_HOST, "127.0.0.1")
        os.environ.update(variables | {ENDPOINT_VARIABLE: url})
        assert client().scan(TableName="animal-store-local-AnimalsTable")["Items"] == []

    assert file.stat().st_mode & 0o777 == 0o600
    template = (tmp_path / "template.yaml").read_text()
    assert f"    Default: {sam._PROCESSOR}\n" in template
    assert f"      CodeUri: {ROOT}/functions/list_pets/\n" in template
    assert f"      ContentUri: {tmp_path}/layer/\n" in template
    assert f"        {ENDPOINT_VARIABLE}: none\n" in template


def test_without_an_engine_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")

    with pytest.raises(LocalError, match="Start Docker"):
        sam._address()


@pytest.mark.parametrize(
    ("address", "status", "message"),
    [
        ("192.0.2.1", 2, "the layer cannot be built"),
        ("2001:db8::1", 0, "no IPv4 address"),
    ],
)
def test_layer_or_address_that_is_missing_is_explained(
    monkeypatch: pytest.MonkeyPatch, address: str, status: int, message: str
) -> None:
    hosts = mock.Mock(return_value=f"{address}\t{sam.STORE_HOST}\n")
    monkeypatch.setattr(subprocess, "check_output", hosts)
    monkeypatch.setattr(subprocess, "call", mock.Mock(return_value=status))

    with pytest.raises(LocalError, match=message):
        sam._address()
