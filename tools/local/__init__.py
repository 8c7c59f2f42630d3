"""`make run`: the service in one process, with API Gateway and DynamoDB made from template.yaml."""

from lambda_local import LocalError as LocalError
