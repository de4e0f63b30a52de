"""The tools there are, for all sessions or for one, and a call's way through them.

Owns looking a tool up, preparing, and running it inside the `tools/execute` waterfall, none of which ever
raises because of a tool, a middleware or what the model wrote. When facts are logged, and the checks
between consent and the body, belong to `loop.tool_calls`.
"""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import field
from typing import Any, Final

from agent_loop.cards import Card
from agent_loop.errors import Duplicate, in_words
from agent_loop.events.bus import Bus, Disposer
from agent_loop.events.contain import stray_cancel
from agent_loop.jsonvalue import clean_text, freeze_json, thaw_json
from agent_loop.messages import Json
from agent_loop.record import record, replace
from agent_loop.tools.bounds import bounded_content, bounded_input, check_card
from agent_loop.tools.failures import outcome_of
from agent_loop.tools.schema import parameters_of, parse_arguments, parse_object
from agent_loop.tools.tool import EXECUTE, PreparedCall, Tool, ToolContext, ToolOutcome, ToolRefused

_log = logging.getLogger(__name__)
_TITLE_LIMIT = 100
_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")


@record
class ToolSpec:
    """A tool as a model is told of it; `parameters` is a JSON Schema of the caller's own."""

    name: str
    description: str
    parameters: Json


@record
class BoundCall(PreparedCall):
    """A prepared call that remembers which tool prepared it.

    A middleware that wants another value makes it with `dataclasses.replace`.
    """

    tool: Tool[Any] = field(repr=False)


@record
class Refusal:
    """A call that will not run: what the person sees of it, and what the model is told."""

    card: Card
    outcome: ToolOutcome


@record
class _Registered:
    tool: Tool[Any]
    parameters: Any


class ToolRegistry:
    """One harness's tools."""

    def __init__(self, bus: Bus, bundled: Callable[[], Iterable[Tool[Any]]] = tuple) -> None:
        """Start with tools for all sessions.

        Args:
            bundled: Called by `load`.
        """
        self._bus = bus
        self._bundled = bundled
        self._scopes: dict[str | None, dict[str, _Registered]] = {}

    def load(self) -> None:
        """Register the bundled tools, once; done by whatever asks first, unless it was done before."""
        bundled, self._bundled = self._bundled, tuple
        for tool in bundled():
            self.register(tool)

    def register(self, tool: Tool[Any], *, session_id: str | None = None) -> Disposer:
        """Offer a tool to one session, or to all; a session's own hides one of the same name for all.

        Raises:
            Duplicate: The name is taken in that scope.
            ValueError: No provider would take the name, or the argument model has no JSON Schema.
        """
        if not _NAME.fullmatch(tool.name):
            raise ValueError(f"a tool's name is 1 to 64 letters, digits, _ or -, not {tool.name!r}")

        self.load()
        mine = _Registered(tool, freeze_json(parameters_of(tool.arguments)))
        scope = self._scopes.setdefault(session_id, {})
        if tool.name in scope:
            raise Duplicate(f"there is a tool named {tool.name} already")
        scope[tool.name] = mine

        def dispose() -> None:
            if scope.get(tool.name) is mine:
                del scope[tool.name]
            if not scope and self._scopes.get(session_id) is scope:
                del self._scopes[session_id]

        return dispose

    def get(self, name: str, session_id: str) -> Tool[Any] | None:
        """The tool a session knows by that name; None when there is none."""
        found = self._visible(session_id).get(name)
        return found.tool if found else None

    def schemas(self, session_id: str) -> tuple[ToolSpec, ...]:
        """What a session's model may call, copies all, in the order of registration: a stable prompt is a
        cached prompt. A session's own tool stands where the one it hides stood.
        """
        return tuple(
            ToolSpec(name, found.tool.description, thaw_json(found.parameters))
            for name, found in self._visible(session_id).items()
        )

    async def prepare(self, name: str, raw_arguments: str, ctx: ToolContext) -> BoundCall | Refusal:
        """Look at a call. Whatever is wrong with it becomes a refusal the model can read."""
        try:
            tool = self._known(name, ctx.session_id)
            parsed = parse_arguments(tool.arguments, raw_arguments)
            prepared = await tool.prepare(parsed, ctx)
            check_card(prepared.card)
        except Exception as error:
            return _refusal(name, raw_arguments, error)
        except asyncio.CancelledError as error:
            if not stray_cancel():
                raise
            return _refusal(name, raw_arguments, error)

        return BoundCall(name, parsed.model_dump(), prepared, ctx, tool)

    def parallel_safe(self, name: str, raw_arguments: str, session_id: str) -> bool:
        """Whether a call may run beside its neighbours; one that makes no sense, or cannot say, may not.

        Asked before `prepare`, which has to see what the call before it did when it may not.
        """
        try:
            tool = self._known(name, session_id)
            return tool.parallel_safe(parse_arguments(tool.arguments, raw_arguments))
        except ToolRefused:
            return False
        except Exception:
            _log.exception("tool %s failed to say whether it is safe to run beside others", name)
            return False

    async def execute(
        self, call: BoundCall, core: Callable[[PreparedCall], Awaitable[ToolOutcome]]
    ) -> ToolOutcome:
        """Run a call through everyone who stands around `tools/execute`, `core` innermost.

        Only a real cancellation passes through; every other raise becomes an error outcome.

        Args:
            core: Checks what must hold before an effect, then awaits `run_body`.
        """
        try:
            return _fit(await self._bus.run(EXECUTE, call, core), call.name)
        except Exception as error:
            return _fit(outcome_of(error, call.name), call.name)
        except asyncio.CancelledError as error:
            if not stray_cancel():
                raise
            return _fit(outcome_of(error, call.name), call.name)

    async def run_body(self, call: PreparedCall) -> ToolOutcome:
        """The tool's own run, by the very tool that prepared the call. It may raise; `execute` contains it.

        Raises:
            TypeError: A middleware made the call anew instead of replacing parts of it.
        """
        if not isinstance(call, BoundCall):
            raise TypeError(f"the call of {call.name} was not made by this registry")
        return await call.tool.run(call.prepared, call.ctx)

    def _visible(self, session_id: str) -> dict[str, _Registered]:
        self.load()
        return {**self._scopes.get(None, {}), **self._scopes.get(session_id, {})}

    def _known(self, name: str, session_id: str) -> Tool[Any]:
        visible = self._visible(session_id)
        if name not in visible:
            names = ", ".join(visible) or "none"
            raise ToolRefused(f"there is no tool {name!r}. The tools are: {names}.", code="UNKNOWN_TOOL")
        return visible[name].tool


def _refusal(name: str, raw_arguments: str, error: BaseException) -> Refusal:
    outcome = outcome_of(error, name, "skipped")
    card = error.card if isinstance(error, ToolRefused) else None
    return Refusal(card or _generic_card(name, raw_arguments), _fit(outcome, name))


def _generic_card(name: str, raw_arguments: str) -> Card:
    try:
        shown: Any = parse_object(raw_arguments)
    except ToolRefused:
        shown = raw_arguments

    return Card(kind="other", title=clean_text(name)[:_TITLE_LIMIT] or "tool", input=bounded_input(shown))


def _fit(outcome: ToolOutcome, name: str) -> ToolOutcome:
    """The outcome, as a log can carry it and a model bear it."""
    fit = replace(outcome, content=bounded_content(outcome.content))
    try:
        return fit if fit.card is None else replace(fit, card=check_card(fit.card))
    except ValueError as error:
        _log.error("tool %s ended with a card nobody can show: %s", name, in_words(error))
        return replace(fit, card=None)
