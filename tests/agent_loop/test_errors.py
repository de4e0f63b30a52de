"""Errors: their stable codes, what they carry, and how they are said."""

import pytest

from agent_loop.errors import (
    ERROR_KINDS,
    FAILURE_WORDS,
    Busy,
    ConfigError,
    Disposed,
    Duplicate,
    ErrorKind,
    HarnessError,
    NotFound,
    ProviderError,
    StoreError,
    code_of,
    in_words,
)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (HarnessError("x"), "ERROR"),
        (HarnessError("x", code="SPECIAL"), "SPECIAL"),
        (ProviderError("auth", "x"), "PROVIDER"),
        (Disposed("x"), "DISPOSED"),
        (Duplicate("x"), "DUPLICATE"),
        (NotFound("x"), "NOT_FOUND"),
        (Busy("x"), "BUSY"),
        (ConfigError("x"), "CONFIG"),
        (StoreError("io", "x"), "STORE"),
        (ValueError("x"), "UNKNOWN"),
        (KeyboardInterrupt(), "UNKNOWN"),
    ],
    ids=lambda it: repr(it),
)
def test_every_error_has_a_stable_code(error: BaseException, code: str) -> None:
    """Spec loop 3.1: the error fact carries a code; ours are stable, the rest is unknown."""
    assert code_of(error) == code


def test_one_errors_own_code_is_not_its_classes() -> None:
    """Our promise: naming one failure renames no other."""
    HarnessError("x", code="SPECIAL")

    assert HarnessError("x").code == "ERROR"


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ProviderError("auth", "the key was refused"), "the key was refused"),
        (ValueError("broken"), "broken"),
        (ValueError(), "ValueError"),
        (TimeoutError(), "TimeoutError"),
    ],
)
def test_an_error_is_said_in_its_own_words_or_by_its_name(error: BaseException, words: str) -> None:
    """Contract 5: plain words, no prefix, never an empty message."""
    assert in_words(error) == words


def test_a_provider_error_says_what_a_retry_needs() -> None:
    """Contract 5: `data {kind, retryAfter?, …}`."""
    full = ProviderError("rate_limit", "slow down", provider="p", status=429, retry_after_s=1.5)
    bare = ProviderError("unknown", "?")

    assert (full.kind, full.provider, full.status, full.retry_after_s) == ("rate_limit", "p", 429, 1.5)
    assert (bare.kind, bare.provider, bare.status, bare.retry_after_s) == ("unknown", None, None, None)


@pytest.mark.parametrize("kind", sorted(ERROR_KINDS))
def test_a_failure_without_words_says_whose_it_is_and_what_its_kind_means(kind: ErrorKind) -> None:
    """Contract 5: every kind in plain words; claude-agent-acp#161 showed none."""
    named, bare = ProviderError(kind, "", provider="local"), ProviderError(kind, "")

    assert in_words(named) == f"local {FAILURE_WORDS[kind]}"
    assert in_words(bare) == f"the model {FAILURE_WORDS[kind]}"
    assert "_" not in in_words(bare)


def test_settings_and_stores_say_where_it_went_wrong() -> None:
    """Contracts 1, 5 and 11: `data {kind, path, line}`, and -32000 when only a model or key is missing."""
    config = ConfigError("x", path="config.toml", line=3, needs_auth=True)
    bare = ConfigError("x")

    assert (config.path, config.line, config.needs_auth) == ("config.toml", 3, True)
    assert (bare.path, bare.line, bare.needs_auth) == ("", None, False)
    assert StoreError("unclosed", "x").kind == "unclosed"


def test_the_kinds_of_provider_failures_are_closed() -> None:
    """Contract 5: log, script and wire alike."""
    assert sorted(ERROR_KINDS) == [
        "auth",
        "content_filtered",
        "context_too_long",
        "empty",
        "invalid_request",
        "malformed",
        "model_not_found",
        "overloaded",
        "quota",
        "rate_limit",
        "server",
        "timeout",
        "transport",
        "unknown",
    ]
