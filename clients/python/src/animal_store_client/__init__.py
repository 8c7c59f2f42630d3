"""A typed client for the animal store's API. It follows pages and retries failed calls."""

from animal_store_client.async_client import AsyncClient
from animal_store_client.client import Client
from animal_store_client.core import __version__
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
from animal_store_client.pet import Page, Pet, PetStatus

__all__ = [
    "AnimalStoreError",
    "ApiError",
    "AsyncClient",
    "AuthenticationError",
    "Client",
    "IdempotencyKeyReusedError",
    "InvalidRequestError",
    "InvalidResponseError",
    "NoResponseError",
    "NotFoundError",
    "Page",
    "Pet",
    "PetStatus",
    "ServerError",
    "TooManyRequestsError",
    "__version__",
]
