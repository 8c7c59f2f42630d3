"""The measure: a hand-written handler with `boto3.client` and `json`; no models, authentication, logs or metrics."""

import json
import os

import boto3

dynamodb = boto3.client("dynamodb")
TABLE = os.environ["ANIMALS_TABLE"]


def handler(event: dict, _context: object) -> dict:
    if event["httpMethod"] == "POST":
        return answer(201, create_pet(json.loads(event["body"])))
    if event["pathParameters"]:
        pet = get_pet(event["pathParameters"]["petId"])
        return (
            answer(200, pet) if pet else answer(404, {"code": "not_found", "message": "no such animal", "status": 404})
        )
    return list_pets(event["queryStringParameters"] or {})


def list_pets(parameters: dict) -> dict:
    query = {"TableName": TABLE, "Limit": int(parameters.get("limit", 20))}
    if "status" in parameters:
        query |= {
            "IndexName": "by-status",
            "KeyConditionExpression": "#status = :status",
            "ExpressionAttributeNames": {"#status": "status"},
            "ExpressionAttributeValues": {":status": {"S": parameters["status"]}},
        }
    else:
        query |= {
            "KeyConditionExpression": "pk = :pk",
            "ExpressionAttributeValues": {":pk": {"S": "pet"}},
            "ConsistentRead": True,
        }
    if "cursor" in parameters:
        query["ExclusiveStartKey"] = json.loads(parameters["cursor"])
    page = dynamodb.query(**query)
    response = answer(200, [from_item(item) for item in page["Items"]])
    if "LastEvaluatedKey" in page:
        response["headers"]["Link"] = f'</v1/pets?cursor={json.dumps(page["LastEvaluatedKey"])}>; rel="next"'
    return response


def create_pet(new: dict) -> dict:
    counter = dynamodb.update_item(
        TableName=TABLE,
        Key={"pk": {"S": "counter"}, "id": {"N": "0"}},
        UpdateExpression="ADD #value :one",
        ExpressionAttributeNames={"#value": "value"},
        ExpressionAttributeValues={":one": {"N": "1"}},
        ReturnValues="UPDATED_NEW",
    )
    number = counter["Attributes"]["value"]["N"]
    item = {
        "pk": {"S": "pet"},
        "id": {"N": number},
        "name": {"S": new["name"]},
        "categoryId": {"N": str(new["categoryId"])},
    }
    if "status" in new:
        item["status"] = {"S": new["status"]}
    dynamodb.put_item(TableName=TABLE, Item=item, ConditionExpression="attribute_not_exists(pk)")
    return from_item(item)


def get_pet(pet_id: str) -> dict | None:
    found = dynamodb.get_item(TableName=TABLE, Key={"pk": {"S": "pet"}, "id": {"N": pet_id}}, ConsistentRead=True)
    return from_item(found["Item"]) if "Item" in found else None


def from_item(item: dict) -> dict:
    pet = {"id": int(item["id"]["N"]), "name": item["name"]["S"], "categoryId": int(item["categoryId"]["N"])}
    if "status" in item:
        pet["status"] = item["status"]["S"]
    return pet


def answer(status: int, body: object) -> dict:
    return {"statusCode": status, "headers": {"Content-Type": "application/json"}, "body": json.dumps(body)}
