"""A stage's stack on the emulator: package and deploy with `sam` as for AWS, look into it, delete it."""

import json
import os
import subprocess
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tools import ROOT
from tools.deployment.adaptation import Adapted, adapt
from tools.deployment.emulator import Emulator
from tools.deployment.surface import SurfaceError
from tools.packaging.translate import translate

_SAM = ROOT / ".tools/sam/bin/sam"
_CONFIG = ROOT / "samconfig.toml"
_BUCKET = "artifacts"


def stage_parameters(stage: str, config: Path = _CONFIG) -> tuple[str, dict[str, str]]:
    """Return the name of a stage's stack and its parameters, as samconfig.toml gives them.

    Raises:
        SurfaceError: There is no such stage.
    """
    stages = tomllib.loads(config.read_text("utf-8"))
    try:
        given = stages[stage]["deploy"]["parameters"]
    except KeyError:
        raise SurfaceError(f"samconfig.toml has no stage named {stage}") from None
    return given["stack_name"], dict(pair.split("=", 1) for pair in given["parameter_overrides"])


@dataclass(slots=True)
class Stack:
    """The stack of a stage.

    Args:
        emulator: Where it is.
        stage: The stage's name in samconfig.toml.
        folder: For what is written on the way.
    """

    emulator: Emulator
    stage: str
    folder: Path
    name: str = field(init=False)
    parameters: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        """Read the stage's configuration and make what `sam deploy --resolve-s3` would: a bucket."""
        self.name, self.parameters = stage_parameters(self.stage)
        self.parameters["Architecture"] = "x86_64"
        self.folder.mkdir(parents=True, exist_ok=True)
        s3 = self.emulator.client("s3")
        s3.create_bucket(Bucket=_BUCKET, CreateBucketConfiguration={"LocationConstraint": s3.meta.region_name})

    def deploy(self, build: Path) -> Adapted:
        """Package what was built, adapt the template, and let `sam deploy` create or update the stack.

        Args:
            build: A directory that `make build` made.

        Raises:
            SurfaceError: sam failed, or the stack rolled back.
        """
        packaged, template = self.folder / "packaged.yaml", self.folder / "template.json"
        self._sam(
            "package", "--template-file", str(build / "template.yaml"), "--output-template-file", str(packaged),
            "--s3-bucket", _BUCKET, "--no-progressbar",
        )  # fmt: skip
        adapted = adapt(translate(self.parameters, packaged))
        template.write_text(json.dumps(adapted.template))
        self._sam(
            "deploy", "--template-file", str(template), "--config-file", str(_CONFIG), "--config-env", self.stage,
            "--no-resolve-s3", "--s3-bucket", _BUCKET, "--no-progressbar",
            "--parameter-overrides", *(f"{name}={value}" for name, value in self.parameters.items()),
        )  # fmt: skip
        return adapted

    def delete(self) -> None:
        """Delete the stack with `sam delete`; what it retains stays.

        Raises:
            SurfaceError: It could not be deleted.
        """
        self._sam("delete", "--stack-name", self.name, "--no-prompts")

    def outputs(self) -> dict[str, str]:
        """Return the stack's outputs."""
        found = self.emulator.client("cloudformation").describe_stacks(StackName=self.name)["Stacks"][0]["Outputs"]
        return {output["OutputKey"]: output["OutputValue"] for output in found}

    def names(self) -> dict[str, str]:
        """Return the physical names of the stack's resources by their logical ids."""
        pages = self.emulator.client("cloudformation").get_paginator("list_stack_resources")
        summaries: list[dict[str, Any]] = [
            summary for page in pages.paginate(StackName=self.name) for summary in page["StackResourceSummaries"]
        ]
        return {summary["LogicalResourceId"]: summary["PhysicalResourceId"] for summary in summaries}

    def live_versions(self) -> dict[str, str]:
        """Return the version that the alias `live` of each function points at, by the function's logical id."""
        functions = self.emulator.client("lambda")
        return {
            logical_id: functions.get_alias(FunctionName=name, Name="live")["FunctionVersion"]
            for logical_id, name in self.names().items()
            if logical_id.endswith("Function")
        }

    def _sam(self, *arguments: str) -> None:
        path = f"{_SAM.parent}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            [str(_SAM), *arguments],
            cwd=self.folder,
            env=self.emulator.environment(path) | {"HOME": str(self.folder)},
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        if done.returncode:
            raise SurfaceError(f"{done.stdout}\nsam {arguments[0]} failed")
