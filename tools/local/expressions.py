"""DynamoDB's expressions, in the forms that this service uses; others are refused."""

import re
from pathlib import Path
from typing import Any

Value = dict[str, Any]  # one member, named after its type
Item = dict[str, Value]
# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ReservedWords.html
RESERVED_WORDS = frozenset(
    Path(__file__).with_name("reserved_words.txt").read_text("ascii").split()
)
_ZERO: Value = {"N": "0"}


class Refusal(Exception):
    """An error of DynamoDB: a message for people, a code for programs, and other members."""

    def __init__(
        self, message: str, code: str = "ValidationException", **members: Any
    ) -> None:
        self.message, self.code, self.members = message, code, members


class ConditionFailed(Refusal):
    """The condition of a write does not hold."""


def unknown(what: str) -> Refusal:
    """Make the error for what DynamoDB may know, but this store does not."""
    return Refusal(f"The local store does not know {what}: tools/local/operations.py")


class Expressions:
    """The expressions of one request."""

    def __init__(self, request: dict[str, Any]) -> None:
        names = request.get("ExpressionAttributeNames", {})
        values = request.get("ExpressionAttributeValues", {})
        self._texts = {
            name: text for name, text in request.items() if name.endswith("Expression")
        }
        self._meanings = names | values
        used = {*re.findall(r"[#:]\w+", " ".join(self._texts.values()))}
        # DynamoDB refuses an empty member.
        if used != self._meanings.keys() or {} in request.values():
            raise Refusal(f"Names and values must be those that {self._texts} use")

    def condition_holds(self, item: Item) -> bool:
        """Tell whether the condition holds for an item; without one it does."""
        if "ConditionExpression" not in self._texts:
            return True
        # Each test is made, even if one already holds: a mistake in it is always found.
        alternatives = [
            [self._test(item, test) for test in text.split(" AND ")]
            for text in self._texts["ConditionExpression"].split(" OR ")
        ]
        return any(map(all, alternatives))

    def _test(self, item: Item, text: str) -> bool:
        match self._words(text):
            case ["attribute_not_exists", "(", name, ")"]:
                return name not in item
            case [name, "=", dict(value)]:
                return item.get(name) == value
            case [name, "<=", {"N": number}]:
                value = item.get(name, {})
                return "N" in value and int(value["N"]) <= int(number)
        raise unknown(f"the condition {text!r}")

    def key_condition(self) -> Item:
        """Read what a query's hash key must equal and, if given, its range key exceed."""
        tests = self._texts["KeyConditionExpression"].split(" AND ")
        match [self._words(test) for test in tests]:
            case [[name, "=", dict(value)]]:
                return {name: value}
            case [[name, "=", dict(value)], [other, ">", dict(after)]]:
                return {name: value, other: after}
        raise unknown(f"the condition {tests}")

    def changes(self, item: Item) -> Item:
        """Read the update of an item: the new values of its attributes."""
        if "UpdateExpression" not in self._texts:
            return {}
        section, _, assignments = self._texts["UpdateExpression"].partition(" ")
        changes: Item = {}
        for assignment in re.split(r",(?![^(]*\))", assignments):
            match [section, *self._words(assignment)]:
                case ["ADD", name, {"N": number}]:
                    # Added in Python: SQLite makes a float of what exceeds 64 bits.
                    total = int(item.get(name, _ZERO)["N"]) + int(number)
                    changes[name] = {"N": str(total)}
                case ["SET", name, "=", dict(value)]:
                    changes[name] = value
                case [
                    "SET",
                    name,
                    "=",
                    "if_not_exists",
                    "(",
                    other,
                    ",",
                    dict(value),
                    ")",
                ]:
                    changes[name] = item.get(other, value)
                case _:
                    raise unknown(f"the update {section} {assignment}")
        return changes

    def _words(self, text: str) -> list[Any]:
        """Split a text, and put names and values in the places of what stands for them."""
        words = re.findall(r"[#:]?\w+|<=|\S", text)
        for word in words:
            if word.upper() in RESERVED_WORDS:
                why = f"Attribute name is a reserved keyword; reserved keyword: {word}"
                raise Refusal(why)
        return [self._meanings.get(word, word) for word in words]
