"""Commands in the editor's terminals: shown there, ended there, and always released."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from acp_server.editor import terminals
from acp_server.editor.files import EditorFiles
from acp_server.editor.terminals import EditorCommands
from acp_server.editor.workspace import editor_workspace
from acp_server.wire.client import Client
from agent_loop import Command, CommandLost, CommandResult, Roots
from agent_loop.events.facts import Exit
from agent_loop.record import replace
from agent_loop.tools.bundled.run_command import RunCommand
from agent_loop.workspace.sandbox import Sandbox
from tests.doubles.services import SILENT, Refusal, Services
from tests.doubles.workshop import Workshop, said

WAIT_S = 5.0
MADE = {"terminalId": "term-1"}
WHOLE = ["terminal/create", "terminal/wait_for_exit", "terminal/output", "terminal/release"]
ENDED = {"output": "one\n", "truncated": False, "exitStatus": {"exitCode": 0, "signal": None}}


def editor(**answers: Callable[[Any], Any]) -> Services:
    """One whose command ends at once, unless it is said otherwise."""
    usual: dict[str, Callable[[Any], Any]] = {
        "terminal__create": lambda _: MADE,
        "terminal__wait_for_exit": lambda _: {"exitCode": 0},
        "terminal__output": lambda _: ENDED,
        "terminal__kill": lambda _: {},
        "terminal__release": lambda _: None,
    }
    return Services(**{**usual, **answers})


def refuses(_: Any) -> None:
    raise Refusal(-32603, "no terminals today")


def commands(services: Services, environ: dict[str, str] | None = None) -> EditorCommands:
    return EditorCommands(services.calls, "s1", Roots("/work"), environ=environ or {})


async def run(
    services: Services, *, timeout_s: float = WAIT_S, shown: list[str] | None = None
) -> CommandResult:
    command = Command("make test | tail", "/work", timeout_s, 1_000)
    told = [] if shown is None else shown
    return await commands(services).run(command, lambda *_: None, on_terminal=told.append)


async def test_a_command_runs_in_a_terminal_from_its_making_to_its_release() -> None:
    """ACP, terminals: command and args, never one string; scenario B70."""
    services = editor()
    shown: list[str] = []

    result = await run(services, shown=shown)

    assert result == CommandResult("one\n", 0, None, timed_out=False)
    assert services.methods == WHOLE
    assert services.asked[0][1] == {
        "sessionId": "s1",
        "command": "/bin/sh",
        "args": ["-c", "make test | tail"],
        "cwd": "/work",
        "env": [{"name": "PAGER", "value": "cat"}, {"name": "GIT_PAGER", "value": "cat"}],
        "outputByteLimit": 1_000,
    }
    assert {params["terminalId"] for _, params in services.asked[1:]} == {"term-1"}
    assert shown == ["term-1"]


async def test_the_terminal_is_shown_before_the_command_is_waited_for() -> None:
    """ACP, terminals: it must be in the tool call before it is released; its person wants to watch."""
    services = editor()
    at: list[int] = []
    command = Command("x", "/", WAIT_S, 10)

    await commands(services).run(
        command, lambda *_: None, on_terminal=lambda _: at.append(len(services.asked))
    )

    assert at == [1]


async def test_what_is_named_like_a_secret_is_empty_in_a_terminal() -> None:
    """Issue "Acting with consent": the environment is scrubbed; an editor's can only be overridden."""
    services = editor()

    await commands(services, {"OPENAI_API_KEY": "k", "HOME": "/home/me"}).run(
        Command("x", "/", WAIT_S, 10), lambda *_: None
    )

    env = {entry["name"]: entry["value"] for entry in services.asked[0][1]["env"]}
    assert env == {"OPENAI_API_KEY": "", "PAGER": "cat", "GIT_PAGER": "cat"}


@pytest.mark.parametrize(
    ("answer", "result"),
    [
        ({"output": "x", "exitStatus": {"exitCode": 3}}, CommandResult("x", 3, None, timed_out=False)),
        (
            {"output": "x", "exitStatus": {"exitCode": None, "signal": "SIGKILL\n"}},
            CommandResult("x", None, "SIGKILL", timed_out=False),
        ),
        (
            {"output": "\x1b[31mred\x1b[0m\a", "truncated": True, "exitStatus": None},
            CommandResult("red", None, None, timed_out=False, omitted_bytes=1),
        ),
        ({"output": 7, "exitStatus": "odd"}, CommandResult("", None, None, timed_out=False)),
        ("odd", CommandResult("", None, None, timed_out=False)),
    ],
)
async def test_how_it_ended_is_read_from_the_editors_answer(answer: Any, result: CommandResult) -> None:
    """ACP, terminals: exit status and output; control sequences never reach the model."""
    assert await run(editor(terminal__output=lambda _: answer)) == result


async def test_more_output_than_is_wanted_is_cut_here_too() -> None:
    """Our promise: bounded, whatever the editor makes of its limit."""
    result = await run(editor(terminal__output=lambda _: {"output": "x" * 5_000}))

    assert len(result.output) < 1_100
    assert result.omitted_bytes == 4_000


