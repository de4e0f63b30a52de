"""Permission: no clear yes, no effect; and every question and answer is on record."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import get_args

import anyio
import pytest
from anyio.lowlevel import checkpoint

from agent_loop.cards import Card
from agent_loop.config.settings import RuleSettings
from agent_loop.errors import NotFound
from agent_loop.events.bus import Next
from agent_loop.events.facts import (
    PermissionAsked,
    PermissionDecided,
    PermissionMode,
    SessionMode,
    ToolCall,
    ToolResult,
    ToolStarted,
)
from agent_loop.messages import text_of
from agent_loop.plugins.permission.approver import Decision, PermissionRequest
from agent_loop.plugins.permission.grants import Covered, options_for
from agent_loop.plugins.permission.plugin import (
    CANCELLED,
    DENIED,
    FORBIDDEN,
    NOBODY,
    PLANNING,
    Permission,
    _is_inside,
)
from agent_loop.plugins.permission.policy import Verdict, verdict
from agent_loop.plugins.scope import PluginScope
from agent_loop.tools.tool import EXECUTE, Effect, EffectKind, Prepared, PreparedCall, ToolOutcome
from tests.doubles.loop_rig import Rig, ask, ends, of_type, open_rig, types
from tests.doubles.model import calls, text
from tests.doubles.workshop import Workshop

WRITE = calls(("c1", '{"job": "it", "effect": "write"}'))
YES, NO = Decision(True, "user", "allow_once"), Decision(False, "user", "reject_once")
NO_STATE = Path("/nowhere/at/all")
FIVE = options_for(Covered("write", tool="work"), ())
FREE: set[EffectKind] = {"none", "read"}


class Person:
    """Answers as the test says, and remembers what was asked."""

    def __init__(self, answer: Callable[[], Awaitable[Decision]]) -> None:
        self.asked: list[PermissionRequest] = []
        self._answer = answer

    async def ask(self, request: PermissionRequest) -> Decision:
        self.asked.append(request)
        return await self._answer()


def person(decision: Decision) -> Person:
    async def answer() -> Decision:
        await checkpoint()
        return decision

    return Person(answer)


def guarded(rig: Rig, mode: PermissionMode = "ask", *rules: RuleSettings) -> Permission:
    scope = PluginScope(
        bus=rig.bus, agents=rig.agents, sessions=rig.sessions, tools=rig.tools, prompt=rig.prompt
    )
    return Permission(scope, mode, rules, NO_STATE)


SAID: dict[PermissionMode, dict[EffectKind, Verdict]] = {
    "ask": {},
    "accept-edits": {"write": "allow"},
    "plan": {kind: "deny" for kind in get_args(EffectKind) if kind != "fetch"},
    "full-auto": dict.fromkeys(get_args(EffectKind), "allow"),
}
"""What a mode says where it does not ask, looking aside."""


@pytest.mark.parametrize("kind", get_args(EffectKind))
@pytest.mark.parametrize("mode", get_args(PermissionMode))
def test_each_mode_frees_what_it_says_and_no_more(mode: PermissionMode, kind: EffectKind) -> None:
    """Contract 12: looking is free everywhere; `other` asks, and is refused while planning."""
    said = "allow" if kind in FREE else SAID[mode].get(kind, "ask")
    assert verdict(mode, Effect(kind), inside=True) == said
    outside = "ask" if (mode, kind) == ("accept-edits", "write") else said
    assert verdict(mode, Effect(kind), inside=False) == outside


@pytest.mark.parametrize(
    ("paths", "free"),
    [
        (("{root}/a", "{root}/b/c"), True),
        (("{root}/a", "{root}/../outside/a"), False),
        (("{root}/link/a",), False),
        (("a",), False),
        (("",), False),
        ((), False),
    ],
)
def test_an_edit_is_free_only_where_it_is_surely_inside(
    paths: tuple[str, ...], free: bool, shop: Workshop
) -> None:
    """Contract 12, `accept-edits`: a tool of somebody else's may say that it writes anywhere."""
    (shop.root / "link").symlink_to(shop.root.parent / "outside")
    real = tuple(path.format(root=shop.root) for path in paths)
    prepared = Prepared(Card("edit", "it"), Effect("write", real))
    assert _is_inside(PreparedCall("theirs", {}, prepared, shop.context())) is free


