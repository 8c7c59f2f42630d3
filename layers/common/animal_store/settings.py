"""The environment that `template.yaml` gives each function, read once per execution environment."""

import os

# Powertools' name for the namespace, so that its tools find it; only `telemetry` uses it here.
METRICS_NAMESPACE = os.environ["POWERTOOLS_METRICS_NAMESPACE"]
STAGE = os.environ["STAGE"]
ANIMALS_TABLE = os.environ["ANIMALS_TABLE"]
API_KEYS_TABLE = os.environ["API_KEYS_TABLE"]
