"""Failures of endpoints, libraries and networks in our words."""

import ssl
from typing import Any

import anthropic
import httpx2
import openai
import pytest

from agent_loop.errors import ErrorKind
from agent_loop.llm.providers.endpoint import Endpoint
from agent_loop.llm.providers.failure_kinds import kind_of, retry_after_s
from agent_loop.llm.providers.failures import MESSAGE_LIMIT, from_library, from_status

KEY = "sk-live-0123456789"
ENDPOINT = Endpoint("openai", "https://user:pass@host:8443/v1", KEY, 120.0)
REQUEST = httpx2.Request("POST", "https://host/v1/chat/completions")
NOW_S = 1_000_000_000.0  # 9 September 2001, 01:46:40 GMT


def body(message: str, code: str | None = None, type: str | None = None) -> dict[str, Any]:
    return {"message": message, "code": code, "type": type, "param": None}


@pytest.mark.parametrize(
    ("status", "said", "kind", "sentence"),
    [
        (401, body("Incorrect API key provided: sk-ab***yz. See https://x.", "invalid_api_key"), "auth",
         "openai refused the key (401): Incorrect API key provided: [key]. See https://x."),
        (403, body("Country not supported"), "auth", "openai refused the key (403): Country not supported"),
        (400, body("API key not valid. Please pass a valid API key."), "auth",
         "openai refused the key (400): API key not valid. Please pass a valid API key."),
        (402, body("Insufficient Balance"), "quota",
         "openai says that the account has nothing left to spend (402): Insufficient Balance"),
        (429, body("You exceeded your current quota", "insufficient_quota", "insufficient_quota"), "quota",
         "openai says that the account has nothing left to spend (429): You exceeded your current quota"),
        (429, body("Rate limit reached", "rate_limit_exceeded", "requests"), "rate_limit",
         "openai asks to slow down (429): Rate limit reached"),
        (429, body("Too many tokens, please wait"), "rate_limit",
         "openai asks to slow down (429): Too many tokens, please wait"),
        (413, body("Request too large: tokens per minute", "rate_limit_exceeded"), "rate_limit",
         "openai asks to slow down (413): Request too large: tokens per minute"),
        (413, "", "context_too_long",
         "openai says that the conversation is longer than the model can read (413)"),
        (400, body("Maximum is 8192", "context_length_exceeded", "invalid_request_error"), "context_too_long",
         "openai says that the conversation is longer than the model can read (400): Maximum is 8192"),
        (400, body("This model's maximum context length is 8192 tokens."), "context_too_long",
         "openai says that the conversation is longer than the model can read (400): "
         "This model's maximum context length is 8192 tokens."),
        (500, body("the request exceeds the available context size", None, "exceed_context_size_error"),
         "context_too_long", "openai says that the conversation is longer than the model can read (500): "
         "the request exceeds the available context size"),
        (400, body("Flagged", "content_filter"), "content_filtered",
         "openai withheld the answer (400): Flagged"),
        (404, body("The model `x` does not exist", "model_not_found"), "model_not_found",
         "openai does not know the model (404): The model `x` does not exist"),
        (404, 'model "x" not found, try pulling it first', "model_not_found",
         'openai does not know the model (404): model "x" not found, try pulling it first'),
        (404, {"detail": "No such model here"}, "model_not_found",
         "openai does not know the model (404): No such model here"),
        (404, "<html>nginx</html>", "invalid_request",
         "openai knows nothing under https://host:8443/v1: is base_url right? (404)"),
        (400, {"type": "error", "error": {"type": "invalid_request_error", "message":
         "input length and `max_tokens` exceed context limit: 190000 + 32000 > 200000"}}, "context_too_long",
         "openai says that the conversation is longer than the model can read (400): "
         "input length and `max_tokens` exceed context limit: 190000 + 32000 > 200000"),
        (400, {"error": {"type": "invalid_request_error", "message": "Your credit balance is too low"}},
         "quota",
         "openai says that the account has nothing left to spend (400): Your credit balance is too low"),
        (400, body("Unknown field", None, "invalid_request_error"), "invalid_request",
         "openai did not accept the request (400): Unknown field"),
        (422, {"detail": [{"loc": ["body"]}]}, "invalid_request", "openai did not accept the request (422)"),
        (408, None, "timeout", "openai took too long (408)"),
        (500, body("The server had an error", None, "server_error"), "server",
         "openai failed on its side (500): The server had an error"),
        (504, "upstream timeout", "server", "openai failed on its side (504): upstream timeout"),
        (503, [{"error": {"code": 503, "message": "Try later"}}], "overloaded",
         "openai is overloaded (503): Try later"),
        (529, {"error": "busy"}, "overloaded", "openai is overloaded (529): busy"),
        (418, [], "invalid_request", "openai did not accept the request (418)"),
    ],
)  # fmt: skip
def test_a_status_becomes_a_kind_and_a_sentence(
    status: int, said: Any, kind: ErrorKind, sentence: str
) -> None:
    """Contract 5: kinds and plain words; shapes of OpenAI, DeepSeek, Gemini, Ollama, llama.cpp, FastAPI."""
    error = from_status(ENDPOINT, status, {}, said)

    assert (error.kind, str(error), error.status, error.provider) == (kind, sentence, status, "openai")


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        (f"key {KEY} is wrong", "key [key] is wrong"),
        ("key gsk_abcdefgh1234 or AIzaSyAbcdefgh is wrong", "key [key] or [key] is wrong"),
        ("disk-failure in task-12345", "disk-failure in task-12345"),
        ("one\n\ttwo\x07 \N{RIGHT-TO-LEFT OVERRIDE}three", "one two three"),
        ("x" * 1000, "x" * (MESSAGE_LIMIT - 1) + "…"),
    ],
)
def test_the_providers_words_are_one_bounded_line_without_keys(message: str, shown: str) -> None:
    """Our promise: no key on the wire, in the log or on a screen."""
    assert str(from_status(ENDPOINT, 500, {}, message)) == f"openai failed on its side (500): {shown}"