async def test_plan_mode_refuses_and_tells_the_model_why() -> None:
    """Contract 12: nothing that changes anything; nobody is asked, and the refusal names the mode."""
    async with open_rig(WRITE, text("here is my plan")) as rig:
        permission, nobody = guarded(rig, "plan"), person(YES)
        agent = await rig.agent()
        permission.set_approver("s1", nobody)
        await ask(agent)

        (result,) = of_type(agent, ToolResult)
        assert (result.outcome, text_of(result.content)) == ("denied", PLANNING)
        assert (nobody.asked, rig.worker.began) == ([], [])
        assert of_type(agent, PermissionDecided) == [
            PermissionDecided(1, 1, "c1", False, "mode", rule="mode plan")
        ]


async def test_a_mode_chosen_mid_turn_holds_from_the_next_call_on() -> None:
    """ACP, session modes: may be changed at any time; the call that asks is still the person's."""
    async with open_rig(WRITE, calls(("c2", '{"effect": "write"}')), text("ok")) as rig:
        permission = guarded(rig)

        async def planning() -> Decision:
            permission.set_mode("s1", "plan")
            return YES

        agent = await rig.agent()
        permission.set_approver("s1", Person(planning))
        await ask(agent)

        assert [(fact.allowed, fact.by) for fact in of_type(agent, PermissionDecided)] == [
            (True, "user"),
            (False, "mode"),
        ]
        assert (rig.worker.began, permission.mode("s1")) == (["c1"], "plan")


async def test_a_session_has_its_own_mode_until_another_is_chosen() -> None:
    """Contract 1: `session/mode` is a fact of one session; choosing what holds already is no news."""
    async with open_rig() as rig:
        permission = guarded(rig, "accept-edits")
        mine, theirs = await rig.agent("s1"), await rig.agent("s2")

        for mode in ("accept-edits", "full-auto", "full-auto"):
            permission.set_mode("s1", mode)

        assert of_type(mine, SessionMode) == [SessionMode("full-auto")]
        assert of_type(theirs, SessionMode) == []
        assert (permission.mode("s1"), permission.mode("s2")) == ("full-auto", "accept-edits")
        with pytest.raises(NotFound):
            permission.set_mode("gone", "plan")


@pytest.mark.parametrize("effect", ["none", "read"])
async def test_looking_is_neither_asked_nor_recorded(effect: str) -> None:
    """Contract 12: reading inside the roots is free."""
    async with open_rig(calls(("c1", f'{{"effect": "{effect}"}}')), text("ok")) as rig:
        permission, nobody = guarded(rig), person(NO)
        agent = await rig.agent()
        permission.set_approver("s1", nobody)
        await ask(agent)

        assert (nobody.asked, rig.worker.began) == ([], ["c1"])
        assert of_type(agent, PermissionDecided) == []


async def test_a_person_who_allows_a_call_lets_it_run() -> None:
    """ACP, tool calls, requesting permission: allow_once; asked, decided, then started."""
    async with open_rig(WRITE, text("ok")) as rig:
        permission, somebody = guarded(rig), person(YES)
        agent = await rig.agent()
        permission.set_approver("s1", somebody)
        await ask(agent)

        assert somebody.asked == [
            PermissionRequest("s1", "c1", Card("other", "Work it"), Effect("write"), FIVE),
        ]
        assert of_type(agent, ToolCall)[0].card == somebody.asked[0].card
        assert of_type(agent, PermissionAsked) == [
            PermissionAsked(1, 1, "c1", tuple(option.id for option in FIVE), "mode ask")
        ]
        assert of_type(agent, PermissionDecided) == [
            PermissionDecided(1, 1, "c1", True, "user", "allow_once"),
        ]
        order = ["tool/call", "permission/asked", "permission/decided", "tool/started", "tool/result"]
        assert types(agent.session.log)[6:11] == order


