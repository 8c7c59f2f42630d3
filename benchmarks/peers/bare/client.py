"""The SDK as its documentation begins."""

import boto3

dynamodb = boto3.client("dynamodb")
