"""Reads and writes the table with a botocore client that is tuned only by public options."""

import os
from typing import Any

from botocore.config import Config
from botocore.session import Session

session = Session()
dynamodb: Any = session.create_client(
    "dynamodb",
    config=Config(parameter_validation=False, user_agent=session.user_agent()),
)
ANIMALS = os.environ["ANIMALS_TABLE"]


def query(limit, after):
    page = dynamodb.query(
        TableName=ANIMALS,
        Limit=int(limit),
        KeyConditionExpression="pk = :pet AND id > :after",
        ExpressionAttributeValues={":pet": {"S": "pet"}, ":after": {"N": str(after)}},
        ConsistentRead=True,
    )
    pets = [from_item(item) for item in page["Items"]]
    if "LastEvaluatedKey" not in page:
        return pets, {}
    cursor = pets[-1]["id"]
    return pets, {"Link": f'</v1/pets?limit={limit}&cursor={cursor}>; rel="next"'}


def create(new):
    counter = dynamodb.update_item(
        TableName=ANIMALS,
        Key={"pk": {"S": "counter"}, "id": {"N": "0"}},
        UpdateExpression="ADD #value :one",
        ExpressionAttributeNames={"#value": "value"},
        ExpressionAttributeValues={":one": {"N": "1"}},
        ReturnValues="UPDATED_NEW",
    )
    number = counter["Attributes"]["value"]["N"]
    item = {"pk": {"S": "pet"}, "id": {"N": number}, "name": {"S": new["name"]}}
    item["categoryId"] = {"N": str(new["categoryId"])}
    if "status" in new:
        item["status"] = {"S": new["status"]}
    dynamodb.put_item(
        TableName=ANIMALS, Item=item, ConditionExpression="attribute_not_exists(pk)"
    )
    return {"id": int(number), **new}


def get(pet_id):
    key = {"pk": {"S": "pet"}, "id": {"N": str(pet_id)}}
    response = dynamodb.get_item(TableName=ANIMALS, Key=key, ConsistentRead=True)
    return from_item(response["Item"]) if "Item" in response else None


def from_item(item):
    pet = {
        "id": int(item["id"]["N"]),
        "name": item["name"]["S"],
        "categoryId": int(item["categoryId"]["N"]),
    }
    if "status" in item:
        pet["status"] = item["status"]["S"]
    return pet
