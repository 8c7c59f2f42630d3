"""The API key of the files in events/: an example with the right format and checksum that opens nothing anywhere.

Nobody has issued it. Tests put its hash into the key table that they make; no other table ever holds it.
"""

EXAMPLE_KEY = "animal_test_AnExampleKeyThatOpensNothingHere0u1vgN"
