"""The variables that `template.yaml` sets and the layer itself reads, at the cold start."""

import os

# The variable's name is Powertools', but `telemetry` writes the metrics.
METRICS_NAMESPACE = os.environ["POWERTOOLS_METRICS_NAMESPACE"]
STAGE = os.environ["STAGE"]
ANIMALS_TABLE = os.environ["ANIMALS_TABLE"]
API_KEYS_TABLE = os.environ["API_KEYS_TABLE"]
