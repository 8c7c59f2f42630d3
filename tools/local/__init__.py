"""`make run`: the whole service in one process, with an API Gateway made from `template.yaml` and an embedded store."""


class LocalError(Exception):
    """Something that the person at the terminal has to change; the message says what."""
