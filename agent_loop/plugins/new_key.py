"""Looks for a newer key before the next request to an endpoint that refused the one it got.

A person whose key was refused signs in again, perhaps in another process, and goes on with the prompt.
"""

from collections.abc import Awaitable, Callable

from agent_loop.events.bus import Next
from agent_loop.events.waterfalls import REQUEST_ERROR, FailedRequest, Recovery
from agent_loop.llm.provider import REQUEST, AgentRequest, ModelRequest
from agent_loop.plugins.scope import PluginScope


def activate(scope: PluginScope, renew: Callable[[str], Awaitable[None]]) -> None:
    """Stand around every request from now on.

    Args:
        renew: Gives a provider, by its name, the key that was stored for it since; without one it does
            nothing. It is bounded, and does not raise.
    """
    refused: set[str] = set()

    async def note(failed: FailedRequest, next: Next[FailedRequest, Awaitable[Recovery]]) -> Recovery:
        if failed.error.kind == "auth" and failed.error.provider is not None:
            refused.add(failed.error.provider)
        return await next(failed)

    async def look(value: AgentRequest, next: Next[AgentRequest, Awaitable[ModelRequest]]) -> ModelRequest:
        request = await next(value)
        if request.provider in refused:
            refused.discard(request.provider)
            await renew(request.provider)
        return request

    scope.around(REQUEST_ERROR, note)
    scope.around(REQUEST, look)