async def test_a_person_who_refuses_a_call_keeps_it_from_starting() -> None:
    """ACP, tool calls, requesting permission: reject_once; the model is told, the turn goes on."""
    async with open_rig(WRITE, text("then not")) as rig:
        permission = guarded(rig)
        agent = await rig.agent()
        permission.set_approver("s1", person(NO))
        await ask(agent)

        (result,) = of_type(agent, ToolResult)
        assert (result.outcome, result.error_code, text_of(result.content)) == ("denied", "DENIED", DENIED)
        assert result.is_error
        assert (rig.worker.began, of_type(agent, ToolStarted), ends(agent)) == ([], [], ["completed"])


async def test_a_refused_call_reaches_no_other_middleware() -> None:
    """Contract 2: permission stands outermost, also around those who came before it."""
    reached: list[str] = []

    async def early(value: PreparedCall, next: Next[PreparedCall, Awaitable[ToolOutcome]]) -> ToolOutcome:
        reached.append(value.ctx.call_id)
        return await next(value)

    async with open_rig(WRITE, text("ok")) as rig:
        rig.bus.around(EXECUTE, early)
        permission = guarded(rig)
        agent = await rig.agent()
        permission.set_approver("s1", person(NO))
        await ask(agent)

        assert (reached, ends(agent)) == ([], ["completed"])


@pytest.mark.parametrize(
    ("decision", "words"),
    [
        (Decision(False, "cancel"), CANCELLED),
        (Decision(False, "closed"), NOBODY),
    ],
)
async def test_no_answer_is_a_no_that_blames_nobody(decision: Decision, words: str) -> None:
    """Contract 12: only a clear yes allows; the model hears whether a person said it."""
    async with open_rig(WRITE, text("ok")) as rig:
        permission = guarded(rig)
        agent = await rig.agent()
        permission.set_approver("s1", person(decision))
        await ask(agent)

        assert (text_of(of_type(agent, ToolResult)[0].content), rig.worker.began) == (words, [])


async def test_where_nobody_can_be_asked_nothing_is_done() -> None:
    """Loop specification 6.50: fail-closed; the refusal is on record, no question is."""
    async with open_rig(WRITE, text("ok")) as rig:
        permission = guarded(rig)
        dispose = permission.set_approver("s1", person(YES))
        dispose()
        agent = await rig.agent()
        await ask(agent)

        assert rig.worker.began == []
        assert of_type(agent, PermissionAsked) == []
        assert of_type(agent, PermissionDecided) == [PermissionDecided(1, 1, "c1", False, "closed")]


@pytest.mark.parametrize("error", [RuntimeError("connection lost"), asyncio.CancelledError()])
async def test_a_question_that_fails_is_a_no(error: BaseException) -> None:
    """Loop specification 6.50; contract 6: a stray cancellation, too."""

    async def fails() -> Decision:
        raise error

    async with open_rig(WRITE, text("ok")) as rig:
        permission = guarded(rig)
        agent = await rig.agent()
        permission.set_approver("s1", Person(fails))
        await ask(agent)

        assert [(fact.allowed, fact.by) for fact in of_type(agent, PermissionDecided)] == [(False, "closed")]
        assert of_type(agent, ToolResult)[0].outcome == "denied"
        assert (rig.worker.began, ends(agent)) == ([], ["completed"])


async def test_a_cancelled_turn_takes_its_question_along() -> None:
    """ACP, prompt turn, cancellation: pending permission requests are answered cancelled."""

    async def thinks() -> Decision:
        agent.cancel()
        await anyio.sleep_forever()
        return YES

    async with open_rig(WRITE) as rig:
        permission = guarded(rig)
        agent = await rig.agent()
        permission.set_approver("s1", Person(thinks))
        await ask(agent)

        assert [(fact.allowed, fact.by) for fact in of_type(agent, PermissionDecided)] == [(False, "cancel")]
        assert (rig.worker.began, ends(agent)) == ([], ["aborted"])


async def test_a_yes_that_comes_after_the_cancel_is_none() -> None:
    """Contract 6: ask the token right before every effect."""

    async def late() -> Decision:
        agent.cancel()
        return YES

    async with open_rig(WRITE) as rig:
        permission = guarded(rig)
        agent = await rig.agent()
        permission.set_approver("s1", Person(late))
        await ask(agent)

        assert [(fact.allowed, fact.by) for fact in of_type(agent, PermissionDecided)] == [(False, "cancel")]
        assert (rig.worker.began, of_type(agent, ToolStarted)) == ([], [])


