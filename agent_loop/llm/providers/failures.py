"""Turns what an endpoint, its SDK or the network said into our words and kinds, for every provider.

Owns the sentence a person reads, made of `FAILURE_WORDS` and what the provider said; which failure it is
belongs to `failure_kinds`, and whether to try again to the loop. A library's text never passes: it changes
with its version. The provider's own message does: one line, bounded, and with anything that looks like a key
taken out.
"""

import re
import time
from collections.abc import Mapping
from typing import Any

import orjson

from agent_loop.errors import FAILURE_WORDS, ErrorKind, ProviderError
from agent_loop.llm.providers.endpoint import Endpoint
from agent_loop.llm.providers.failure_kinds import kind_of, retry_after_s

MESSAGE_LIMIT = 300
CONNECT_TIMEOUT_S = 10.0

# A key as OpenAI shows it, whole or starred out, and the likes of it.
_KEY = re.compile(r"\b(?:sk|gsk|pk|rk|xai)[-_][\w*-]{8,}|\bAIza[\w-]{8,}|[\w-]*\*{3,}[\w-]*")


def from_status(
    endpoint: Endpoint, status: int, headers: Mapping[str, str], body: object, *, now_s: float | None = None
) -> ProviderError:
    """The error for an answer that is an HTTP error; `body` is its JSON value or its text."""
    code, message = _said(body)
    kind = kind_of(status, f"{code} {message}")
    sentence = FAILURE_WORDS[kind]

    if kind == "auth" and endpoint.api_key is None:
        sentence = "wants a key and none is set"

    if status == 404 and kind == "invalid_request":
        sentence = f"knows nothing under {endpoint.address}: is base_url right?"

    return ProviderError(
        kind,
        _sentence(endpoint, f"{sentence} ({status})", message),
        provider=endpoint.name,
        status=status,
        retry_after_s=retry_after_s(headers, time.time() if now_s is None else now_s),
    )


def from_event(endpoint: Endpoint, error: object) -> ProviderError:
    """The error for an `error` that came as an event, in a stream that had begun well."""
    code, message = _said(error)
    # Gateways put the status their own upstream gave them into `code`.
    first = code.split(" ")[0]
    status = int(first) if re.fullmatch(r"[45]\d\d", first) else None
    kind = kind_of(status, f"{code} {message}")
    place = f" ({status})" if status else ""

    return ProviderError(
        kind,
        _sentence(endpoint, f"{FAILURE_WORDS[kind]}{place} in the middle of the answer", message),
        provider=endpoint.name,
        status=status,
    )


def from_library(endpoint: Endpoint, error: Exception, sdk: Any = None) -> ProviderError | None:
    """The error for what an SDK or its HTTP client raised; None when it is neither's, and so a bug.

    Args:
        sdk: The package of the SDK, `openai` or the like; None once the answer has begun, when it raises
            nothing of its own.
    """
    import httpx2

    if sdk is not None and isinstance(error, sdk.APIStatusError):
        return from_status(endpoint, error.status_code, error.response.headers, error.body)

    # The SDK wraps what the HTTP client raised before the answer began, and nothing after.
    cause = error.__cause__ if sdk is not None and isinstance(error, sdk.APIConnectionError) else error

    if isinstance(cause, httpx2.ConnectTimeout):
        return _transport(endpoint, "timeout", f"no connection to {endpoint.host} in {CONNECT_TIMEOUT_S:g} s")

    if isinstance(cause, httpx2.TimeoutException):
        return _transport(endpoint, "timeout", f"nothing came for {endpoint.idle_timeout_s:g} s")

    if isinstance(cause, httpx2.ConnectError):
        # The one cause that a person can mend only when it is named.
        if "CERTIFICATE_VERIFY_FAILED" in str(cause):
            return _transport(endpoint, "transport", f"the certificate of {endpoint.host} is not trusted")

        return _transport(endpoint, "transport", f"no connection to {endpoint.host}")

    if isinstance(cause, httpx2.ReadError | httpx2.RemoteProtocolError):
        return cut(endpoint)

    if isinstance(cause, httpx2.DecodingError):
        return malformed(endpoint, "sent an answer that cannot be unpacked")

    if isinstance(cause, httpx2.HTTPError) or cause is not error:
        return _transport(endpoint, "transport", f"the connection to {endpoint.host} failed")

    return None


def cut(endpoint: Endpoint) -> ProviderError:
    """The error for an answer that ended before it was complete."""
    return _transport(endpoint, "transport", "the answer was cut off")


def malformed(endpoint: Endpoint, what: str) -> ProviderError:
    """The error for an answer that makes no sense; `what` goes on after the provider's name."""
    return ProviderError("malformed", f"{endpoint.name} {what}", provider=endpoint.name)


def no_answer(endpoint: Endpoint, stray: bytes) -> ProviderError:
    """The error for a stream without any event; `stray` is what came instead."""
    if not stray:
        what = f"{endpoint.name} closed the connection without an answer"
        return ProviderError("empty", what, provider=endpoint.name)

    try:
        error = orjson.loads(stray)["error"]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return malformed(endpoint, "did not answer with a stream of events: is base_url right?")

    return from_event(endpoint, error)


def _transport(endpoint: Endpoint, kind: ErrorKind, what: str) -> ProviderError:
    return ProviderError(kind, f"{endpoint.name}: {what}", provider=endpoint.name)


def _said(body: Any) -> tuple[str, str]:
    """Code and type in one string, and the message, out of the shapes that are about."""
    if isinstance(body, list) and body:
        body = body[0]

    if isinstance(body, dict) and isinstance(body.get("error"), dict | str):
        body = body["error"]

    if isinstance(body, dict):
        words = [str(body[name]) for name in ("code", "type") if body.get(name)]
        message = body.get("message") or body.get("detail") or ""
        return " ".join(words), message if isinstance(message, str) else ""

    # A page made for browsers says nothing to a person reading one line.
    return "", body if isinstance(body, str) and not body.lstrip().startswith("<") else ""


def _sentence(endpoint: Endpoint, what: str, said: str) -> str:
    """`openai refused the key (401): Incorrect API key provided`."""
    if endpoint.api_key and len(endpoint.api_key) >= 8:
        said = said.replace(endpoint.api_key, "[key]")

    line = " ".join("".join(char if char.isprintable() else " " for char in said).split())
    line = _KEY.sub("[key]", line)

    if len(line) > MESSAGE_LIMIT:
        line = f"{line[: MESSAGE_LIMIT - 1]}…"

    return f"{endpoint.name} {what}: {line}" if line else f"{endpoint.name} {what}"