async def test_a_deadline_kills_and_keeps_what_was_printed() -> None:
    """ACP, terminals: the recipe for timeouts."""
    services = editor(terminal__wait_for_exit=SILENT)

    result = await run(services, timeout_s=0.01)

    assert (result.timed_out, result.output) == (True, "one\n")
    assert services.methods == [
        "terminal/create",
        "terminal/wait_for_exit",
        "$/cancel_request",
        "terminal/kill",
        "terminal/output",
        "terminal/kill",
        "terminal/release",
    ]


@asynccontextmanager
async def running(services: Services) -> AsyncIterator[anyio.abc.TaskGroup]:
    """A command that the editor was asked to run."""
    with anyio.fail_after(WAIT_S):
        async with anyio.create_task_group() as group:
            group.start_soon(run, services)
            while not services.asked or services.methods[-1] in ("terminal/output", "terminal/release"):
                await anyio.lowlevel.checkpoint()
            yield group


async def test_a_cancel_kills_and_releases() -> None:
    """Our promise: Stop is trusted in the editor's terminals, too."""
    services = editor(terminal__wait_for_exit=SILENT)

    async with running(services) as group:
        while services.methods[-1] != "terminal/wait_for_exit":
            await anyio.lowlevel.checkpoint()
        group.cancel_scope.cancel()

    assert services.methods[2:] == ["$/cancel_request", "terminal/kill", "terminal/release"]


async def test_a_terminal_that_is_made_after_the_cancel_is_released_all_the_same() -> None:
    """Our promise: none is forgotten; a bounded wait is what that takes."""
    services = editor(terminal__create=SILENT)

    async with running(services) as group:
        group.cancel_scope.cancel()
        await anyio.lowlevel.cancel_shielded_checkpoint()
        services.calls.resolve({"id": 1, "result": MADE})

    assert services.methods == ["terminal/create", "terminal/kill", "terminal/release"]


async def test_a_cancel_waits_for_no_terminal_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Our promise: an editor that never answers holds up nothing but a moment."""
    monkeypatch.setattr(terminals, "STOPPING_S", 0.01)
    services = editor(terminal__create=SILENT)

    async with running(services) as group:
        group.cancel_scope.cancel()

    assert services.methods == ["terminal/create", "$/cancel_request"]


@pytest.mark.parametrize("answer", [refuses, lambda _: {}, lambda _: {"terminalId": 7}, lambda _: None])
async def test_no_terminal_is_a_command_that_was_not_started(answer: Callable[[Any], Any]) -> None:
    """Issue "Acting with consent": a client failure shows in the card."""
    services = editor(terminal__create=answer)

    with pytest.raises(OSError, match="the editor") as caught:
        await run(services)

    assert not isinstance(caught.value, CommandLost)
    assert services.methods == ["terminal/create"]


@pytest.mark.parametrize("method", ["terminal/wait_for_exit", "terminal/output"])
async def test_a_failure_on_the_way_releases_the_terminal(method: str) -> None:
    """ACP, terminals: release is a must, also after an error."""
    services = editor(**{method.replace("/", "__"): refuses})

    with pytest.raises(CommandLost, match=f"{method} with: no terminals today; how the command ended"):
        await run(services)

    assert services.methods[-1] == "terminal/release"


async def test_a_release_that_fails_spoils_nothing() -> None:
    """Our promise: what the command printed is what counts."""
    assert (await run(editor(terminal__release=refuses))).exit_code == 0


async def test_the_tool_tells_what_came_of_it(tmp_path: Path) -> None:
    """The same through run_command: exit, output, and words for a command that was lost."""
    workshop, tool = Workshop(tmp_path), RunCommand()
    services = editor(terminal__output=lambda _: {"output": "no\n", "exitStatus": {"exitCode": 2}})
    ctx = workshop.context()
    ctx = replace(ctx, workspace=replace(ctx.workspace, commands=commands(services)))
    prepared = await tool.prepare(tool.arguments(command="make"), ctx)

    outcome = await tool.run(prepared, ctx)
    services.answers["terminal/output"] = refuses
    lost = await tool.run(prepared, ctx)

    assert (said(outcome), outcome.exit) == ("no\n[exit code: 2]", Exit(2, None, timed_out=False))
    assert workshop.terminals == ["term-1", "term-1"]
    assert (lost.is_error, lost.error_code) == (True, "LOST")


def test_a_sandbox_is_not_given_up_for_a_terminal(tmp_path: Path) -> None:
    """Our promise: what confines commands confines all of them; the editor would run them outside."""
    here = Workshop(tmp_path).context().workspace
    confined = replace(here, sandbox=Sandbox("read-only"))
    calls, client = editor().calls, Client(reads=True, terminals=True)

    assert isinstance(editor_workspace(calls, "s1", here, client).commands, EditorCommands)
    behind = editor_workspace(calls, "s1", confined, client)
    assert behind.commands is confined.commands
    assert isinstance(behind.files, EditorFiles)
    assert editor_workspace(calls, "s1", here, Client(terminals=True)).files is here.files
