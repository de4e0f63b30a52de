"""Asks an endpoint which models it has: the cheapest question that shows whether a key is taken.

Owns one bounded GET. What its failures read like belongs to `providers.failures`.
"""

from contextlib import suppress
from importlib import import_module
from typing import Final, Literal

import anyio
import orjson
from anyio import to_thread

from agent_loop.errors import ProviderError
from agent_loop.llm.providers.endpoint import Endpoint
from agent_loop.llm.providers.failures import from_library, from_status

ANTHROPIC_VERSION: Final = "2023-06-01"
# Asked for a list, these endpoints say that there is none to be had.
_NO_LISTING: Final = (404, 405, 501)


async def list_models(
    endpoint: Endpoint, kind: Literal["openai", "anthropic"], timeout_s: float
) -> tuple[str, ...] | None:
    """The models an endpoint names, in its order; None when it answers but keeps no list.

    Args:
        timeout_s: Longest time for all of it, the import of the HTTP client left out.
    Raises:
        ProviderError: It cannot be reached in time, or refuses the key.
    """
    await to_thread.run_sync(import_module, "httpx2")
    import httpx2

    url, headers = _question(endpoint, kind)
    try:
        with anyio.fail_after(timeout_s):
            async with httpx2.AsyncClient(timeout=timeout_s) as client:
                response = await client.get(url, headers=headers)
    except TimeoutError as error:
        words = f"{endpoint.name}: no answer from {endpoint.host} in {timeout_s:g} s"
        raise ProviderError("timeout", words, provider=endpoint.name) from error
    except Exception as error:
        if failure := from_library(endpoint, error):
            raise failure from error
        raise

    if response.status_code in _NO_LISTING:
        return None
    body: object = response.text
    with suppress(orjson.JSONDecodeError):
        body = orjson.loads(response.content)
    if response.status_code != 200:
        raise from_status(endpoint, response.status_code, response.headers, body)
    return _names(body)


def _question(endpoint: Endpoint, kind: Literal["openai", "anthropic"]) -> tuple[str, dict[str, str]]:
    key = endpoint.api_key
    if kind == "anthropic":
        own = {} if key is None else {"x-api-key": key}
        url = f"{endpoint.base_url.removesuffix('/v1')}/v1/models?limit=1000"
        return url, {"anthropic-version": ANTHROPIC_VERSION, **own}
    return f"{endpoint.base_url}/models", {} if key is None else {"authorization": f"Bearer {key}"}


def _names(body: object) -> tuple[str, ...] | None:
    match body:
        case {"data": [*models]}:
            found = (model.get("id") for model in models if isinstance(model, dict))
            return tuple(name for name in found if isinstance(name, str) and name)
        case {"data": None}:
            return ()
        case _:
            return None
