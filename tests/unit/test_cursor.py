"""The cursor of a list: read as it was given, for the same list, or not at all (more forgeries: the contract)."""

import pytest
from animal_store import cursor, settings
from animal_store.errors import InvalidRequest
from animal_store.pet_status import PET_STATUSES, PetStatus
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
FILTERS = st.sampled_from([None, *PET_STATUSES])


def refuses(text: str, status: PetStatus | None) -> bool:
    with pytest.raises(InvalidRequest, match=r"^cursor: is not a cursor of this list; take it unchanged"):
        cursor.decode(text, status)
    return True


@given(
    after=st.integers(1, 2**63 - 1),
    made_for=FILTERS,
    used_with=FILTERS,
    position=st.integers(0, 24),
    character=st.sampled_from(ALPHABET) | st.characters(),
)
@hypothesis_settings(deadline=None)
def test_cursor_is_read_unchanged_and_with_its_filter_alone(
    after: int, made_for: PetStatus | None, used_with: PetStatus | None, position: int, character: str
) -> None:
    text = cursor.encode(after, made_for)
    changed = text[:position] + character + text[position + 1 :]

    assert set(text) <= set(ALPHABET)  # so that it needs no escape in a URL
    assert cursor.decode(text, made_for) == after
    assert made_for == used_with or refuses(text, used_with)
    assert changed == text or refuses(changed, made_for)


def test_cursor_is_of_one_stage_and_survives_a_restore_into_another_table(monkeypatch: pytest.MonkeyPatch) -> None:
    text = cursor.encode(7, "sold")

    monkeypatch.setattr(settings, "ANIMALS_TABLE", "restored")
    assert cursor.decode(text, "sold") == 7
    monkeypatch.setattr(settings, "STAGE", f"{settings.STAGE}sold")  # stage and filter do not run into each other
    assert refuses(text, None)
    assert refuses(text, "sold")
