"""Prints production's CloudFormation template, which SAM makes from template.yaml.

The translator is AWS's own (aws-sam-translator). This module runs in the environment of the command
`sam`: in the project's environment, the translator would limit the version of pydantic.
"""

import json
import logging

import boto3
from samtranslator.parser.parser import Parser  # type: ignore[import-not-found]
from samtranslator.translator.translator import Translator  # type: ignore[import-not-found]
from samtranslator.yaml_helper import yaml_parse  # type: ignore[import-not-found]

from tools import ROOT


def _main() -> None:
    template = yaml_parse((ROOT / "template.yaml").read_text("utf-8"))
    # A round trip through JSON gives each YAML alias its own copy of the node, as in the template
    # that sam uploads.
    source = json.loads(json.dumps(template))
    for resource in source["Resources"].values():
        # The translator accepts only code in S3.
        for name in {"CodeUri", "ContentUri"} & resource.get("Properties", {}).keys():
            resource["Properties"][name] = "s3://local/path"
    logging.disable()  # the translator warns that it cannot call AWS
    # The translator uses the session only to find the partition, which is `aws` here.
    session = boto3.Session(region_name="us-east-1")
    translator = Translator({}, Parser(), boto_session=session)
    print(json.dumps(translator.translate(source, {"Stage": "production"})))


if __name__ == "__main__":
    _main()
