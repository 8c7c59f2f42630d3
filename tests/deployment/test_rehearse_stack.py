"""A stage is rehearsed with the values that deploy it."""

from pathlib import Path

import pytest

from tools.deployment import roles
from tools.deployment.stack import stage_parameters
from tools.deployment.surface import SurfaceError


def test_a_stage_has_the_values_of_its_deployment(tmp_path: Path) -> None:
    config = tmp_path / "samconfig.toml"
    config.write_text('[blue.deploy.parameters]\nstack_name = "it"\nparameter_overrides = ["A=1", "B=x=y"]\n')

    assert stage_parameters("blue", config) == ("it", {"A": "1", "B": "x=y"})


def test_an_unknown_stage_is_named() -> None:
    with pytest.raises(SurfaceError, match="no stage named nowhere"):
        stage_parameters("nowhere")


def test_a_role_that_may_too_much_or_too_little_is_told() -> None:
    outcome = roles._outcome(
        {
            "right": (("ListPetsRole",), [True, False, False]),
            "too much": ((), [False, True, False]),
            "too little": (("GetPetRole",), [False, False, False]),
        }
    )

    assert outcome.wrong == ["CreatePetRole: too much is allowed", "GetPetRole: too little is denied"]
    assert (outcome.allowed, outcome.denied) == (2, 7)
    assert len(outcome.table) == 4
