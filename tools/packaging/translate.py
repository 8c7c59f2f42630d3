"""Print the CloudFormation that AWS makes of a template, without AWS: TEMPLATE PARAMETERS.

The translator is AWS's own (aws-sam-translator). It stays in the sam command's environment, whose
Python runs this: in ours, its bounds on pydantic would decide which pydantic ships.
"""

import json
import logging
import sys
from pathlib import Path

import boto3
from samtranslator.parser.parser import Parser  # type: ignore[import-not-found]
from samtranslator.translator.translator import Translator  # type: ignore[import-not-found]
from samtranslator.yaml_helper import yaml_parse  # type: ignore[import-not-found]


def _main(template: str, parameters: str) -> None:
    # JSON turns what YAML anchors share into copies, as in the template that sam uploads.
    source = json.loads(json.dumps(yaml_parse(Path(template).read_text("utf-8"))))
    for resource in source["Resources"].values():
        # Code is not in S3 yet.
        for name in {"CodeUri", "ContentUri"} & resource.get("Properties", {}).keys():
            resource["Properties"][name] = "s3://local/path"
    logging.disable()  # it warns of features for which it would ask AWS
    # Its partition is all that the translator takes from the session.
    session = boto3.Session(region_name="us-east-1")
    translator = Translator({}, Parser(), boto_session=session)
    print(json.dumps(translator.translate(source, json.loads(parameters))))


if __name__ == "__main__":
    _main(*sys.argv[1:])
