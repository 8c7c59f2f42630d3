"""The floor: what the interpreter and Lambda's runtime client cost before any work is done."""


def handler(_event, _context):
    return {
        "statusCode": 200,
        "headers": {"Content-Type": "application/json"},
        "body": "[]",
    }
