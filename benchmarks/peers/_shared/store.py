"""The tables by a client, with items written and read by hand: the least work."""

import os

from client import dynamodb

ANIMALS, API_KEYS = os.environ["ANIMALS_TABLE"], os.environ["API_KEYS_TABLE"]


def get_key(digest):
    key = {"hash": {"S": digest}}
    found = dynamodb.get_item(TableName=API_KEYS, Key=key, ConsistentRead=True)
    return found.get("Item", {})


def query(limit, status, after):
    request = {"TableName": ANIMALS, "Limit": int(limit)}
    if status:
        request |= {
            "IndexName": "by-status",
            "KeyConditionExpression": "#status = :value",
        }
        request["ExpressionAttributeNames"] = {"#status": "status"}
    else:
        request |= {"KeyConditionExpression": "pk = :value", "ConsistentRead": True}
    if after:
        start = {"pk": {"S": "pet"}, "id": {"N": str(after)}}
        if status:
            start["status"] = {"S": status}
        request["ExclusiveStartKey"] = start
    page = dynamodb.query(
        ExpressionAttributeValues={":value": {"S": status or "pet"}}, **request
    )
    last = page.get("LastEvaluatedKey")
    pets = [from_item(item) for item in page["Items"]]
    return pets, int(last["id"]["N"]) if last else None


def next_id():
    counter = dynamodb.update_item(
        TableName=ANIMALS,
        Key={"pk": {"S": "counter"}, "id": {"N": "0"}},
        UpdateExpression="ADD #value :one",
        ExpressionAttributeNames={"#value": "value"},
        ExpressionAttributeValues={":one": {"N": "1"}},
        ReturnValues="UPDATED_NEW",
    )
    return int(counter["Attributes"]["value"]["N"])


def put(pet):
    item = {"pk": {"S": "pet"}, "id": {"N": str(pet["id"])}, "name": {"S": pet["name"]}}
    item["categoryId"] = {"N": str(pet["categoryId"])}
    if "status" in pet:
        item["status"] = {"S": pet["status"]}
    dynamodb.put_item(
        TableName=ANIMALS, Item=item, ConditionExpression="attribute_not_exists(pk)"
    )


def get(pet_id):
    key = {"pk": {"S": "pet"}, "id": {"N": str(pet_id)}}
    found = dynamodb.get_item(TableName=ANIMALS, Key=key, ConsistentRead=True)
    return from_item(found["Item"]) if "Item" in found else None


def from_item(item):
    pet = {
        "id": int(item["id"]["N"]),
        "name": item["name"]["S"],
        "categoryId": int(item["categoryId"]["N"]),
    }
    if "status" in item:
        pet["status"] = item["status"]["S"]
    return pet
