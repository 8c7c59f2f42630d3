"""Lambda functions of a SAM template in one process, without Docker, on an embedded DynamoDB."""


class LocalError(Exception):
    """Something that the person at the terminal has to change; the message says what."""
