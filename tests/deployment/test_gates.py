"""A step that fails fails the whole."""

import os
import subprocess
from pathlib import Path

import pytest

from tools import ROOT


def test_make_fails_if_the_tests_do() -> None:
    make = "make -o install -o .tools/sam/.installed test PYTEST_CMD=false"
    assert subprocess.call(make.split(), cwd=ROOT) == 2


@pytest.mark.parametrize(("failing", "status"), [("test", 1), ("none", 0)])
def test_ci_fails_if_a_step_does(failing: str, status: int, tmp_path: Path) -> None:
    for name in ("make", "git", "id"):
        (tmp_path / name).write_text(f'#!/bin/sh\n[ "$1" != {failing} ]\n')
        (tmp_path / name).chmod(0o755)
    own = {"PATH": f"{tmp_path}:{os.defpath}", "LAMBDA_IMAGE_READY": "none"}
    assert subprocess.call(ROOT / ".ci/run", env=own) == status
