"""Models behind an endpoint that speaks OpenAI's chat completions.

Owns what the endpoint is told besides the request: keys, headers, and whether it gets thoughts back. The
connection belongs to `sdk_provider`, the request to `openai_request`, the answer to `openai_stream`.
"""

from typing import Any, ClassVar, Final

from agent_loop.llm.provider import ModelRequest
from agent_loop.llm.providers.endpoint import endpoint_at
from agent_loop.llm.providers.failures import CONNECT_TIMEOUT_S
from agent_loop.llm.providers.openai_request import request_body
from agent_loop.llm.providers.openai_stream import OpenAIAnswer
from agent_loop.llm.providers.sdk_provider import Answer, Sdk, SdkProvider

OPENAI_HOST: Final = "api.openai.com"


class OpenAICompatible(SdkProvider):
    """A provider; one object is one endpoint with one key."""

    path: ClassVar[str] = "/chat/completions"
    models_path: ClassVar[str] = "/models"

    def __init__(self, name: str, base_url: str, api_key: str | None, idle_timeout_s: float = 120.0) -> None:
        """Describe the endpoint; nothing is imported or opened yet.

        Args:
            base_url: Up to and without `/chat/completions`.
            api_key: None or empty for an endpoint that needs none.
            idle_timeout_s: Longest silence, before the first byte or between two.
        Raises:
            ConfigError: The address or the key cannot be one.
        """
        super().__init__(endpoint_at(name, base_url, api_key, idle_timeout_s))
        self._is_openai = self._endpoint.is_at(OPENAI_HOST)

    def _body(self, request: ModelRequest) -> bytes:
        return request_body(request, returns_reasoning=not self._is_openai)

    def _answer(self) -> Answer:
        return OpenAIAnswer(self._endpoint)

    def _connect(self) -> Sdk:
        import httpx2
        import openai

        headers: dict[str, Any] = {}

        if not self._is_openai:
            headers = {"OpenAI-Organization": openai.omit, "OpenAI-Project": openai.omit}

        client = openai.AsyncOpenAI(
            base_url=self._endpoint.base_url,
            # With none the SDK would look for one in the environment, which holds it for another endpoint.
            api_key="none",
            max_retries=0,
            timeout=httpx2.Timeout(self._endpoint.idle_timeout_s, connect=CONNECT_TIMEOUT_S),
        )
        return Sdk(openai, client, headers)

    def _key_headers(self, sdk: Sdk) -> dict[str, Any]:
        key = self._endpoint.api_key
        return {"Authorization": sdk.module.omit if key is None else f"Bearer {key}"}
