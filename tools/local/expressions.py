"""DynamoDB's expressions, evaluated as they are read: conditions, updates and conditions on keys.

Each is read to its end, even where the result is known already, so that a mistake in it is always found.
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Expressions.html
"""

import operator
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from tools.local.values import Item, Refusal, Value, add, kind, normal, order, unknown

Change = Callable[[], Value | None]
"""Makes the new value of an attribute; None removes it."""

_TOKEN = re.compile(r"[:#]?[A-Za-z0-9_]+|<>|<=|>=|\S")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
ORDERS = {"=": operator.eq, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ReservedWords.html
RESERVED_WORDS = frozenset(Path(__file__).with_name("reserved_words.txt").read_text("ascii").split())


class _Operand(NamedTuple):
    """What stands for a value: an attribute, which the item may not have, or a value of the request."""

    value: Value | None
    attribute: str = ""

    def check(self, kinds: str, where: str) -> None:
        """Refuse a value of the request that is of no use there, whatever the item is."""
        if self.value and not self.attribute and kind(self.value) not in kinds.split():
            raise Refusal(f"Incorrect operand type for operator or function: {where}, {kind(self.value)}")

    def present(self) -> Value:
        """Return the value of an operand that has to have one."""
        if self.value is None:
            raise Refusal(f"The expression refers to an attribute that the item does not have: {self.attribute}")
        return self.value


class Expressions:
    """The expressions of one request.

    Args:
        request: Its parameters.
        item: The item that is stored; empty if there is none.
    """

    def __init__(self, request: dict[str, Any], item: Item) -> None:
        self._request, self._item = request, item
        self._known: dict[str, Any] = {**request.get("ExpressionAttributeNames", {})}
        self._known |= normal(request.get("ExpressionAttributeValues", {}))
        if {} in (request.get("ExpressionAttributeNames"), request.get("ExpressionAttributeValues")):
            raise Refusal("ExpressionAttributeNames and ExpressionAttributeValues must not be empty")
        self._unused = set(self._known)
        self._tokens: list[str] = []
        self._at = 0
        self._group = (0, 0)

    def condition(self) -> bool:
        """Tell whether the ConditionExpression holds; without one it does."""
        holds = not self._begin("ConditionExpression") or self._any()
        self._expect("")
        return holds

    def key_conditions(self) -> dict[str, tuple[str, Value]]:
        """Read the KeyConditionExpression: a comparator and a value for each attribute."""
        conditions: dict[str, tuple[str, Value]] = {}
        self._begin("KeyConditionExpression")
        while not conditions or self._take("AND"):
            attribute, comparator, value = self._attribute(), self._next(), self._literal()
            if attribute in conditions or comparator not in ORDERS:
                raise Refusal("A KeyConditionExpression has one condition per key, with one of = < <= > >=")
            conditions[attribute] = comparator, value
        self._expect("")
        return conditions

    def changes(self) -> dict[str, Change]:
        """Read the UpdateExpression: a change for each attribute."""
        sections = {"SET": self._set, "REMOVE": self._remove, "ADD": self._add}
        changes: dict[str, Change] = {}
        self._begin("UpdateExpression")
        while section := self._next().upper():
            if section not in sections:
                raise unknown(f"the section {section} here in an update")
            read = sections.pop(section)
            while True:
                attribute, change = read()
                if attribute in changes:
                    raise Refusal(f"Two document paths overlap with each other: {attribute}")
                changes[attribute] = change
                if not self._take(","):
                    break
        return changes

    def check_all_used(self) -> None:
        """Refuse names and values that no expression has used."""
        if self._unused:
            raise Refusal(f"Values in ExpressionAttributeNames or -Values unused in expressions: {self._unused}")

    # -- conditions ----------------------------------------------------------------------------------------------------

    def _any(self) -> bool:
        holds = self._all()
        while self._take("OR"):
            holds = self._all() or holds
        return holds

    def _all(self) -> bool:
        holds = self._one()
        while self._take("AND"):
            holds = self._one() and holds
        return holds

    def _one(self) -> bool:
        if self._take("NOT"):
            return not self._one()
        if not self._take("("):
            return self._exists() if self._peek(1) == "(" else self._compare()
        begin = self._at
        holds = self._any()
        if self._group == (begin + 1, self._at):
            raise Refusal("The expression has redundant parentheses;")
        self._expect(")")
        self._group = (begin, self._at)
        return holds

    def _exists(self) -> bool:
        if (function := self._next()) not in ("attribute_exists", "attribute_not_exists"):
            raise unknown(f"the function {function} in a condition")
        self._expect("(")
        exists = self._attribute() in self._item
        self._expect(")")
        return exists is (function == "attribute_exists")

    def _compare(self) -> bool:
        left, comparator, right = self._operand(), self._next(), self._operand()
        if left.attribute and left.attribute == right.attribute:
            raise Refusal(f"The first operand must be distinct from the remaining operands: {left.attribute}")
        if comparator in ("=", "<>"):
            return (left.value is not None and left.value == right.value) is (comparator == "=")
        if comparator not in ORDERS:
            raise unknown(f"the comparator {comparator}")
        left.check("S N", comparator)
        right.check("S N", comparator)
        if not left.value or not right.value or not left.value.keys() == right.value.keys() <= {"S", "N"}:
            return False
        return bool(ORDERS[comparator](order(left.value), order(right.value)))

    # -- updates -------------------------------------------------------------------------------------------------------

    def _set(self) -> tuple[str, Change]:
        attribute = self._attribute()
        self._expect("=")
        left = self._new_value()
        if not (sign := self._take("+") or self._take("-")):
            return attribute, left.present
        right = self._new_value()
        left.check("N", sign)
        right.check("N", sign)
        return attribute, lambda: add(left.present(), right.present(), minus=sign == "-")

    def _new_value(self) -> _Operand:
        if self._peek(1) != "(":
            return self._operand()
        if (function := self._next()) != "if_not_exists":
            raise unknown(f"the function {function} in an update")
        self._expect("(")
        there = self._attribute()
        self._expect(",")
        default = self._new_value()
        self._expect(")")
        return _Operand(self._item.get(there, default.value), there)

    def _remove(self) -> tuple[str, Change]:
        return self._attribute(), lambda: None

    def _add(self) -> tuple[str, Change]:
        attribute, value = self._attribute(), self._literal()
        _Operand(value).check("N", "ADD")
        return attribute, lambda: add(self._item.get(attribute, {"N": "0"}), value)

    # -- parts ---------------------------------------------------------------------------------------------------------

    def _operand(self) -> _Operand:
        if self._peek().startswith(":"):
            return _Operand(self._literal())
        attribute = self._attribute()
        return _Operand(self._item.get(attribute), attribute)

    def _literal(self) -> Value:
        if not (token := self._next()).startswith(":"):
            raise self._syntax_error()
        value: Value = self._look_up(token)
        return value

    def _attribute(self) -> str:
        token = self._next()
        if token.startswith("#"):
            return str(self._look_up(token))
        if not _NAME.fullmatch(token):
            raise self._syntax_error()
        if token.upper() in RESERVED_WORDS:
            raise Refusal(f"Attribute name is a reserved keyword; reserved keyword: {token}")
        return token

    def _look_up(self, placeholder: str) -> Any:
        if placeholder not in self._known:
            raise Refusal(f"An attribute name or value used in an expression is not defined: {placeholder}")
        self._unused.discard(placeholder)
        return self._known[placeholder]

    # -- tokens --------------------------------------------------------------------------------------------------------

    def _begin(self, parameter: str) -> bool:
        """Go to the beginning of an expression; tell whether the request has it."""
        self._tokens, self._at = _TOKEN.findall(self._request.get(parameter, "")), 0
        if not self._tokens and parameter in self._request:
            raise Refusal(f"Invalid {parameter}: The expression can not be empty;")
        return bool(self._tokens)

    def _peek(self, ahead: int = 0) -> str:
        return self._tokens[self._at + ahead] if self._at + ahead < len(self._tokens) else ""

    def _next(self) -> str:
        self._at += 1
        return self._peek(-1)

    def _take(self, token: str) -> str:
        return self._next() if self._peek().upper() == token else ""

    def _expect(self, token: str) -> None:
        """Go past a token; the empty one is the end."""
        if self._next() != token:
            raise self._syntax_error()

    def _syntax_error(self) -> Refusal:
        return Refusal(f'Syntax error, or nothing that the embedded store knows: "{" ".join(self._tokens)}"')
