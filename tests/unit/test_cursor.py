"""The cursor of a list: it is read as it was given, for the same list, or not at all."""

import base64

import pytest
from animal_store import cursor, settings
from animal_store.errors import InvalidRequest
from animal_store.pet_status import PET_STATUSES, PetStatus
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

IDS = st.integers(1, 2**63 - 1)
FILTERS = st.sampled_from([None, *PET_STATUSES])
ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


def refuses(text: str, status: PetStatus | None = None) -> bool:
    with pytest.raises(InvalidRequest, match=r"^cursor: is not a cursor of this list; take it unchanged"):
        cursor.decode(text, status)
    return True


@given(after=IDS, made_for=FILTERS, used_with=FILTERS)
@hypothesis_settings(deadline=None)
def test_cursor_is_read_as_the_id_with_the_filter_that_it_was_made_for(
    after: int, made_for: PetStatus | None, used_with: PetStatus | None
) -> None:
    text = cursor.encode(after, made_for)

    assert set(text) <= set(ALPHABET)  # so that it needs no escape in a URL
    assert cursor.decode(text, made_for) == after
    assert made_for == used_with or refuses(text, used_with)


@given(after=IDS, position=st.integers(0, 23), character=st.one_of(st.sampled_from(ALPHABET), st.characters()))
@hypothesis_settings(deadline=None, max_examples=300)
def test_cursor_with_one_changed_character_is_refused(after: int, position: int, character: str) -> None:
    text = cursor.encode(after, None)
    changed = text[:position] + character + text[position + 1 :]

    assert changed == text or refuses(changed)


@given(
    text=st.one_of(st.text(), st.binary(min_size=18, max_size=18).map(lambda b: base64.urlsafe_b64encode(b).decode()))
)
@hypothesis_settings(deadline=None)
def test_any_other_text_is_refused(text: str) -> None:
    assert refuses(text)


def test_cursor_survives_a_restore_into_another_table(monkeypatch: pytest.MonkeyPatch) -> None:
    text = cursor.encode(7, None)
    monkeypatch.setattr(settings, "ANIMALS_TABLE", "restored")

    assert cursor.decode(text, None) == 7


def test_parts_of_the_scope_do_not_run_into_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    text = cursor.encode(7, "sold")
    monkeypatch.setattr(settings, "STAGE", f"{settings.STAGE}sold")

    assert refuses(text)


def test_cursor_of_another_stage_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    text = cursor.encode(7, None)
    monkeypatch.setattr(settings, "STAGE", "another")

    assert refuses(text)
