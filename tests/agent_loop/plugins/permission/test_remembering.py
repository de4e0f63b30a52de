"""Answers that are remembered: for as long as they say, for what they say, and on record."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from agent_loop.config.settings import RuleSettings
from agent_loop.events.facts import PermissionAsked, PermissionDecided, PluginFact
from agent_loop.events.moments import Warned
from agent_loop.plugins.permission.approver import Decision, PermissionRequest
from agent_loop.plugins.permission.grant_book import FILE_NAME, GrantBook
from agent_loop.plugins.permission.plugin import Permission
from agent_loop.plugins.scope import PluginScope
from tests.doubles.loop_rig import Rig, ask, of_type, open_rig
from tests.doubles.memory_store import MemoryStore
from tests.doubles.model import Entry, calls, text

WRITE = calls(("c1", '{"effect": "write"}'))
AGAIN = calls(("c2", '{"effect": "write"}'))
OTHER = calls(("c3", '{"effect": "delete"}'))


class Chooser:
    """Chooses the options it is told, then rejects; `meanwhile` happens while it thinks."""

    def __init__(self, *choices: str, meanwhile: Callable[[], object] = bool) -> None:
        self.choices = list(choices)
        self.meanwhile = meanwhile
        self.asked: list[str] = []
        self.offered: list[tuple[str, ...]] = []

    async def ask(self, request: PermissionRequest) -> Decision:
        self.meanwhile()
        self.asked.append(request.call_id)
        self.offered.append(tuple(option.id for option in request.options))
        choice = self.choices.pop(0) if self.choices else "reject_once"
        (option,) = [option for option in request.options if option.id == choice]
        return Decision(option.allows, "user", option.id)


def guard(rig: Rig, state: Path, *rules: RuleSettings) -> Permission:
    scope = PluginScope(
        bus=rig.bus, agents=rig.agents, sessions=rig.sessions, tools=rig.tools, prompt=rig.prompt
    )
    return Permission(scope, "ask", rules, state)


@asynccontextmanager
async def asking(state: Path, chooser: Chooser, *entries: Entry, session: str = "s1") -> AsyncIterator[Rig]:
    """A rig whose one session asks the chooser, after one prompt."""
    async with open_rig(*entries) as rig:
        guard(rig, state).set_approver(session, chooser)
        await ask(await rig.agent(session))
        yield rig


def decided(rig: Rig, session: str = "s1") -> list[tuple[bool, str, str | None]]:
    live = rig.sessions.get(session)
    assert live is not None
    return [(fact.allowed, fact.by, fact.rule) for fact in live.log if isinstance(fact, PermissionDecided)]


async def test_an_answer_for_once_is_asked_again(tmp_path: Path) -> None:
    """fountain PR999, kimi-cli#1542: each answer means what it says."""
    chooser = Chooser("allow_once", "allow_once")
    async with asking(tmp_path, chooser, WRITE, AGAIN, text("ok")) as rig:
        assert (chooser.asked, rig.worker.began) == (["c1", "c2"], ["c1", "c2"])
        assert GrantBook(tmp_path).all() == {}


async def test_an_answer_for_the_session_holds_in_it_and_for_the_same_only(tmp_path: Path) -> None:
    """fountain PR999: the same call in scope is not asked again; another one is."""
    chooser = Chooser("allow_session")
    async with asking(tmp_path, chooser, WRITE, AGAIN, OTHER, text("ok")) as rig:
        assert chooser.asked == ["c1", "c3"]
        assert rig.worker.began == ["c1", "c2"]
        assert decided(rig)[1] == (True, "rule", "allowed writing the tool work, for this session")
        assert GrantBook(tmp_path).all() == {}


async def test_an_answer_for_the_session_outlives_the_process(tmp_path: Path) -> None:
    """fountain PR999: the scope survives what it claims: the session, here loaded by another process."""
    store, chooser = MemoryStore(), Chooser("allow_session")
    async with open_rig(WRITE, text("ok"), store=store) as rig:
        guard(rig, tmp_path).set_approver("s1", chooser)
        await ask(await rig.agent())

    async with open_rig(AGAIN, text("ok"), WRITE, text("ok"), store=store) as rig:
        permission = guard(rig, tmp_path)
        for session in ("s1", "s2"):
            permission.set_approver(session, chooser)
        await ask((await rig.resume("s1")).agent)
        await ask(await rig.agent("s2"))

        assert (chooser.asked, rig.worker.began) == (["c1", "c1"], ["c2"])


