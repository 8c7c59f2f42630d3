"""What the local gateway reads from a template."""

from pathlib import Path

import pytest

from tools.local import LocalError, template
from tools.local.template import Route, Template

SAMPLE = """
Parameters:
  Stage: {Type: String}
  Size: {Type: Number, Default: 512}
Globals:
  Function:
    Handler: app.handler
    MemorySize: !Ref Size
    Layers: [!Ref Layer]
    Environment: {Variables: {TABLE: !Ref Table, NAME: !Sub "${AWS::Region}-${Stage}-${Table}", OWN: global}}
Resources:
  Layer: {Type: AWS::Serverless::LayerVersion, Properties: {ContentUri: layer}}
  Table: {Type: AWS::DynamoDB::Table, Properties: {KeySchema: [{AttributeName: id, KeyType: HASH}]}}
  Api:
    Type: AWS::Serverless::Api
    Properties: {StageName: !Ref Stage, GatewayResponses: {THROTTLED: {StatusCode: 429}}}
  One:
    Type: AWS::Serverless::Function
    Properties:
      CodeUri: one
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
    one = loaded.functions["One"]

    assert (loaded.stage, loaded.base_path, loaded.tables["Table"].name) == ("local", "/v1", "animal-store-local-Table")
    assert loaded.gateway_responses == {"THROTTLED": {"StatusCode": 429}}
    assert loaded.find("PUT", "/v1/things/best") == (Route("ANY", "/v1/things/best", "One"), {})
    assert loaded.find("GET", "/v1/things/a%2Fb%2520") == (Route("GET", "/v1/things/{id}", "One"), {"id": "a/b%20"})
    assert (one.code, one.layers, one.handler) == (tmp_path / "one", (tmp_path / "layer",), "app.handler")
    assert (one.timeout_s, one.memory_mb) == (3, 512)
    assert one.environment == {
        "TABLE": "animal-store-local-Table",
        "NAME": "us-east-1-local-animal-store-local-Table",
        "OWN": "one",
        "NUMBER": "5",
        "FLAG": "true",
    }


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("CodeUri: one", "CodeUri: none", "the folder none does not exist"),
        ("TABLE: !Ref Table", "TABLE: !Ref Tabel", "there is no parameter or resource Tabel"),
        ("TABLE: !Ref Table", "TABLE: !ImportValue x", "does not know Fn::ImportValue"),
        ("Type: AWS::DynamoDB::Table,", "Type: AWS::DynamoDB::Table, Condition: X,", "Table has a condition"),
        ("Parameters:", "Parameters: [", "is not a valid SAM template"),
        ("Resources:", "Sources:", "is not a valid SAM template"),
        ("Resources:", "Resources:\n  HalfWritten:", "is not a valid SAM template"),
    ],
)
def test_what_it_does_not_know_is_an_error(tmp_path: Path, before: str, after: str, message: str) -> None:
    assert before in SAMPLE
    with pytest.raises(LocalError, match=message):
        load(tmp_path, SAMPLE.replace(before, after))
