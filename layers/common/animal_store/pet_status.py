"""The availability of an animal."""

from typing import Literal, get_args

PetStatus = Literal["available", "pending", "sold"]
PET_STATUSES: tuple[PetStatus, ...] = get_args(PetStatus)
