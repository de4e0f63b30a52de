"""What an editor is shown of a command while it runs: text, a terminal it draws, or one of its own."""

from pathlib import Path
from typing import Any

from acp_server.bridge.command_cards import CommandCards
from agent_loop import Card, CardCode, CardOutput, Exit, ToolCall, ToolOutput, ToolResult, ToolTerminal
from agent_loop.messages import Text
from tests.doubles.memory_editor import connected
from tests.doubles.memory_model import MemoryModel, calls, says

SHELL = Card("execute", "make …", body=(CardCode("make\nmake test", "sh"),), terminal="/w")
CALL = ToolCall(1, 1, "c1", "run_command", "{}", SHELL)


def output(text: str) -> ToolOutput:
    return ToolOutput("s", 1, 1, "c1", text, truncated=False)


def result(text: str) -> ToolResult:
    card = SHELL.with_status("done", (*SHELL.body, CardOutput(text)))
    how = Exit(0, None, timed_out=False)
    return ToolResult(1, 1, "c1", (Text(text),), False, "ran", exit=how, card=card)


def data(updates: list[dict[str, Any]]) -> list[str]:
    return [update["_meta"]["terminal_output"]["data"] for update in updates]


def test_a_drawn_terminal_is_told_what_is_new() -> None:
    """Our promise: each byte once, while it runs and at its end."""
    cards = CommandCards(draws=True)
    cards.updates(CALL)

    grown = [output(text) for text in ("one\n", "one\ntwo\n", "one\ntwo\n")]
    told = [cards.output(moment) for moment in grown]
    *_, last = cards.updates(result("one\ntwo\nthree\n"))

    assert [data(updates) for updates in told] == [["one\n"], ["two\n"], []]
    assert data([last]) == ["three\n"]
    assert last["_meta"]["terminal_exit"] == {"terminal_id": "c1", "exit_code": 0}


def test_a_drawn_terminal_goes_on_where_the_middle_is_left_out() -> None:
    """Our promise: a terminal cannot be told to forget; the rest follows when all is known."""
    cards = CommandCards(draws=True)
    cards.updates(CALL)
    cards.output(output("head\nmiddle\n"))

    assert cards.output(output("head\n[… 7 bytes left out …]\ntail\n")) == []

    assert data(cards.updates(result("head\n[… 7 bytes left out …]\ntail\n"))) == [
        "[… 7 bytes left out …]\ntail\n"
    ]


def test_an_editor_that_draws_none_is_told_all_so_far() -> None:
    """ACP, tool calls: content replaces content."""
    cards = CommandCards(draws=False)
    cards.updates(CALL)

    [told] = cards.output(output("one\ntwo\n"))

    assert "one\ntwo\n" in told["content"][0]["content"]["text"]


def test_the_editors_own_terminal_stands_below_the_command() -> None:
    """ACP, terminals: it stays in the card when the call is over; what was printed is not shown twice."""
    cards = CommandCards(draws=True)
    cards.updates(CALL)

    [shown] = cards.terminal(ToolTerminal("s", 1, 1, "c1", "term-1"))
    [ended] = cards.updates(result("one\n"))

    assert [item["type"] for item in shown["content"]] == ["content", "terminal"]
    assert ended["content"] == shown["content"]
    assert ended["content"][1]["terminalId"] == "term-1"
    assert "_meta" not in ended


def test_a_terminal_of_no_open_command_is_not_shown() -> None:
    """Our promise: nothing of a turn is shown behind its end."""
    cards = CommandCards(draws=True)
    cards.updates(CALL)
    cards.clear()

    assert cards.terminal(ToolTerminal("s", 1, 1, "c1", "term-1")) == []
    assert "content" in cards.output(output("late"))[0]


def test_what_failed_before_it_printed_is_told_in_words() -> None:
    """Our promise: the editor's terminal makes room for why."""
    cards = CommandCards(draws=False)
    cards.updates(CALL)
    cards.terminal(ToolTerminal("s", 1, 1, "c1", "term-1"))
    failed = ToolResult(
        1, 1, "c1", (Text("lost"),), True, "ran", card=SHELL.with_status("failed", (CardCode("lost"),))
    )

    [ended] = cards.updates(failed)

    assert "lost" in ended["content"][0]["content"]["text"]


async def test_what_an_editor_can_do_is_settled_when_a_session_opens(tmp_path: Path) -> None:
    """Spec loop 5.8: a later initialize changes only sessions opened afterwards."""
    run = calls(("c1", "run_command", {"command": "echo one"}))
    model = MemoryModel(run, says("Done."))
    async with connected(tmp_path, model, flags={"permission_mode": "full-auto"}, initialize=False) as editor:
        draws = {"_meta": {"terminal_output": True}}
        await editor.result(editor.send("initialize", protocolVersion=1, clientCapabilities=draws))
        session = await editor.new_session()
        await editor.result(editor.send("initialize", protocolVersion=1, clientCapabilities={}))

        await editor.result(editor.prompt(session))
        before = len(editor.updates())
        await editor.result(editor.load(session))

        told = [update for update in editor.updates() if "_meta" in update]
        assert data(told[1:2]) == ["one\n"]
        assert [update["_meta"] for update in editor.updates()[before:] if "_meta" in update] == [
            update["_meta"] for update in told[:2]
        ]


async def test_a_terminal_of_nobodys_turn_is_not_shown(tmp_path: Path) -> None:
    """Contracts 4: the gate is the slot's turn."""
    async with connected(tmp_path, MemoryModel()) as editor:
        session = await editor.new_session()

        for agent in (session, "nobody"):
            editor.harness.bus.emit(ToolTerminal(agent, 1, 1, "c1", "term-1"))

        assert editor.updates() == []


async def test_a_session_has_the_editor_behind_it(tmp_path: Path) -> None:
    """Issue "Acting with consent": whatever is offered is used, from the first session on."""
    model = MemoryModel(
        calls(("c1", "read", {"path": "a.txt"}), ("c2", "run_command", {"command": "make"})), says("Done.")
    )
    answers: dict[str, Any] = {
        "fs/read_text_file": {"content": "unsaved"},
        "terminal/create": {"terminalId": "term-1"},
        "terminal/wait_for_exit": {"exitCode": 0},
        "terminal/output": {"output": "made\n", "exitStatus": {"exitCode": 0}},
        "terminal/release": {},
    }
    offers = {"fs": {"readTextFile": True}, "terminal": True}
    async with connected(tmp_path, model, flags={"permission_mode": "full-auto"}, initialize=False) as editor:
        await editor.result(editor.send("initialize", protocolVersion=1, clientCapabilities=offers))
        prompt = editor.prompt(await editor.new_session())
        for number, (method, answer) in enumerate(answers.items(), 1):
            request = await editor.asked(number)
            assert request["method"] == method
            editor.say(id=request["id"], result=answer)
        await editor.result(prompt)

        assert [str(block) for block in model.requests[1].messages[-1].content if "made" in str(block)]
        shown = await editor.update(toolCallId="c2", content=[{"type": "terminal", "terminalId": "term-1"}])
        assert "status" not in shown
