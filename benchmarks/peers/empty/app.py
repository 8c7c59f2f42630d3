"""The floor: what the interpreter and Lambda's runtime client cost before any work is done."""


def handler(_event: dict, _context: object) -> dict:
    return {
        "statusCode": 200,
        "headers": {"Content-Type": "application/json"},
        "body": "[]",
    }
