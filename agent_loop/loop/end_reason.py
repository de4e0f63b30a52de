"""Why a turn ended, as a value. Pure."""

from typing import Any, Final

from agent_loop.agent.cancel_token import CancelToken
from agent_loop.errors import ErrorKind, HarnessError, ProviderError, code_of, in_words
from agent_loop.events.facts import EndReason, ErrorRecorded

FROM_INSIDE: Final = "The turn failed from inside; the session's log has the details."


def cancelled(token: CancelToken) -> EndReason:
    """The end of a turn whose token fired: `disposed`, or `aborted` with who and why."""
    if token.cause == "disposed":
        return EndReason("disposed")
    return EndReason("aborted", cause=token.cause, text=token.text)


def failed(error: BaseException) -> EndReason:
    """The end of a turn that failed; a person reads it, so it says nothing of an unknown exception."""
    if not isinstance(error, ProviderError):
        message = in_words(error) if isinstance(error, HarnessError) else FROM_INSIDE
        return EndReason("error", error_kind="unknown", message=message)
    data: dict[str, Any] = {
        "provider": error.provider,
        "status": error.status,
        "retryAfter": error.retry_after_s,
    }
    known = {key: value for key, value in data.items() if value is not None}
    return EndReason("error", error_kind=error.kind, message=in_words(error), data=known or None)


def error_fact(turn: int, error: BaseException) -> ErrorRecorded:
    """The `error` fact that goes with `failed(error)`."""
    kind: ErrorKind | None = error.kind if isinstance(error, ProviderError) else None
    return ErrorRecorded(turn, in_words(error), code_of(error), kind)
