"""What the local gateway reads of a template."""

from pathlib import Path

import pytest

from tools import ROOT
from tools.local import template
from tools.local.template import Match, Route, Template, TemplateError

SAMPLE = """
Transform: AWS::Serverless-2016-10-31
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
  Layer:
    Type: AWS::Serverless::LayerVersion
    Properties: {ContentUri: layer}
  Table:
    Type: AWS::DynamoDB::Table
    Properties: {KeySchema: [{AttributeName: id, KeyType: HASH}]}
  Named:
    Type: AWS::DynamoDB::Table
    Properties: {TableName: !Join [-, [the, name]]}
  NotHere:
    Type: AWS::DynamoDB::Table
    Condition: IsNotLocal
  Api:
    Type: AWS::Serverless::Api
    Properties:
      StageName: !Ref Stage
      GatewayResponses:
        THROTTLED:
          StatusCode: 429
          ResponseParameters: {Headers: {Retry-After: "'1'"}}
          ResponseTemplates: {application/json: '{"a":1}'}
  Missing:
    Type: AWS::ApiGateway::GatewayResponse
    Properties:
      RestApiId: !Ref Api
      ResponseType: MISSING_AUTHENTICATION_TOKEN
      StatusCode: "404"
      ResponseParameters: {gatewayresponse.header.Cache-Control: "'no-store'"}
  One:
    Type: AWS::Serverless::Function
    Properties:
      CodeUri: one
      Timeout: !FindInMap [Limits, !Ref Stage, Timeout]
      Environment: {Variables: {OWN: one, NUMBER: 5, FLAG: true}}
      Events:
        Api: {Type: Api, Properties: {Path: "/v1/things/{id}", Method: get, RestApiId: !Ref Api}}
        Timer: {Type: Schedule, Properties: {Schedule: rate(1 day)}}
  Two:
    Type: AWS::Serverless::Function
    Properties:
      CodeUri: two
      Policies: [!Transform {Name: unknown}]
      Events:
        Fixed: {Type: Api, Properties: {Path: /v1/things/best, Method: any}}
        Rest: {Type: Api, Properties: {Path: "/v1/rest/{proxy+}", Method: GET}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("one", "two", "layer"):
        (tmp_path / name).mkdir()
    return tmp_path


def load(folder: Path, text: str = SAMPLE) -> Template:
    path = folder / "template.yaml"
    path.write_text(text)
    return template.load(path, {"Stage": "local"})


def test_function(folder: Path) -> None:
    one = load(folder).functions["One"]

    assert (one.code, one.layers, one.handler) == (folder / "one", (folder / "layer",), "app.handler")
    assert (one.timeout_s, one.memory_mb) == (7, 512)
    assert one.environment == {
        "TABLE": "animal-store-local-Table",
        "ARN": "animal-store-local-Table.Arn/local/${kept}/the-name",
        "LEVEL": "DEBUG",
        "OWN": "one",
        "NUMBER": "5",
        "FLAG": "true",
    }


def test_defaults_are_lambdas(folder: Path) -> None:
    two = load(folder, SAMPLE.replace("    MemorySize: !Ref Size\n", "")).functions["Two"]

    assert (two.timeout_s, two.memory_mb) == (3, 128)


def test_stage_and_tables(folder: Path) -> None:
    loaded = load(folder)

    assert loaded.stage == "local"
    assert {name: table.name for name, table in loaded.tables.items()} == {
        "Table": "animal-store-local-Table",
        "Named": "the-name",
    }
    assert loaded.tables["Table"].properties == {"KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}]}


def test_gateway_responses_of_both_forms(folder: Path) -> None:
    responses = load(folder).gateway_responses

    assert responses["THROTTLED"].status == 429
    assert responses["THROTTLED"].headers == {"Retry-After": "1"}
    assert responses["THROTTLED"].bodies == {"application/json": '{"a":1}'}
    assert responses["MISSING_AUTHENTICATION_TOKEN"].status == 404
    assert responses["MISSING_AUTHENTICATION_TOKEN"].headers == {"Cache-Control": "no-store"}


def test_base_path(folder: Path) -> None:
    assert load(folder).base_path == "/v1"
    assert load(folder, SAMPLE.replace("/v1/rest", "/v2/rest")).base_path == ""


THING = Route("GET", "/v1/things/{id}", "One")
BEST = Route("ANY", "/v1/things/best", "Two")
REST = Route("GET", "/v1/rest/{proxy+}", "Two")


@pytest.mark.parametrize(
    ("method", "path", "match"),
    [
        ("GET", "/v1/things/7", Match(THING, {"id": "7"})),
        ("GET", "/v1/things/a%2Fb%2520", Match(THING, {"id": "a/b%20"})),
        ("GET", "/v1/thi%6Egs/7", Match(THING, {"id": "7"})),
        ("GET", "/v1/things/%FF", Match(THING, {"id": "\ufffd"})),
        ("GET", "/v1/things/best", Match(BEST, {})),
        ("DELETE", "/v1/things/best", Match(BEST, {})),
        ("GET", "/v1/rest/a/b%2Fc", Match(REST, {"proxy": "a/b/c"})),
        ("POST", "/v1/things/7", None),
        ("get", "/v1/things/7", None),
        ("GET", "/v1/things/", None),
        ("GET", "/v1/things/7/", None),
        ("GET", "/v1/things", None),
        ("GET", "/things/7", None),
        ("GET", "/v1/rest/", None),
        ("GET", "*", None),
        ("GET", "", None),
    ],
)
def test_routes(folder: Path, method: str, path: str, match: Match | None) -> None:
    assert load(folder).find(method, path) == match


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("CodeUri: one", "CodeUri: none", "One names the folder none, which does not exist"),
        ("TABLE: !Ref Table", "TABLE: !Ref Tabel", "there is no parameter or resource Tabel"),
        ("TABLE: !Ref Table", "TABLE: !ImportValue x", "does not know Fn::ImportValue"),
        ("Retry-After: \"'1'\"", "Retry-After: context.x", "only a fixed value"),
        ("Limits: {local", "Limits: {other", "mapping Limits has no local, Timeout"),
        ("Parameters:", "Parameters: [", "is not valid YAML"),
        ("Resources:", "Sources:", "has no Resources"),
        ("Resources:", "Resources:\n  HalfWritten:", "is no SAM template"),
        ("Layers: [!Ref Layer]", "Layers: [arn:aws:lambda:x]", "is no SAM template"),
        ("MemorySize: !Ref Size", "MemorySize: much", "is no SAM template"),
        ("Parameters:", "Since: 2026-13-01\nParameters:", "is not valid YAML"),
    ],
)
def test_what_it_does_not_know_is_said(folder: Path, before: str, after: str, message: str) -> None:
    assert before in SAMPLE
    with pytest.raises(TemplateError, match=message):
        load(folder, SAMPLE.replace(before, after))


def test_template_that_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "template.yaml").write_bytes(b"\xff")

    with pytest.raises(TemplateError, match="is not valid YAML"):
        template.load(tmp_path / "template.yaml", {})


def test_no_template(tmp_path: Path) -> None:
    with pytest.raises(TemplateError, match="No such file"):
        template.load(tmp_path / "template.yaml", {})


def test_own_template_answers_every_gateway_error_with_an_error_object() -> None:
    """Each type that the local gateway uses is in the template, so that no answer is in AWS's own form."""
    loaded = template.load(ROOT / "template.yaml", {"Stage": "local"})

    used = {"BAD_REQUEST_PARAMETERS", "MISSING_AUTHENTICATION_TOKEN", "REQUEST_TOO_LARGE", "INTEGRATION_TIMEOUT"}
    assert used | {"DEFAULT_4XX", "DEFAULT_5XX"} <= loaded.gateway_responses.keys()
    assert loaded.base_path == "/v1"