async def test_an_answer_for_another_session_holds_not(tmp_path: Path) -> None:
    """Our promise: a fork begins with another's facts, and without its answers."""
    chooser = Chooser()
    foreign = {"session": "parent", "grant": {"id": "a", "effect": "allow", "createdAt": 1, "kind": "write"}}
    async with open_rig(WRITE, text("ok")) as rig:
        guard(rig, tmp_path).set_approver("s1", chooser)
        agent = await rig.agent()
        agent.session.log.append(PluginFact("permission", "grant", foreign))
        await ask(agent)

        assert (chooser.asked, rig.worker.began) == (["c1"], [])


async def test_an_answer_for_the_project_holds_in_its_next_sessions(tmp_path: Path) -> None:
    """fountain PR999: kept in the state directory, by the project's real path."""
    chooser = Chooser("allow_project")
    async with asking(tmp_path, chooser, WRITE, text("ok")):
        pass
    (grant,) = GrantBook(tmp_path).of("/")

    async with asking(tmp_path, chooser, AGAIN, text("ok"), session="s2") as rig:
        assert (chooser.asked, rig.worker.began) == (["c1"], ["c2"])
        assert decided(rig, "s2") == [(True, "rule", f"{grant.text}, always in this project")]


async def test_a_rejection_for_the_project_is_one_of_a_rule(tmp_path: Path) -> None:
    """ACP, tool calls: reject_always; nothing that allows beats it."""
    chooser = Chooser("reject_project")
    async with open_rig(WRITE, AGAIN, text("ok")) as rig:
        guard(rig, tmp_path, RuleSettings(effect="allow", kind="delete")).set_approver("s1", chooser)
        await ask(await rig.agent())

        assert (chooser.asked, rig.worker.began) == (["c1"], [])
        assert decided(rig) == [
            (False, "user", None),
            (False, "rule", "rejected writing the tool work, always in this project"),
        ]


async def test_who_wants_to_be_asked_each_time_is_offered_no_more(tmp_path: Path) -> None:
    """fountain PR999: an "always" that would be asked again is not offered."""
    chooser = Chooser("allow_once")
    async with open_rig(WRITE, text("ok")) as rig:
        guard(rig, tmp_path, RuleSettings(effect="ask", tool="work")).set_approver("s1", chooser)
        await ask(await rig.agent())

        assert chooser.offered == [("allow_once", "reject_once")]


async def test_a_rule_that_asks_stands_above_an_answer_that_allows(tmp_path: Path) -> None:
    """Our promise: a rule added later is heard."""
    chooser = Chooser("allow_project", "reject_once")
    async with asking(tmp_path, chooser, WRITE, text("ok")):
        pass
    async with open_rig(AGAIN, text("ok")) as rig:
        guard(rig, tmp_path, RuleSettings(effect="ask", kind="write")).set_approver("s1", chooser)
        agent = await rig.agent()
        await ask(agent)

        assert [fact.rule for fact in of_type(agent, PermissionAsked)] == ['ask kind "write"']
        assert rig.worker.began == []


async def test_answers_nobody_can_read_allow_nothing(tmp_path: Path) -> None:
    """Our promise: it fails closed; one of them might reject the call, so it asks, in words."""
    (tmp_path / FILE_NAME).write_text("{")
    chooser = Chooser("allow_once")
    async with asking(tmp_path, chooser, WRITE, text("ok")) as rig:
        live = rig.sessions.get("s1")
        assert live is not None
        (asked,) = [fact for fact in live.log if isinstance(fact, PermissionAsked)]
        assert asked.rule == f"{tmp_path}/{FILE_NAME} holds no permissions this version can read; " + (
            "mend it or take it away."
        )
        assert (chooser.offered, rig.worker.began) == ([("allow_once", "reject_once")], ["c1"])


async def test_a_rule_that_denies_needs_no_remembered_answers(tmp_path: Path) -> None:
    """Contract 12: any matching deny wins; what cannot be read changes nothing about it."""
    (tmp_path / FILE_NAME).write_text("{")
    chooser = Chooser("allow_once")
    async with open_rig(WRITE, text("ok")) as rig:
        guard(rig, tmp_path, RuleSettings(effect="deny", tool="work")).set_approver("s1", chooser)
        await ask(await rig.agent())

        assert (chooser.asked, rig.worker.began) == ([], [])


async def test_an_answer_that_cannot_be_kept_holds_this_once_and_the_person_hears(tmp_path: Path) -> None:
    """Our promise: nothing is remembered in secret, nor forgotten in secret."""
    state = tmp_path / "state"
    chooser = Chooser("allow_project", meanwhile=state.touch)
    async with open_rig(WRITE, text("ok")) as rig:
        heard = rig.heard(Warned)
        guard(rig, state).set_approver("s1", chooser)
        await ask(await rig.agent())

        assert rig.worker.began == ["c1"]
        assert heard == [
            Warned(
                "s1",
                "Your answer holds this once, it could not be remembered: "
                f"{state}/{FILE_NAME} cannot be used: File exists.",
            )
        ]
