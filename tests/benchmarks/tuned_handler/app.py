"""Lists animals with the SDK and `json` alone, tuned by public options of botocore's client."""

import json
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


def handler(event: Any, _context: Any) -> Any:
    parameters = event["queryStringParameters"] or {}
    limit = int(parameters.get("limit", 20))
    page = dynamodb.query(
        TableName=ANIMALS,
        Limit=limit,
        KeyConditionExpression="pk = :pet AND id > :after",
        ExpressionAttributeValues={
            ":pet": {"S": "pet"},
            ":after": {"N": parameters.get("cursor", "0")},
        },
        ConsistentRead=True,
    )
    pets = [from_item(item) for item in page["Items"]]
    headers = {"Content-Type": "application/json"}
    if "LastEvaluatedKey" in page:
        next_page = f"/v1/pets?limit={limit}&cursor={pets[-1]['id']}"
        headers["Link"] = f'<{next_page}>; rel="next"'
    return {"statusCode": 200, "headers": headers, "body": json.dumps(pets)}


def from_item(item: Any) -> Any:
    pet = {
        "id": int(item["id"]["N"]),
        "name": item["name"]["S"],
        "categoryId": int(item["categoryId"]["N"]),
    }
    if "status" in item:
        pet["status"] = item["status"]["S"]
    return pet
