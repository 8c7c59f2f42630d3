"""The compiled models keep each constraint that the models declare."""

from typing import get_type_hints

from animal_store.models import VALIDATED_MODELS, compile_core_schemas


def test_each_pattern_of_a_model_is_compiled() -> None:
    """If a member had two patterns, pydantic would silently ignore the first."""
    hints = [get_type_hints(model, include_extras=True) for model in VALIDATED_MODELS]

    declared = str(hints).count("pattern='")

    assert declared == str(compile_core_schemas()).count("'pattern':") == 1
