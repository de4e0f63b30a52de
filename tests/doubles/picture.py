"""A picture that every decoder takes: one red point."""

from base64 import b64decode
from typing import Final

PICTURE: Final = b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mP4z8AAAAMBAQD3A0FDAAAAAElFTkSuQmCC"
)
