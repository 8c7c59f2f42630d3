"""DynamoDB's values and expressions, in the forms that this service uses; others are refused."""

import operator
import re
from pathlib import Path
from typing import Any

Value = dict[str, Any]  # one member, named after its type
Item = dict[str, Value]
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,37}")  # DynamoDB keeps 38 digits
# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ReservedWords.html
RESERVED_WORDS = frozenset(
    Path(__file__).with_name("reserved_words.txt").read_text("ascii").split()
)
_ZERO: Value = {"N": "0"}
_COMPARATORS = {"=": operator.eq, "<=": operator.le}


class Refusal(Exception):
    """An error of DynamoDB: a message for people, a code for programs, and other members."""

    def __init__(
        self, message: str, code: str = "ValidationException", **members: Any
    ) -> None:
        self.message, self.code, self.members = message, code, members


def unknown(what: str) -> Refusal:
    """Make the error for what DynamoDB may know, but this store does not."""
    return Refusal(f"The local store does not know {what}: tools/local/operations.py")


def known(item: Item) -> Item:
    """Return an item if each of its values is of a type that the store supports."""
    for name, value in item.items():
        match value:
            case {"S": str()} | {"BOOL": bool()}:
                pass
            case {"N": str(number)} if _INTEGER.fullmatch(number):
                pass
            case _:
                raise unknown(f"the value {value} of {name}")
    return item


class Expressions:
    """The expressions of one request."""

    def __init__(self, request: dict[str, Any]) -> None:
        names = request.get("ExpressionAttributeNames", {})
        values = known(request.get("ExpressionAttributeValues", {}))
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
            case ["attribute_exists", "(", name, ")"]:
                return name in item
            case ["attribute_not_exists", "(", name, ")"]:
                return name not in item
            case [name, str(comparator), dict(right)] if comparator in _COMPARATORS:
                left = item.get(name, {})
                return left.keys() == right.keys() and bool(
                    _COMPARATORS[comparator](_plain(left), _plain(right))
                )
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
                case ["ADD", name, {"N": number}] if "N" in item.get(name, _ZERO):
                    # Added in Python: SQLite makes a float of what exceeds 64 bits.
                    total = int(item.get(name, _ZERO)["N"]) + int(number)
                    new = {"N": str(total)}
                case ["SET", name, "=", dict(new)]:
                    pass
                case [
                    "SET",
                    name,
                    "=",
                    "if_not_exists",
                    "(",
                    other,
                    ",",
                    dict(new),
                    ")",
                ]:
                    new = item.get(other, new)
                case _:
                    raise unknown(f"this update of {item}: {section} {assignment}")
            changes[name] = new
        return known(changes)

    def _words(self, text: str) -> list[Any]:
        """Split a text, and put names and values in the places of what stands for them."""
        words = re.findall(r"[#:]?\w+|<=|\S", text)
        for word in words:
            if word.upper() in RESERVED_WORDS:
                why = f"Attribute name is a reserved keyword; reserved keyword: {word}"
                raise Refusal(why)
        return [self._meanings.get(word, word) for word in words]


def _plain(value: Value) -> Any:
    ((kind, content),) = value.items()
    return int(content) if kind == "N" else content
