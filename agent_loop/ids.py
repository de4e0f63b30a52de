"""Makes the identifiers other rooms hand around."""

from uuid import uuid4


def new_id() -> str:
    """A fresh UUID as text: sessions, user messages and requests carry one."""
    return str(uuid4())
