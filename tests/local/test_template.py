"""What the local gateway reads from a template."""

from pathlib import Path

import pytest

from tools import ROOT
from tools.local import template
from tools.local.service import load_template
from tools.local.template import Match, Route, Template, TemplateError

SAMPLE = """
Parameters:
  Stage: {Type: String}
  Size: {Type: Number, Default: 512}
Conditions:
  IsLocal: !Equals [!Ref Stage, local]
  IsNotLocal: !Not [!Condition IsLocal]
Mappings:
  Limits: {local: {Timeout: 7}}
Globals:
  Function:
    Handler: app.handler
    MemorySize: !Ref Size
    Layers: [!Ref Layer]
    Environment:
      Variables:
        TABLE: !Ref Table
        ARN: !Sub "${Table.Arn}/${Stage}/${!kept}/${Named}"
        LEVEL: !If [IsLocal, DEBUG, INFO]
        GONE: !If [IsLocal, !Ref "AWS::NoValue", there]
        OWN: global
Resources:
  Layer: {Type: AWS::Serverless::LayerVersion, Properties: {ContentUri: layer}}
  Table: {Type: AWS::DynamoDB::Table, Properties: {KeySchema: [{AttributeName: id, KeyType: HASH}]}}
  Named: {Type: AWS::DynamoDB::Table, Properties: {TableName: !Join [-, [the, name]]}}
  NotHere: {Type: AWS::DynamoDB::Table, Condition: IsNotLocal}
  Api:
    Type: AWS::Serverless::Api
    Properties:
      StageName: !Ref Stage
      GatewayResponses:
        THROTTLED:
          StatusCode: 429
          ResponseParameters: {Headers: {Retry-After: "'1'"}}
          ResponseTemplates: {application/json: '{"a":1}'}
  One:
    Type: AWS::Serverless::Function
    Properties:
      CodeUri: one
      Timeout: !FindInMap [Limits, !Ref Stage, Timeout]
      Environment: {Variables: {OWN: one, NUMBER: 5, FLAG: true}}
      Policies: [!Transform {Name: unknown}]
      Events:
        Api: {Type: Api, Properties: {Path: "/v1/things/{id}", Method: get, RestApiId: !Ref Api}}
        Best: {Type: Api, Properties: {Path: /v1/things/best, Method: any}}
        Timer: {Type: Schedule, Properties: {Schedule: rate(1 day)}}
"""


def load(folder: Path, text: str = SAMPLE) -> Template:
    for name in ("one", "layer"):
        (folder / name).mkdir()
    (folder / "template.yaml").write_text(text)
    return template.load(folder / "template.yaml", {"Stage": "local"})


def test_everything_that_is_read(tmp_path: Path) -> None:
    loaded = load(tmp_path)
    one, throttled = loaded.functions["One"], loaded.gateway_responses["THROTTLED"]

    assert (loaded.stage, loaded.base_path) == ("local", "/v1")
    assert (one.code, one.layers, one.handler) == (tmp_path / "one", (tmp_path / "layer",), "app.handler")
    assert (one.timeout_s, one.memory_mb) == (7, 512)
    assert one.environment == {
        "TABLE": "animal-store-local-Table",
        "ARN": "animal-store-local-Table.Arn/local/${kept}/the-name",
        "LEVEL": "DEBUG",
        "OWN": "one",
        "NUMBER": "5",
        "FLAG": "true",
    }
    assert {name: table.name for name, table in loaded.tables.items()} == {
        "Table": "animal-store-local-Table",
        "Named": "the-name",
    }
    assert (throttled.status, throttled.headers, throttled.bodies) == (
        429,
        {"Retry-After": "1"},
        {"application/json": '{"a":1}'},
    )


THING = Route("GET", "/v1/things/{id}", "One")
BEST = Route("ANY", "/v1/things/best", "One")


@pytest.mark.parametrize(
    ("method", "path", "match"),
    [
        ("GET", "/v1/things/7", Match(THING, {"id": "7"})),
        ("GET", "/v1/things/a%2Fb%2520", Match(THING, {"id": "a/b%20"})),
        ("GET", "/v1/thi%6Egs/%FF", Match(THING, {"id": "\ufffd"})),
        ("GET", "/v1/things/best", Match(BEST, {})),
        ("DELETE", "/v1/things/best", Match(BEST, {})),
        ("POST", "/v1/things/7", None),
        ("get", "/v1/things/7", None),
        ("GET", "/v1/things/", None),
        ("GET", "/v1/things/7/", None),
        ("GET", "/things/7", None),
        ("GET", "*", None),
    ],
)
def test_routes(tmp_path: Path, method: str, path: str, match: Match | None) -> None:
    assert load(tmp_path).find(method, path) == match


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("CodeUri: one", "CodeUri: none", "One names the folder none, which does not exist"),
        ("TABLE: !Ref Table", "TABLE: !Ref Tabel", "there is no parameter or resource Tabel"),
        ("TABLE: !Ref Table", "TABLE: !ImportValue x", "does not know Fn::ImportValue"),
        ("Retry-After: \"'1'\"", "Retry-After: context.x", "only a fixed value"),
        ("Limits: {local", "Limits: {other", "is not a valid SAM template"),
        ("Parameters:", "Parameters: [", "is not a valid SAM template"),
        ("Resources:", "Sources:", "is not a valid SAM template"),
        ("Resources:", "Resources:\n  HalfWritten:", "is not a valid SAM template"),
        ("!Equals [!Ref Stage, local]", "!Condition IsNotLocal", "is not a valid SAM template: RecursionError"),
    ],
)
def test_what_it_does_not_know_is_an_error(tmp_path: Path, before: str, after: str, message: str) -> None:
    assert before in SAMPLE
    with pytest.raises(TemplateError, match=message):
        load(tmp_path, SAMPLE.replace(before, after))


def test_own_template_answers_every_gateway_error_with_an_error_object() -> None:
    """Each type that the local gateway uses is in the template, so that no response is in AWS's own form."""
    used = {"MISSING_AUTHENTICATION_TOKEN", "REQUEST_TOO_LARGE", "INTEGRATION_TIMEOUT", "DEFAULT_5XX"}

    assert used <= load_template().gateway_responses.keys()
    assert load_template(ROOT / "template.yaml").base_path == "/v1"
