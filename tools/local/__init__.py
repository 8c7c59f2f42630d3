"""`make run`: the service in one process, with API Gateway and DynamoDB made from template.yaml."""


class LocalError(Exception):
    """Something that the person at the terminal has to change; the message says what."""
