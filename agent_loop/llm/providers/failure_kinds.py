"""Decides which failure an endpoint means, from its status, its codes and its words.

Words count before the status: gateways, proxies and local servers agree on neither, but the words of the
first of them are copied by the others. Saying it to a person belongs to `failures`.
"""

import math
import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Final

from agent_loop.errors import ErrorKind

_BY_STATUS: Final[Mapping[int, ErrorKind]] = {
    401: "auth",
    402: "quota",
    403: "auth",
    408: "timeout",
    413: "context_too_long",
    429: "rate_limit",
    503: "overloaded",
    529: "overloaded",
}

# In order: the first that is found in "code type message" decides, whatever the status.
_BY_WORDS: Final[tuple[tuple[ErrorKind, re.Pattern[str]], ...]] = (
    ("content_filtered", re.compile(r"content[_ ]filter|content_policy|content management policy")),
    ("quota", re.compile(r"insufficient[_ ](quota|balance|credit|funds)|credit balance|usage limits")),
    (
        "auth",
        re.compile(
            r"invalid_api_key|authentication_error|permission_error|api key not valid|incorrect api key"
        ),
    ),
    ("model_not_found", re.compile(r"model_not_found|model \S+ (not found|does not exist)")),
    ("rate_limit", re.compile(r"rate_limit|rate limit|too many requests")),
    (
        "context_too_long",
        re.compile(
            r"context[_ ](length|window|size|limit)|maximum context|(prompt|input|conversation) is too long"
            r"|too many (input )?tokens|reduce the length of the (messages|prompt|input)"
        ),
    ),
)

# Only where there is no status: OpenAI's type is `invalid_request_error` whatever went wrong.
_BY_VAGUE_WORDS: Final[tuple[tuple[ErrorKind, re.Pattern[str]], ...]] = (
    ("overloaded", re.compile(r"overloaded|capacity|unavailable")),
    ("timeout", re.compile(r"\btimeout|timed out")),
    ("invalid_request", re.compile(r"invalid_request")),
)


def kind_of(status: int | None, said: str) -> ErrorKind:
    """Which failure this is.

    Args:
        status: HTTP status; None for an event inside a stream that does not give one.
        said: Code, type and message, as the provider wrote them.
    """
    said = said.lower()

    for kind, words in _BY_WORDS:
        # "Too many tokens" a minute is not too long a conversation.
        if words.search(said) and not (kind == "context_too_long" and status == 429):
            return kind

    if status is None:
        return next((kind for kind, words in _BY_VAGUE_WORDS if words.search(said)), "server")

    if status in _BY_STATUS:
        return _BY_STATUS[status]

    if status == 404 and "model" in said:
        return "model_not_found"

    return "server" if status >= 500 else "invalid_request"


def retry_after_s(headers: Mapping[str, str], now_s: float) -> float | None:
    """Seconds to wait, from `retry-after-ms` or `retry-after` (seconds or a date); None when not said."""
    for name, unit_s in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            wait_s = float(headers.get(name, "")) * unit_s
        except ValueError:
            continue

        if math.isfinite(wait_s):
            return max(0.0, wait_s)

    try:
        return max(0.0, parsedate_to_datetime(headers.get("retry-after", "")).timestamp() - now_s)
    except (ValueError, OverflowError):
        return None
