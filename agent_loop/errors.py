"""Errors of the house: what went wrong, whose fault it is, and how to say it.

Owns the base class, the closed list of provider failure kinds and the one way an unknown
exception becomes words. Turning an error into a JSON-RPC code belongs to `acp_server.errors`.
"""

from collections.abc import Mapping
from typing import Final, Literal, get_args

ErrorKind = Literal[
    "auth",
    "rate_limit",
    "quota",
    "overloaded",
    "server",
    "timeout",
    "transport",
    "malformed",
    "empty",
    "context_too_long",
    "content_filtered",
    "model_not_found",
    "invalid_request",
    "unknown",
]
"""Why a model call failed: the same word in the log, in scripts and on the wire."""

ERROR_KINDS: frozenset[str] = frozenset(get_args(ErrorKind))

FAILURE_WORDS: Final[Mapping[ErrorKind, str]] = {
    "auth": "refused the key",
    "rate_limit": "asks to slow down",
    "quota": "says that the account has nothing left to spend",
    "overloaded": "is overloaded",
    "server": "failed on its side",
    "timeout": "took too long",
    "transport": "could not be reached, or its answer was cut off",
    "malformed": "sent an answer that makes no sense",
    "empty": "gave an empty answer",
    "context_too_long": "says that the conversation is longer than the model can read",
    "content_filtered": "withheld the answer",
    "model_not_found": "does not know the model",
    "invalid_request": "did not accept the request",
    "unknown": "failed without saying why",
}
"""What a failure of each kind is in a person's words, to go on after the provider's name."""


class HarnessError(Exception):
    """An error with a stable code; `str(error)` is fit for a person to read."""

    code = "ERROR"

    def __init__(self, message: str, *, code: str | None = None) -> None:
        super().__init__(message)
        if code is not None:
            self.code = code


class ProviderError(HarnessError):
    """A model call failed; without a message of its own it says what its kind means.

    Attributes:
        kind: One of `ErrorKind`.
        provider: Name of the provider, for the person who has to mend it; None until the loop sets it.
        status: HTTP status when there was an answer, else None.
        retry_after_s: Seconds the provider asked to wait, else None.
        shown: Set by the loop: part of the failed answer had reached the person.
    """

    code = "PROVIDER"

    def __init__(
        self,
        kind: ErrorKind,
        message: str,
        *,
        provider: str | None = None,
        status: int | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message or f"{provider or 'the model'} {FAILURE_WORDS[kind]}")
        self.kind: ErrorKind = kind
        self.provider = provider
        self.status = status
        self.retry_after_s = retry_after_s
        self.shown = False


class Disposed(HarnessError):
    """The agent, session or harness was closed; nothing more can be asked of it."""

    code = "DISPOSED"


class Duplicate(HarnessError):
    """A name or id is taken; the earlier registration stands."""

    code = "DUPLICATE"


class NotFound(HarnessError):
    """Nothing is known under that name or id."""

    code = "NOT_FOUND"


class Busy(HarnessError):
    """The thing exists but something else is being done with it right now."""

    code = "BUSY"


class ConfigError(HarnessError):
    """Settings cannot be used.

    Attributes:
        path: The file at fault, or the flag or variable as the person spelled it.
        line: Line in that file, counted from 1; None when it has no single place.
        needs_auth: True when only a model or a key is missing: `session/new` answers -32000.
    """

    code = "CONFIG"

    def __init__(
        self, message: str, *, path: str = "", line: int | None = None, needs_auth: bool = False
    ) -> None:
        super().__init__(message)
        self.path = path
        self.line = line
        self.needs_auth = needs_auth


class StoreError(HarnessError):
    """A stored session cannot be read or written.

    Attributes:
        kind: `unclosed`, `corrupt`, `version`, `locked` or `io`: the word in `data.kind` on the wire.
    """

    code = "STORE"

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


def in_words(error: BaseException) -> str:
    """Say what went wrong in one line: the error's own text, or its class when it has none."""
    return str(error) or type(error).__name__


def code_of(error: BaseException) -> str:
    """The stable code of an error; `UNKNOWN` for anything that is not ours."""
    return error.code if isinstance(error, HarnessError) else "UNKNOWN"
