"""Turn template.yaml into the CloudFormation that AWS makes of it, without AWS.

The translator is AWS's own (aws-sam-translator). It stays in the sam command's environment: in
ours, its bounds on pydantic would decide which pydantic ships. So `translate` runs this module with
that environment's Python.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tools import ROOT


def translate(parameters: dict[str, str]) -> dict[str, Any]:
    """Translate template.yaml as AWS does; code that is not in S3 yet gets an address there."""
    python = f"{ROOT}/.tools/sam/bin/python"
    command = [python, "-m", __name__, "template.yaml", json.dumps(parameters)]
    result: dict[str, Any] = json.loads(subprocess.check_output(command, cwd=ROOT))
    return result


def expand(template: dict[str, Any], parameters: dict[str, str]) -> dict[str, Any]:
    """Translate a template in this process, which has to be the sam command's Python."""
    import boto3
    from samtranslator.parser.parser import Parser  # type: ignore[import-not-found]
    from samtranslator.translator.translator import Translator  # type: ignore[import-not-found]

    # Its partition is all that the translator takes from the session.
    session = boto3.Session(region_name="us-east-1")
    translator = Translator({}, Parser(), boto_session=session)
    expanded: dict[str, Any] = translator.translate(template, parameters)
    return expanded


def _main(template: str, parameters: str) -> None:
    from samtranslator.yaml_helper import yaml_parse  # type: ignore[import-not-found]

    # Through JSON, so that what YAML anchors share becomes copies, as in what sam uploads.
    source = json.loads(json.dumps(yaml_parse(Path(template).read_text("utf-8"))))
    for resource in source["Resources"].values():
        for name in {"CodeUri", "ContentUri"} & resource.get("Properties", {}).keys():
            if not resource["Properties"][name].startswith("s3://"):
                resource["Properties"][name] = "s3://local/path"
    print(json.dumps(expand(source, json.loads(parameters))))


if __name__ == "__main__":
    _main(*sys.argv[1:])
