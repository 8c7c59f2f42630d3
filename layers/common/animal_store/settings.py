"""The environment that `template.yaml` gives each function, read once per execution environment."""

import os

# Powertools reads its namespace from this variable, too; here only `telemetry` does.
METRICS_NAMESPACE = os.environ["POWERTOOLS_METRICS_NAMESPACE"]
STAGE = os.environ["STAGE"]
ANIMALS_TABLE = os.environ["ANIMALS_TABLE"]
API_KEYS_TABLE = os.environ["API_KEYS_TABLE"]
