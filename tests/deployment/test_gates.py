"""A step that fails fails the whole."""

import os
import subprocess
from pathlib import Path

from tools import ROOT


def test_make_fails_if_the_tests_do() -> None:
    make = "make -o install -o .tools/sam/.installed -o .tools/iam/.installed test"
    assert subprocess.call([*make.split(), "PYTEST_CMD=false"], cwd=ROOT) == 2


def test_ci_fails_if_a_step_does(tmp_path: Path) -> None:
    for name in ("make", "git", "id"):
        (tmp_path / name).write_text(
            '#!/bin/sh\ncase "$* " in *"test "*) exit 1; esac\n'
        )
        (tmp_path / name).chmod(0o755)
    own = {"PATH": f"{tmp_path}:{os.defpath}", "LAMBDA_IMAGE_READY": "none"}
    ci = subprocess.run(
        ROOT / ".ci/run", env=own, check=False, capture_output=True, text=True
    )
    assert (ci.returncode, ci.stderr) == (1, "failed: make test\nfailed: elsewhere\n")
