"""Read what the gateway needs from a SAM template, and refuse by name what is not served.

The models list what is served, `without_effect.yaml` what changes nothing on one machine. A value
that is served may have no intrinsic function but `Ref`.
"""

from collections import defaultdict
from collections.abc import Mapping
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple
from urllib.parse import unquote

import yaml
from pydantic import AliasPath, BaseModel, Field, ValidationError, model_validator
from pydantic.alias_generators import to_pascal
from starlette.routing import compile_path

from tools.local import LocalError

REGION, ACCOUNT = "us-east-1", "123456789012"
_IGNORED = yaml.safe_load(
    Path(__file__).with_name("without_effect.yaml").read_text("utf-8")
)
# Without an API in the template, SAM makes this one.
_IMPLICIT = "ServerlessRestApi"
# The properties that name resources; the others have their logical ids.
_NAMES = {
    "AWS::DynamoDB::Table": "TableName",
    "AWS::Serverless::Function": "FunctionName",
}
_form = lru_cache(compile_path)


class _Part(
    BaseModel, extra="forbid", coerce_numbers_to_str=True, alias_generator=to_pascal
):
    """A part of a template."""


class _Endpoint(_Part):
    path: str = Field(pattern=r"^(/|(/[^/{}]+|/\{\w+\})+)$")
    method: str = Field(pattern="^(?i:DELETE|GET|HEAD|OPTIONS|PATCH|POST|PUT)$")
    rest_api_id: str = _IMPLICIT


class _Event(_Part):
    type: Literal["Api"]
    properties: _Endpoint


class Function(_Part):
    """An AWS::Serverless::Function; its code is a folder."""

    name: str = Field(alias="FunctionName")
    code: Path = Field(alias="CodeUri")
    handler: str
    environment: dict[str, str] = Field(
        {}, validation_alias=AliasPath("Environment", "Variables")
    )
    events: dict[str, _Event] = {}
    layers: list[str] = []
    timeout_s: float = Field(3, alias="Timeout")
    memory_mb: int = Field(128, alias="MemorySize")
    runtime: str = Field(pattern="^python")


class GatewayResponse(_Part):
    """One of an API's GatewayResponses: a status, headers with fixed values, and one template."""

    status_code: int | None = None
    headers: dict[str, Annotated[str, Field(pattern="^'.*'$")]] = Field(
        {}, validation_alias=AliasPath("ResponseParameters", "Headers")
    )
    response_templates: dict[str, Annotated[str, Field(pattern=r"^[^$]*$")]] = Field(
        {}, max_length=1
    )


class Api(_Part):
    """An AWS::Serverless::Api."""

    stage_name: str
    gateway_responses: dict[str, GatewayResponse] = {}


class _Layer(_Part):
    code: Path = Field(alias="ContentUri")


class Table(_Part):
    """An AWS::DynamoDB::Table, and the name that it has here."""

    name: str = Field(alias="TableName")
    attribute_definitions: list[Any]
    billing_mode: str = ""
    global_secondary_indexes: list[Any] = []
    key_schema: list[Any]

    @property
    def request(self) -> dict[str, Any]:
        """The parameters of CreateTable."""
        return self.model_dump(by_alias=True, exclude_unset=True)


class Route(NamedTuple):
    """A resource, such as `/notes/{id}`, a method of it, and its function's logical id."""

    resource: str
    method: str
    function: str


class Template(_Part):
    """The parts of a template that make a service run on one machine."""

    shared: dict[Literal["Api", "Function"], Any] = Field(alias="Globals")
    apis: dict[str, Api] = Field(alias="AWS::Serverless::Api", max_length=1)
    functions: dict[str, Function] = Field(alias="AWS::Serverless::Function")
    layers: dict[str, _Layer] = Field({}, alias="AWS::Serverless::LayerVersion")
    tables: dict[str, Table] = Field({}, alias="AWS::DynamoDB::Table")

    environment: dict[str, str] = Field({}, max_length=0)
    """The variables of all functions, which share a process; no template gives them."""

    @cached_property
    def api(self) -> Api:
        """The one API."""
        return next(iter(self.apis.values()))

    @cached_property
    def routes(self) -> list[Route]:
        """The routes, of which the first that fits is taken."""
        routes = [
            Route(event.properties.path, event.properties.method.upper(), name)
            for name, function in self.functions.items()
            for event in function.events.values()
        ]
        return sorted(routes)  # fixed segments go first: "{" comes after every letter

    def find(self, method: str, path: str) -> tuple[Route, dict[str, str]]:
        """Find the route and path parameters of a percent-encoded path, or raise LookupError."""
        for route in self.routes:
            found = _form(route.resource)[0].match(path)
            if found and route.method == method:
                return route, {
                    name: unquote(value) for name, value in found.groupdict().items()
                }
        raise LookupError(f"no function answers {method} {path}")

    def function_of(self, event: Mapping[str, Any]) -> Function:
        """Find the function to which API Gateway would send an event, or raise LookupError."""
        return self.functions[self.find(event["httpMethod"], event["path"])[0].function]

    @model_validator(mode="after")
    def _check(self) -> "Template":
        """Refuse what is not in the template, and what the functions cannot share."""
        for name, function in self.functions.items():
            references = {*function.layers}
            for event in function.events.values():
                references.add(event.properties.rest_api_id)
            if others := references - {*self.apis, *self.layers}:
                raise ValueError(
                    f"{name}: {others} is not an API or a layer of the template"
                )
            for variable, value in function.environment.items():
                if self.environment.setdefault(variable, value) != value:
                    raise ValueError(
                        f"{name} and another function disagree on {variable}"
                    )
        return self


