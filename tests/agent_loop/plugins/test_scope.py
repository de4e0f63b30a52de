"""What a plugin registers, and that all of it goes with its scope."""

import logging
from collections.abc import Awaitable

import pytest

from agent_loop.events.bus import Middleware, Next
from agent_loop.events.moments import AgentCreated
from agent_loop.events.waterfalls import TURN_CONTINUATION, Continuation
from agent_loop.plugins.scope import PluginScope
from agent_loop.prompt.system_prompt import PromptContext
from tests.doubles.loop_rig import Rig, ask, open_rig, trouble
from tests.doubles.model import text
from tests.doubles.worker import Worker


def noting(notes: list[str], name: str) -> Middleware[Continuation, Awaitable[bool]]:
    """A middleware that only says that it was there."""

    def middleware(value: Continuation, next: Next[Continuation, Awaitable[bool]]) -> Awaitable[bool]:
        notes.append(name)
        return next(value)

    return middleware


def scope_of(rig: Rig) -> PluginScope:
    return PluginScope(
        bus=rig.bus, agents=rig.agents, sessions=rig.sessions, tools=rig.tools, prompt=rig.prompt
    )


async def test_everything_a_plugin_registers_works_until_its_scope_closes() -> None:
    """Our promise: a plugin that is unloaded leaves nothing behind."""
    async with open_rig(text("a"), text("b")) as rig:
        scope, heard, voted = scope_of(rig), list[object](), list[str]()
        scope.on(AgentCreated, heard.append)
        scope.around(TURN_CONTINUATION, noting(voted, "plugin"))
        scope.tool(Worker("extra"))
        scope.tool(Worker("own"), session_id="s1")
        scope.section("plugin", 0, "from a plugin")

        agent = await rig.agent()
        await ask(agent)
        assert (len(heard), len(voted)) == (1, 1)
        assert [tool.name for tool in rig.model.requests[0].tools] == ["work", "extra", "own"]
        assert rig.model.requests[0].system == "from a plugin"

        scope.close()
        scope.close()
        await rig.agent("s2")
        await ask(agent)
        assert (len(heard), len(voted)) == (1, 1)
        assert [tool.name for tool in rig.model.requests[1].tools] == ["work"]
        assert await rig.prompt.text(PromptContext("s1", None)) == ""


async def test_a_scope_is_undone_backwards_and_a_raising_disposer_starves_no_other(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Loop specification 9.17."""
    async with open_rig() as rig:
        scope, order = scope_of(rig), list[str]()
        scope.defer(lambda: order.append("first"))
        scope.defer(trouble)
        scope.defer(lambda: order.append("last"))

        with caplog.at_level(logging.ERROR):
            scope.close()

        assert order == ["last", "first"]
        assert "a plugin's disposer raised" in caplog.text


async def test_a_middleware_of_a_plugin_may_go_before_all_others() -> None:
    """See `Bus.around`: the permission plugin has to stand outermost."""
    async with open_rig(text("a")) as rig:
        order: list[str] = []
        scope = scope_of(rig)
        rig.bus.around(TURN_CONTINUATION, noting(order, "early"))
        scope.around(TURN_CONTINUATION, noting(order, "prepended"), prepend=True)
        await ask(await rig.agent())

        assert order == ["prepended", "early"]
