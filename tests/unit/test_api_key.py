"""The format of API keys: what a typo, a scanner's noise and a look-alike are refused by."""

import hashlib
import zlib

import pytest
from animal_store import api_key
from hypothesis import given, settings
from hypothesis import strategies as st

KEYS = st.builds(api_key.generate, st.sampled_from(["live", "test"]))
ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
BODY = "animal_live_" + "a" * 32


@pytest.mark.parametrize("environment", ["live", "test"])
def test_generated_keys_have_the_format_and_differ(environment: str) -> None:
    keys = {api_key.generate(environment) for _ in range(200)}  # type: ignore[arg-type]

    assert len(keys) == 200
    assert all(api_key.is_well_formed(key) and key.startswith(f"animal_{environment}_") for key in keys)
    assert set("".join(key[12:44] for key in keys)) == set(ALPHABET)


def test_checksum_is_the_crc32_in_base_62_padded_with_zeros() -> None:
    # Found by trying: its CRC-32 is small enough for two leading zeros.
    bodies = (f"animal_test_{'0' * 27}{number:05}" for number in range(10**5))
    short = next(body for body in bodies if zlib.crc32(body.encode()) < 62**4)
    for body in (BODY, short):
        checksum = 0
        for character in api_key._checksum(body):
            checksum = checksum * 62 + ALPHABET.index(character)
        assert checksum == zlib.crc32(body.encode())
        assert api_key.is_well_formed(body + api_key._checksum(body))


@given(key=KEYS, position=st.integers(0, 49), character=st.one_of(st.sampled_from(ALPHABET), st.characters()))
@settings(deadline=None)
def test_key_with_one_changed_character_is_refused(key: str, position: int, character: str) -> None:
    changed = key[:position] + character + key[position + 1 :]

    assert api_key.is_well_formed(changed) is (changed == key)


@pytest.mark.parametrize(
    "body",
    [
        *(prefix + "a" * 32 for prefix in ("animal_prod_", "Animal_live_", "animal-live-", "animal_", "")),
        *("animal_live_" + digit * 32 for digit in ("\u0661", "\uff11")),  # digits of other scripts
        BODY[:-1],
        BODY + "a",
    ],
)
def test_another_format_is_refused_though_its_checksum_is_right(body: str) -> None:
    assert not api_key.is_well_formed(body + api_key._checksum(body))


@pytest.mark.parametrize("end", ["\n", " ", "\0"])
def test_key_with_something_after_it_is_refused(end: str) -> None:
    assert not api_key.is_well_formed(api_key.generate("live") + end)


def test_digest_is_the_sha256_of_the_whole_key() -> None:
    assert api_key.digest(BODY) == hashlib.sha256(BODY.encode()).hexdigest()
