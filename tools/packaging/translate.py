"""Prints the CloudFormation template that SAM makes from template.yaml with Stage=production.

The module runs in the environment of the command `sam`, whose validator calls AWS's own translator
(aws-sam-translator). In the project's environment, the translator would limit the version of
pydantic.
"""

import json
import logging

from samcli.lib.translate.sam_template_validator import (  # type: ignore[import-not-found]
    SamTemplateValidator,
)
from samcli.yamlhelper import yaml_parse  # type: ignore[import-not-found]

from tools import ROOT


def _main() -> None:
    template = yaml_parse((ROOT / "template.yaml").read_text("utf-8"))
    # A round trip through JSON gives each YAML alias its own copy of the node, as in the template
    # that sam uploads.
    source = json.loads(json.dumps(template))
    logging.disable()  # the translator warns that it cannot read feature toggles
    validator = SamTemplateValidator(
        source,
        managed_policy_loader=None,  # no function names a policy that SAM must look up
        region="us-east-1",  # the translator uses the region only to find the partition
        parameter_overrides={"Stage": "production"},
    )
    print(validator.get_translated_template_if_valid())


if __name__ == "__main__":
    _main()
