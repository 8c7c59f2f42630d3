"""A handler that uses only the SDK and `json`, without models."""

import json

import store


def handler(event, _context):
    if event["httpMethod"] == "POST":
        return answer(201, store.create(json.loads(event["body"])))
    if event["pathParameters"]:
        pet = store.get(event["pathParameters"]["petId"])
        return answer(200, pet) if pet else answer(404, {"message": "no animal"})
    parameters = event["queryStringParameters"] or {}
    pets, link = store.query(parameters.get("limit", 20), parameters.get("cursor", 0))
    return answer(200, pets, **link)


def answer(status, body, **headers):
    return {
        "statusCode": status,
        "headers": {"Content-Type": "application/json", **headers},
        "body": json.dumps(body),
    }
