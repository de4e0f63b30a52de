"""Models behind an endpoint that speaks Anthropic's Messages API.

Owns what the endpoint is told besides the request, what is said instead when it refuses old thoughts, and
that the SDK may not be there: it is an optional extra. The connection belongs to `sdk_provider`, the request
to `anthropic_request`, the answer to `anthropic_stream`.
"""

import re
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any, ClassVar, Final

from agent_loop.errors import ConfigError, ProviderError
from agent_loop.events.facts import ThoughtLevel
from agent_loop.llm.provider import ModelRequest
from agent_loop.llm.providers.anthropic_request import Thinking, request_body
from agent_loop.llm.providers.anthropic_stream import AnthropicAnswer
from agent_loop.llm.providers.endpoint import endpoint_at
from agent_loop.llm.providers.failures import CONNECT_TIMEOUT_S
from agent_loop.llm.providers.sdk_provider import Answer, Sdk, SdkProvider
from agent_loop.messages import Reasoning

MAX_TOKENS: Final = 32_000
"""The longest answer of a model nobody knows: what the smallest of the current ones can write."""

BUDGETS: Final[Mapping[ThoughtLevel, int]] = {"low": 2_048, "medium": 8_192, "high": 24_576}
"""Tokens for thoughts, for models that are told a number."""

LEAST_BUDGET: Final = 1_024
"""Fewer are refused."""

_ABOUT_THOUGHTS: Final = re.compile(
    r"signature|bound to a different|thinking.* (cannot be modified|must be passed back)|Expected .?thinking"
)


class Anthropic(SdkProvider):
    """A provider; one object is one endpoint with one key."""

    path: ClassVar[str] = "/v1/messages"
    models_path: ClassVar[str] = "/v1/models?limit=1000"

    def __init__(
        self,
        name: str,
        base_url: str,
        api_key: str | None,
        idle_timeout_s: float = 120.0,
        *,
        max_tokens: int | None = None,
        thinking: Thinking | None = None,
    ) -> None:
        """Describe the endpoint; nothing is imported or opened yet.

        Args:
            base_url: Up to `/v1/messages`, with or without the `/v1` other formats end in.
            api_key: None or empty for an endpoint that needs none.
            idle_timeout_s: Longest silence, before the first byte or between two.
            max_tokens: Longest answer, thoughts included; None for what the model can write, or MAX_TOKENS.
            thinking: None leaves it to the model's own default.
        Raises:
            ConfigError: The SDK is not installed, the address or the key cannot be one, or thinking would
                leave nothing of the answer.
        """
        if find_spec("anthropic") is None:
            raise ConfigError(
                f"The provider {name} needs a package that is not installed: "
                "pip install 'acp-agent-server[anthropic]'"
            )

        super().__init__(endpoint_at(name, base_url, api_key, idle_timeout_s))
        self._max_tokens = max_tokens
        self._thinking = thinking
        # Session → place of the first message whose thoughts still go back.
        self._thoughts_from: dict[str, int] = {}

        if isinstance(thinking, int) and max_tokens is not None and thinking >= max_tokens:
            raise ConfigError(f"{name}: thinking must be less than max_tokens, which is {max_tokens}")

    def _body(self, request: ModelRequest) -> bytes:
        thinking, effort = self._thought(request)
        budget = thinking if isinstance(thinking, int) else 0
        max_tokens = self._max_tokens or request.info.max_output or MAX_TOKENS + budget
        if budget >= max_tokens:
            # The answer needs tokens, too.
            thinking = max_tokens // 2 if max_tokens >= 2 * LEAST_BUDGET else None
        return request_body(
            request,
            max_tokens=max_tokens,
            thinking=thinking,
            effort=effort,
            thoughts_from=self._thoughts_from.get(request.session_id, 0),
        )

    def _thought(self, request: ModelRequest) -> tuple[Thinking | None, ThoughtLevel | None]:
        """How to think and how hard: what the session says comes before the settings."""
        if request.thought is None:
            return self._thinking, None
        if request.info.thinks_by == "effort":
            return "adaptive", request.thought
        return BUDGETS[request.thought], None

    def _mended(self, request: ModelRequest, refused: ProviderError) -> bytes | None:
        # A signature may cover the system prompt, the tools and all that was said before. Any of these may
        # have changed while a session slept, and it would never be answered again.
        if refused.status != 400 or not _ABOUT_THOUGHTS.search(str(refused)):
            return None

        first = self._thoughts_from.get(request.session_id, 0)

        if not any(
            isinstance(block, Reasoning) for said in request.messages[first:] for block in said.content
        ):
            return None

        self._thoughts_from[request.session_id] = len(request.messages)
        return self._body(request)

    def _answer(self) -> Answer:
        return AnthropicAnswer(self._endpoint)

    def _connect(self) -> Sdk:
        import anthropic
        import httpx2

        client = anthropic.AsyncAnthropic(
            base_url=self._endpoint.base_url.removesuffix("/v1"),
            # With none the SDK would look for one in the environment and on the disk.
            api_key="none",
            max_retries=0,
            timeout=httpx2.Timeout(self._endpoint.idle_timeout_s, connect=CONNECT_TIMEOUT_S),
            open_telemetry=False,
        )
        # What the environment holds for Anthropic is no business of another endpoint's, so all is said here.
        return Sdk(anthropic, client, {"Authorization": anthropic.omit})

    def _key_headers(self, sdk: Sdk) -> dict[str, Any]:
        return {"X-Api-Key": self._endpoint.api_key or sdk.module.omit}
