"""The table by `boto3.resource`, which converts the types of attributes."""

import os

import boto3
from boto3.dynamodb.conditions import Key

animals = boto3.resource("dynamodb").Table(os.environ["ANIMALS_TABLE"])


def query(limit, after):
    start = {"ExclusiveStartKey": {"pk": "pet", "id": int(after)}} if after else {}
    page = animals.query(
        Limit=int(limit),
        KeyConditionExpression=Key("pk").eq("pet"),
        ConsistentRead=True,
        **start,
    )
    pets = [from_item(item) for item in page["Items"]]
    if "LastEvaluatedKey" not in page:
        return pets, {}
    cursor = pets[-1]["id"]
    return pets, {"Link": f'</v1/pets?limit={limit}&cursor={cursor}>; rel="next"'}


def create(new):
    counter = animals.update_item(
        Key={"pk": "counter", "id": 0},
        UpdateExpression="ADD #value :one",
        ExpressionAttributeNames={"#value": "value"},
        ExpressionAttributeValues={":one": 1},
        ReturnValues="UPDATED_NEW",
    )
    pet = {"id": int(counter["Attributes"]["value"]), **new}
    animals.put_item(
        Item={"pk": "pet", **pet}, ConditionExpression="attribute_not_exists(pk)"
    )
    return pet


def get(pet_id):
    found = animals.get_item(Key={"pk": "pet", "id": int(pet_id)}, ConsistentRead=True)
    return from_item(found["Item"]) if "Item" in found else None


def from_item(item):
    text = {name: item[name] for name in ("name", "status") if name in item}
    return {"id": int(item["id"]), "categoryId": int(item["categoryId"]), **text}