def test_an_endpoint_does_not_show_its_key() -> None:
    """Our promise: the same for whoever prints it."""
    assert KEY not in repr(ENDPOINT)


@pytest.mark.parametrize(
    ("headers", "wait_s"),
    [
        ({}, None),
        ({"retry-after": "2"}, 2.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "Sun, 09 Sep 2001 01:47:00 GMT"}, 20.0),
        ({"retry-after": "Sun, 09 Sep 2001 01:00:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after-ms": "x", "retry-after": "9"}, 9.0),
    ],
)
def test_a_wait_is_read_in_every_form(headers: dict[str, str], wait_s: float | None) -> None:
    """RFC 9110, Retry-After: seconds or a date; OpenAI and Azure add milliseconds."""
    assert retry_after_s(headers, NOW_S) == wait_s


def test_a_wait_comes_with_the_error() -> None:
    """Contract 5: `data.retryAfter`."""
    headers = {"retry-after": "Sun, 09 Sep 2001 01:47:00 GMT"}

    assert from_status(ENDPOINT, 429, headers, None, now_s=NOW_S).retry_after_s == 20.0


def caused(error: Exception, cause: Exception | None) -> Exception:
    error.__cause__ = cause
    return error


CONNECTION = openai.APIConnectionError(request=REQUEST)


@pytest.mark.parametrize(
    ("error", "kind", "sentence"),
    [
        (caused(openai.APITimeoutError(REQUEST), httpx2.ConnectTimeout("x")), "timeout",
         "openai: no connection to host:8443 in 10 s"),
        (caused(openai.APITimeoutError(REQUEST), httpx2.ReadTimeout("x")), "timeout",
         "openai: nothing came for 120 s"),
        (httpx2.ReadTimeout("x"), "timeout", "openai: nothing came for 120 s"),
        (httpx2.ConnectError("x"), "transport", "openai: no connection to host:8443"),
        (httpx2.ConnectError("[SSL: CERTIFICATE_VERIFY_FAILED] x"), "transport",
         "openai: the certificate of host:8443 is not trusted"),
        (httpx2.RemoteProtocolError("x"), "transport", "openai: the answer was cut off"),
        (httpx2.ReadError("x"), "transport", "openai: the answer was cut off"),
        (httpx2.DecodingError("x"), "malformed", "openai sent an answer that cannot be unpacked"),
        (httpx2.WriteError("x"), "transport", "openai: the connection to host:8443 failed"),
        (caused(openai.APIConnectionError(request=REQUEST), ssl.SSLError("x")), "transport",
         "openai: the connection to host:8443 failed"),
        (openai.APIConnectionError(request=REQUEST), "transport",
         "openai: the connection to host:8443 failed"),
        (openai.APIStatusError("x", response=httpx2.Response(500, request=REQUEST), body=None), "server",
         "openai failed on its side (500)"),
    ],
)  # fmt: skip
def test_what_a_library_raised_becomes_a_kind_and_a_sentence(
    error: Exception, kind: ErrorKind, sentence: str
) -> None:
    """Spike, trap 20: three families of exceptions, and no class name of theirs for a person to read."""
    failure = from_library(ENDPOINT, error, openai)

    assert failure is not None
    assert (failure.kind, str(failure)) == (kind, sentence)


@pytest.mark.parametrize(
    ("error", "kind", "sentence"),
    [
        (caused(anthropic.APITimeoutError(REQUEST), httpx2.ReadTimeout("x")), "timeout",
         "openai: nothing came for 120 s"),
        (anthropic.APIConnectionError(request=REQUEST), "transport",
         "openai: the connection to host:8443 failed"),
        (anthropic.APIStatusError("x", response=httpx2.Response(529, request=REQUEST), body=None),
         "overloaded", "openai is overloaded (529)"),
    ],
)  # fmt: skip
def test_what_anthropics_sdk_raised_reads_the_same(error: Exception, kind: ErrorKind, sentence: str) -> None:
    """Our promise: one taxonomy, whichever library failed; an SDK that is not in use is not looked at."""
    failure = from_library(ENDPOINT, error, anthropic)

    assert failure is not None
    assert (failure.kind, str(failure)) == (kind, sentence)
    assert from_library(ENDPOINT, error, openai) is None


@pytest.mark.parametrize("error", [ValueError("x"), openai.OpenAIError("x"), httpx2.StreamClosed()])
def test_what_is_nobodys_failure_is_a_bug(error: Exception) -> None:
    """Provider seam, rule 2."""
    assert from_library(ENDPOINT, error, openai) is None


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("overloaded_error", "overloaded"),
        ("upstream is temporarily unavailable", "overloaded"),
        ("request timed out", "timeout"),
        ("invalid_request_error", "invalid_request"),
        ("oops", "server"),
    ],
)
def test_without_a_status_vague_words_must_do(said: str, kind: ErrorKind) -> None:
    """Gateways: an error event in a stream that began with 200."""
    assert kind_of(None, said) == kind
