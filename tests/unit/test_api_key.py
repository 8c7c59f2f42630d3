"""The format of API keys: what a typo, a scanner's noise and a look-alike are refused by."""

import hashlib
import re
import zlib

import pytest
from animal_store import api_key
from hypothesis import given, settings
from hypothesis import strategies as st

KEYS = st.builds(api_key.generate, st.sampled_from(["live", "test"]))
ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


@pytest.mark.parametrize("environment", ["live", "test"])
def test_generated_key_has_the_format(environment: str) -> None:
    key = api_key.generate(environment)  # type: ignore[arg-type]

    assert re.fullmatch(rf"animal_{environment}_[0-9A-Za-z]{{38}}", key)
    assert api_key.is_well_formed(key)


def test_checksum_is_the_crc32_in_base_62() -> None:
    key = api_key.generate("live")

    checksum = 0
    for character in key[-6:]:
        checksum = checksum * 62 + ALPHABET.index(character)

    assert checksum == zlib.crc32(key[:-6].encode())


def test_checksum_is_padded_with_zeros() -> None:
    # Found by trying: its CRC-32 is small enough for two leading zeros.
    body = "animal_test_" + "0" * 27 + "{}"
    short = next(text for n in range(10**5) if zlib.crc32((text := body.format(f"{n:05}")).encode()) < 62**4)

    key = short + api_key._checksum(short)

    assert len(key) == 50
    assert key[44:46] == "00"
    assert api_key.is_well_formed(key)


def test_keys_differ() -> None:
    keys = {api_key.generate("test") for _ in range(1000)}

    assert len(keys) == 1000


def test_key_uses_the_whole_alphabet() -> None:
    characters = set("".join(api_key.generate("test")[12:44] for _ in range(200)))

    assert characters == set(ALPHABET)


@given(key=KEYS, position=st.integers(0, 49), character=st.one_of(st.sampled_from(ALPHABET), st.characters()))
@settings(deadline=None, max_examples=500)
def test_key_with_one_changed_character_is_refused(key: str, position: int, character: str) -> None:
    changed = key[:position] + character + key[position + 1 :]

    assert api_key.is_well_formed(changed) is (changed == key)


@given(key=KEYS, position=st.integers(0, 48))
@settings(deadline=None)
def test_key_with_two_swapped_characters_is_refused(key: str, position: int) -> None:
    swapped = key[:position] + key[position + 1] + key[position] + key[position + 2 :]

    assert api_key.is_well_formed(swapped) is (swapped == key)


@given(text=st.text())
@settings(deadline=None)
def test_any_other_text_is_refused(text: str) -> None:
    assert not api_key.is_well_formed(text)


@pytest.mark.parametrize("prefix", ["animal_prod_", "Animal_live_", "animal-live-", "animal_", "pet_live_", ""])
def test_key_with_another_prefix_is_refused_though_its_checksum_is_right(prefix: str) -> None:
    body = prefix + "a" * 32

    assert not api_key.is_well_formed(body + api_key._checksum(body))


@pytest.mark.parametrize("digit", ["\u0661", "\uff11", "\u00b2"])
def test_digits_of_other_scripts_are_refused_though_the_checksum_is_right(digit: str) -> None:
    body = "animal_live_" + digit * 32

    assert not api_key.is_well_formed(body + api_key._checksum(body))


@pytest.mark.parametrize("length", [31, 33])
def test_key_of_another_length_is_refused_though_its_checksum_is_right(length: int) -> None:
    body = "animal_live_" + "a" * length

    assert not api_key.is_well_formed(body + api_key._checksum(body))


@pytest.mark.parametrize("end", ["\n", " ", "\0"])
def test_key_with_something_behind_it_is_refused(end: str) -> None:
    assert not api_key.is_well_formed(api_key.generate("live") + end)


def test_digest_is_the_sha256_of_the_whole_key() -> None:
    key = api_key.generate("live")

    assert api_key.digest(key) == hashlib.sha256(key.encode()).hexdigest()
