"""The format of API keys, their hash and their checksum."""

import pytest
from animal_store import api_key

from tools import ROOT
from tools.git import git
from tools.key_table import EXAMPLE_KEY, generate


def test_generated_keys_are_well_formed() -> None:
    keys = [generate("live") for _ in range(200)]

    assert all(api_key.is_well_formed(key) for key in keys)
    assert keys[0].startswith("animal_live_")
    assert len({*"".join(keys)}) == 63  # letters, digits and `_`


@pytest.mark.parametrize(
    "key",
    [
        EXAMPLE_KEY.replace("AnExample", "anExample"),
        f"{EXAMPLE_KEY}\n",
        # The checksums of the following keys are right.
        "animal_prod_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa3i8aJj",
        "Animal_live_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa3i8aJj",
        "animal_live_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa0hGyqJ",
    ],
)
def test_wrong_checksum_or_format_is_refused(key: str) -> None:
    assert not api_key.is_well_formed(key)


def test_digest_and_checksum_have_not_changed() -> None:
    digest = "2c70e12b7a0646f92279f427c7b38e7334d8e5389cff167a1dc30e73f826b683"

    assert api_key.digest("key") == digest
    assert api_key.checksum("62") == "005Arq"


def test_tracked_files_have_only_three_example_keys() -> None:
    texts = git(ROOT, "grep", "-haoE", "animal_[0-9A-Za-z_]{43}").decode().split()

    assert {*filter(api_key.is_well_formed, texts)} == {
        EXAMPLE_KEY,
        "animal_test_AnotherKeyForTheHeartbeatUnknown1OjSD3",
        "animal_test_AnotherKeyThatIsUnknownToTheStor1Sya0x",
    }
