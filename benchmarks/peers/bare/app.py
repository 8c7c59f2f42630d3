"""The measure: a handler with the SDK and `json`, without models, keys, logs, metrics."""

import json

import store


def handler(event, _context):
    if event["httpMethod"] == "POST":
        pet = {"id": store.next_id(), **json.loads(event["body"])}
        store.put(pet)
        return answer(201, pet)
    if event["pathParameters"]:
        pet = store.get(event["pathParameters"]["petId"])
        if pet is None:
            error = {"code": "not_found", "message": "no animal", "status": 404}
            return answer(404, error)
        return answer(200, pet)
    parameters = event["queryStringParameters"] or {}
    pets, last = store.query(
        parameters.get("limit", 20), parameters.get("status"), parameters.get("cursor")
    )
    response = answer(200, pets)
    if last:
        response["headers"]["Link"] = f'</v1/pets?cursor={last}>; rel="next"'
    return response


def answer(status, body):
    return {
        "statusCode": status,
        "headers": {"Content-Type": "application/json"},
        "body": json.dumps(body),
    }
