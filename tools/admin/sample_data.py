"""Makes up plausible animals, always the same ones for the same seed."""

import random

from animal_store_client import PetStatus

# Bump when the animals change: an Idempotency-Key must not stand for two of them.
VERSION = 1

# Categories by id, each with breeds.
_BREEDS = {
    1: ("Beagle", "Border Collie", "Dachshund", "Labrador", "Poodle", "Shiba Inu", "Whippet"),
    2: ("British Shorthair", "Maine Coon", "Norwegian Forest Cat", "Persian", "Siamese", "Sphynx"),
    3: ("Dutch Rabbit", "Flemish Giant", "Lionhead", "Netherland Dwarf"),
    4: ("Budgerigar", "Canary", "Cockatiel", "Lovebird", "Zebra Finch"),
    5: ("Betta", "Clownfish", "Goldfish", "Guppy", "Koi"),
    6: ("Bearded Dragon", "Corn Snake", "Gecko", "Hermann's Tortoise"),
    7: ("Chinchilla", "Gerbil", "Golden Hamster", "Guinea Pig", "Fancy Rat"),
}
_NAMES = (
    *("Bella", "Charlie", "Coco", "Daisy", "Felix", "Fleur", "Gizmo", "Hugo", "Ida", "Jasper", "Kiki", "Leo", "Luna"),
    *("Max", "Mia", "Milo", "Nala", "Nemo", "Oscar", "Pepper", "Quinn", "Rex", "Ruby", "Simba", "Tilly", "Umberto"),
    *("Vito", "Willow", "Xena", "Yuki", "Ziggy", "Zoë", "Łatek", "Žofka", "Πάρης", "Шарик", "小白", "ハチ"),
)
_STATUSES: tuple[PetStatus | None, ...] = ("available", "pending", "sold", None)
_STATUS_WEIGHTS = (60, 10, 20, 10)


def animal(seed: int, index: int) -> tuple[str, int, PetStatus | None]:
    """Make up an animal (name, category, status), each by itself, so that a run may start anywhere."""
    chance = random.Random(f"{VERSION}/{seed}/{index}")  # noqa: S311 - nothing secret
    category = chance.choice(tuple(_BREEDS))
    name = f"{chance.choice(_NAMES)} the {chance.choice(_BREEDS[category])}"
    (status,) = chance.choices(_STATUSES, _STATUS_WEIGHTS)
    return name, category, status


def idempotency_key(seed: int, index: int) -> str:
    """Name the creation of an animal: the same in every run, so that none adds it a second time (within 24 hours)."""
    return f"seed-{VERSION}-{seed}-{index}"