# The C loader is ten times as fast.
class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """YAML with CloudFormation's short forms; of all but `!Ref` only the name is kept."""


_Loader.add_multi_constructor(
    "!",
    lambda _, name, node: {"Ref": node.value} if name == "Ref" else {f"Fn::{name}": ""},
)


def load(path: Path, parameters: Mapping[str, str], stack: str = "local") -> Template:
    """Read a SAM template; template parameters that are not given take their defaults.

    Functions and tables to which the template gives no name have one that begins with the stack's.
    """
    try:
        document = yaml.load(path.read_text("utf-8"), Loader=_Loader)  # noqa: S506 - is safe
        return _read(path.parent, document, parameters, stack)
    except ValidationError as error:
        lines = [f"{path} cannot be used:"]
        for each in error.errors():
            why = each["msg"].replace("Extra inputs are not permitted", "is not served")
            place = ".".join(map(str, each["loc"]))
            lines.append(f"{place}: {why} ({each['input']!r:.60})")
        raise LocalError("\n".join(lines)) from error
    # Someone may be editing the file; a linter says where the mistake is.
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
        raise LocalError(f"{path} cannot be used: {why}") from error


def _read(
    folder: Path, document: dict[str, Any], parameters: Mapping[str, str], stack: str
) -> Template:
    declared, resources = document.get("Parameters", {}), document["Resources"]
    references = {name: declared[name].get("Default") for name in declared}
    references |= {"AWS::Region": REGION, "AWS::AccountId": ACCOUNT}
    references |= {"AWS::StackName": stack, **parameters}
    if "AWS::Serverless::Api" not in {each["Type"] for each in resources.values()}:
        implicit = {"Type": "AWS::Serverless::Api", "Properties": {"StageName": "Prod"}}
        resources[_IMPLICIT] = implicit
    for logical_id, resource in resources.items():
        own, name = resource.setdefault("Properties", {}), _NAMES.get(resource["Type"])
        references[logical_id] = logical_id
        if name:
            references[logical_id] = own.setdefault(name, f"{stack}-{logical_id}")
    document = _resolved(document, references)
    shared = document.get("Globals", {})
    parts: dict[str, Any] = defaultdict(dict, Globals=shared)
    for logical_id, resource in document["Resources"].items():
        kind = resource.pop("Type")
        of_all = shared.get(kind.removeprefix("AWS::Serverless::"), {})
        # An attribute, such as Condition, is refused as a property would be.
        given = resource | _merged(of_all, resource.pop("Properties"))
        for code in given.keys() & {"CodeUri", "ContentUri"}:
            given[code] = folder / given[code]
        served = given.keys() - {*_IGNORED["Resource"], *_IGNORED.get(kind, [])}
        if not kind.startswith(tuple(_IGNORED["Type"])):
            parts[kind][logical_id] = {name: given[name] for name in served}
    return Template.model_validate(parts)


def _merged(shared: Any, own: Any) -> Any:
    """Merge a property of Globals with a resource's own, as SAM does."""
    match shared, own:
        case dict(), dict():
            return shared | {name: _merged(shared.get(name), own[name]) for name in own}
        case list(), list():
            return [*shared, *own]
    return own


def _resolved(value: Any, references: Mapping[str, Any]) -> Any:
    """Replace each `Ref` by what it stands for; an unknown one stays, and is refused where used."""
    match value:
        case {"Ref": name} if name in references:
            return _resolved(references[name], references)
        case dict():
            return {key: _resolved(item, references) for key, item in value.items()}
        case list():
            return [_resolved(item, references) for item in value]
    return value
