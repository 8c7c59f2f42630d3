"""The tables by `boto3.resource`, as its documentation teaches."""

import os

import boto3
from boto3.dynamodb.conditions import Key

dynamodb = boto3.resource("dynamodb")
animals_table = dynamodb.Table(os.environ["ANIMALS_TABLE"])
api_keys_table = dynamodb.Table(os.environ["API_KEYS_TABLE"])


def get_key(digest: str) -> dict:
    return api_keys_table.get_item(Key={"hash": digest}, ConsistentRead=True).get("Item", {})


def query(limit: int, status: str | None, after: int | None) -> tuple[list[dict], int | None]:
    request = {
        "Limit": limit,
        "KeyConditionExpression": Key("pk").eq("pet"),
        "ConsistentRead": True,
    }
    if status:
        request = {
            "Limit": limit,
            "KeyConditionExpression": Key("status").eq(status),
            "IndexName": "by-status",
        }
    if after:
        request["ExclusiveStartKey"] = {"pk": "pet", "id": after} | (
            {"status": status} if status else {}
        )
    page = animals_table.query(**request)
    return page["Items"], int(
        page["LastEvaluatedKey"]["id"]
    ) if "LastEvaluatedKey" in page else None


def next_id() -> int:
    counter = animals_table.update_item(
        Key={"pk": "counter", "id": 0},
        UpdateExpression="ADD #value :one",
        ExpressionAttributeNames={"#value": "value"},
        ExpressionAttributeValues={":one": 1},
        ReturnValues="UPDATED_NEW",
    )
    return int(counter["Attributes"]["value"])


def put(pet: dict) -> None:
    animals_table.put_item(
        Item={"pk": "pet", **pet}, ConditionExpression="attribute_not_exists(pk)"
    )


def get(pet_id: int) -> dict | None:
    return animals_table.get_item(Key={"pk": "pet", "id": pet_id}, ConsistentRead=True).get("Item")
