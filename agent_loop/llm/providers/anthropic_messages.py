"""Models behind an endpoint that speaks Anthropic's Messages API.

Owns what the endpoint is told besides the request, what is said instead when it refuses old thoughts, and
that the SDK may not be there: it is an optional extra. The connection belongs to `sdk_provider`, the request
to `anthropic_request`, the answer to `anthropic_stream`.
"""

import re
from importlib.util import find_spec
from typing import Any, ClassVar, Final

from agent_loop.errors import ConfigError, ProviderError
from agent_loop.llm.provider import ModelRequest
from agent_loop.llm.providers.anthropic_request import Thinking, request_body
from agent_loop.llm.providers.anthropic_stream import AnthropicAnswer
from agent_loop.llm.providers.endpoint import endpoint_at
from agent_loop.llm.providers.failures import CONNECT_TIMEOUT_S
from agent_loop.llm.providers.sdk_provider import Answer, Sdk, SdkProvider
from agent_loop.messages import Reasoning

MAX_TOKENS: Final = 32_000
"""The longest answer unless somebody says otherwise: what the smallest of the current models can write."""

_ABOUT_THOUGHTS: Final = re.compile(
    r"signature|bound to a different|thinking.* (cannot be modified|must be passed back)|Expected .?thinking"
)


class Anthropic(SdkProvider):
    """A provider; one object is one endpoint with one key."""

    path: ClassVar[str] = "/v1/messages"

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
            max_tokens: Longest answer, thoughts included; None for MAX_TOKENS beside what may be thought.
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
        budget = thinking if isinstance(thinking, int) else 0
        self._max_tokens = budget + MAX_TOKENS if max_tokens is None else max_tokens
        self._thinking = thinking
        # Session → place of the first message whose thoughts still go back.
        self._thoughts_from: dict[str, int] = {}

        if budget >= self._max_tokens:
            raise ConfigError(f"{name}: thinking must be less than max_tokens, which is {self._max_tokens}")

    def _body(self, request: ModelRequest) -> bytes:
        return request_body(
            request,
            max_tokens=self._max_tokens,
            thinking=self._thinking,
            thoughts_from=self._thoughts_from.get(request.session_id, 0),
        )

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
