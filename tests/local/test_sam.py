"""What `make sam-local` prepares, and how it ends; no engine is needed."""

import json
import os
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.in_process import own_layer
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


def test_without_an_engine_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")

    with pytest.raises(LocalError, match="Start Docker"):
        sam.host_address()
