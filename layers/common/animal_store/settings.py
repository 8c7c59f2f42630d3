"""Environment variables that the layer reads at the cold start; `template.yaml` sets them."""

import os

# The variable is named as Powertools expects, although `telemetry` writes the metrics.
METRICS_NAMESPACE = os.environ["POWERTOOLS_METRICS_NAMESPACE"]
STAGE = os.environ["STAGE"]
ANIMALS_TABLE = os.environ["ANIMALS_TABLE"]
API_KEYS_TABLE = os.environ["API_KEYS_TABLE"]
