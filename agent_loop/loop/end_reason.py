"""Why a turn ended, as a value. Pure."""

from typing import Any

from agent_loop.agent.cancel_token import CancelToken
from agent_loop.errors import ErrorKind, ProviderError, code_of, in_words
from agent_loop.events.facts import EndReason, ErrorRecorded


def cancelled(token: CancelToken) -> EndReason:
    """The end of a turn whose token fired: `disposed`, or `aborted` with who and why."""
    if token.cause == "disposed":
        return EndReason("disposed")
    return EndReason("aborted", cause=token.cause, text=token.text)


def failed(error: BaseException) -> EndReason:
    """The end of a turn that failed."""
    if not isinstance(error, ProviderError):
        return EndReason("error", error_kind="unknown", message=in_words(error))
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