async def test_what_a_mode_allows_unasked_is_on_record() -> None:
    """Loop specification 6.50: an audit pair, or the mode's own word."""
    async with open_rig(WRITE, text("ok")) as rig:
        guarded(rig, "full-auto")
        agent = await rig.agent()
        await ask(agent)

        assert of_type(agent, PermissionDecided) == [
            PermissionDecided(1, 1, "c1", True, "mode", rule="mode full-auto")
        ]
        assert (of_type(agent, PermissionAsked), rig.worker.began) == ([], ["c1"])


@pytest.mark.parametrize("mode", get_args(PermissionMode))
async def test_a_rule_that_denies_beats_every_mode(mode: PermissionMode) -> None:
    """Contract 12: any matching deny wins; the model reads which rule it was."""
    async with open_rig(WRITE, text("ok")) as rig:
        permission, nobody = guarded(rig, mode, RuleSettings(effect="deny", tool="work")), person(YES)
        agent = await rig.agent()
        permission.set_approver("s1", nobody)
        await ask(agent)

        rule = 'deny tool "work"'
        assert of_type(agent, PermissionDecided) == [PermissionDecided(1, 1, "c1", False, "rule", rule=rule)]
        assert text_of(of_type(agent, ToolResult)[0].content) == FORBIDDEN.format(rule=rule)
        assert (nobody.asked, rig.worker.began) == ([], [])


@pytest.mark.parametrize("mode", get_args(PermissionMode))
async def test_a_rule_that_allows_frees_a_call_except_while_planning(mode: PermissionMode) -> None:
    """Contract 12: plan mode changes nothing, whatever is allowed."""
    async with open_rig(WRITE, text("ok")) as rig:
        guarded(rig, mode, RuleSettings(effect="allow", kind="write"))
        agent = await rig.agent()
        await ask(agent)

        by_rule = PermissionDecided(1, 1, "c1", True, "rule", rule='allow kind "write"')
        by_mode = PermissionDecided(1, 1, "c1", False, "mode", rule="mode plan")
        assert of_type(agent, PermissionDecided) == [by_mode if mode == "plan" else by_rule]
        assert rig.worker.began == ([] if mode == "plan" else ["c1"])


async def test_a_rule_that_asks_asks_even_for_a_look_and_in_full_auto() -> None:
    """Contract 12: asked and decided, and the question says which rule wanted it."""
    async with open_rig(calls(("c1", '{"effect": "read"}')), text("ok")) as rig:
        permission = guarded(rig, "full-auto", RuleSettings(effect="ask", tool="work"))
        agent = await rig.agent()
        permission.set_approver("s1", person(NO))
        await ask(agent)

        (asked,) = of_type(agent, PermissionAsked)
        (decided,) = of_type(agent, PermissionDecided)
        assert (asked.rule, decided.allowed, decided.by) == ('ask tool "work"', False, "user")
        assert rig.worker.began == []


async def test_a_session_asks_its_own_person() -> None:
    """Our promise: nobody answers for somebody else; an old disposer takes no later approver out."""
    async with open_rig(WRITE, text("ok"), WRITE, text("ok")) as rig:
        permission, mine, theirs = guarded(rig), person(YES), person(NO)
        dispose = permission.set_approver("s1", person(NO))
        permission.set_approver("s1", mine)
        permission.set_approver("s2", theirs)
        dispose()
        await ask(await rig.agent("s1"))
        await ask(await rig.agent("s2"))

        assert ([request.session_id for request in mine.asked], rig.worker.began) == (["s1"], ["c1"])
        assert [request.session_id for request in theirs.asked] == ["s2"]


async def test_a_session_that_has_gone_is_asked_nothing() -> None:
    """Our promise: no session, no record, no effect."""
    async with open_rig(WRITE, text("ok")) as rig:
        permission, somebody = guarded(rig), person(YES)
        agent = await rig.agent()
        permission.set_approver("s1", somebody)
        rig.sessions._by_id.clear()
        await ask(agent)

        assert (somebody.asked, rig.worker.began, of_type(agent, PermissionDecided)) == ([], [], [])
