"""A typed client of the animal store's API that pages and retries by itself."""

from animal_store_client.client import Client
from animal_store_client.errors import (
    AnimalStoreError,
    ApiError,
    AuthenticationError,
    IdempotencyKeyReusedError,
    InvalidRequestError,
    InvalidResponseError,
    NoResponseError,
    NotFoundError,
    ServerError,
    TooManyRequestsError,
)
from animal_store_client.pet import Pet, PetStatus

__all__ = [
    "AnimalStoreError",
    "ApiError",
    "AuthenticationError",
    "Client",
    "IdempotencyKeyReusedError",
    "InvalidRequestError",
    "InvalidResponseError",
    "NoResponseError",
    "NotFoundError",
    "Pet",
    "PetStatus",
    "ServerError",
    "TooManyRequestsError",
]
