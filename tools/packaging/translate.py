"""Turn template.yaml into the CloudFormation that AWS makes of it, without AWS.

The translator is AWS's own (aws-sam-translator). It stays in the sam command's environment: in ours, its bounds on
pydantic would decide which pydantic ships. So `translate` runs this module with that environment's Python.
"""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tools import ROOT

SAM_PYTHON = ROOT / ".tools/sam/bin/python"
TEMPLATE = ROOT / "template.yaml"


def translate(parameters: Mapping[str, str], template: Path = TEMPLATE) -> dict[str, Any]:
    """Translate a SAM template to CloudFormation, as AWS does when it is deployed.

    Code that is still a local path is replaced by an address in S3 that holds the path.
    """
    if not SAM_PYTHON.exists():
        raise RuntimeError("the sam command is not installed: make .tools/sam/.installed")
    command = [str(SAM_PYTHON), "-m", "tools.packaging.translate", str(template.resolve())]
    command += [json.dumps(dict(parameters))]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.strip())
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def _main(template: str, parameters: str) -> None:
    import boto3
    from samtranslator.model.exceptions import InvalidDocumentException  # type: ignore[import-not-found]
    from samtranslator.parser.parser import Parser  # type: ignore[import-not-found]
    from samtranslator.translator.translator import Translator  # type: ignore[import-not-found]
    from samtranslator.yaml_helper import yaml_parse  # type: ignore[import-not-found]

    # Through JSON, so that what YAML anchors share becomes copies, as in the template that sam uploads.
    source = json.loads(json.dumps(yaml_parse(Path(template).read_text(encoding="utf-8"))))
    for resource in source["Resources"].values():
        for name in ("CodeUri", "ContentUri"):
            path = resource.get("Properties", {}).get(name)
            if isinstance(path, str) and not path.startswith("s3://"):
                resource["Properties"][name] = f"s3://local/{path}"
    # Any region of the standard partition: the partition is all that the translator takes from it.
    session = boto3.Session(region_name="us-east-1")
    try:
        result = Translator({}, Parser(), boto_session=session).translate(source, json.loads(parameters))
    except InvalidDocumentException as error:
        raise SystemExit("\n".join(cause.message for cause in error.causes)) from error
    sys.stdout.write(json.dumps(result))


if __name__ == "__main__":
    _main(*sys.argv[1:])
