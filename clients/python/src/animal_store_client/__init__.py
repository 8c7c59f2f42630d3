"""A typed client of the animal store's API that pages and retries by itself."""

from animal_store_client.async_client import AsyncClient as AsyncClient
from animal_store_client.client import Client as Client
from animal_store_client.core import __version__ as __version__
from animal_store_client.errors import AnimalStoreError as AnimalStoreError
from animal_store_client.errors import ApiError as ApiError
from animal_store_client.errors import AuthenticationError as AuthenticationError
from animal_store_client.errors import IdempotencyKeyReusedError as IdempotencyKeyReusedError
from animal_store_client.errors import InvalidRequestError as InvalidRequestError
from animal_store_client.errors import InvalidResponseError as InvalidResponseError
from animal_store_client.errors import NoResponseError as NoResponseError
from animal_store_client.errors import NotFoundError as NotFoundError
from animal_store_client.errors import ServerError as ServerError
from animal_store_client.errors import TooManyRequestsError as TooManyRequestsError
from animal_store_client.pet import Page as Page
from animal_store_client.pet import Pet as Pet
from animal_store_client.pet import PetStatus as PetStatus
