"""The CommandRunner seam behind an editor: each command in a terminal its person watches.

Rules.
1. Whatever happens, a terminal that was made is released: after success, a deadline, a cancel, a failure.
2. Stop is not waited for: asking the editor goes on under a shield whose end is near.
3. What is kept of the output is bounded and without control sequences, as it is of commands that run here.

Source: https://agentclientprotocol.com/protocol/v1/terminals
"""

import logging
import os
from collections.abc import Callable, Mapping
from typing import Any, Final

import anyio
import anyio.lowlevel

from acp_server.editor.ask import EditorFailed, ask_editor
from acp_server.rpc.calls import Calls
from agent_loop import (
    PLAIN_PAGERS,
    BoundedOutput,
    Command,
    CommandLost,
    CommandResult,
    Roots,
    is_secret,
    one_line,
)

log = logging.getLogger(__name__)

CREATE_S: Final = 10.0
ANSWER_S: Final = 5.0
STOPPING_S: Final = 1.0
"""How long a cancelled command still waits for a terminal that is being made, so that it can be released."""

_SIGNAL_LIMIT: Final = 40


class EditorCommands:
    """Runs commands in the editor's terminals.

    Args:
        environ: Ours. The editor gave it to us, so its secrets are the editor's, and are taken from commands.
    """

    def __init__(
        self, calls: Calls, session_id: str, roots: Roots, *, environ: Mapping[str, str] = os.environ
    ) -> None:
        self._calls = calls
        self._session_id = session_id
        self._roots = roots
        self._environ = environ

    async def run(
        self,
        command: Command,
        on_output: Callable[[str, bool], None],
        *,
        on_terminal: Callable[[str], None] = lambda _: None,
    ) -> CommandResult:
        """Run to the end; `on_output` hears nothing, the terminal shows it.

        Raises:
            OSError: The editor made no terminal.
            CommandLost: It made one, and does not say how the command ended.
        """
        made: list[str] = []
        ended = False
        try:
            await self._create(command, made)
            on_terminal(made[0])
            try:
                ended = await self._ends_in_time(made[0], command.timeout_s)
                if not ended:
                    await self._ask("terminal/kill", made[0])
                output = await self._ask("terminal/output", made[0])
            except OSError as error:
                raise CommandLost(f"{error}; how the command ended is not known") from error
            return _result(output, command.limit_bytes, timed_out=not ended)
        finally:
            if made:
                await self._release(made[0], running=not ended)

    async def _create(self, command: Command, made: list[str]) -> None:
        """Raises OSError; a cancel waits STOPPING_S for the editor's answer."""
        params = {
            "sessionId": self._session_id,
            "command": "/bin/sh",
            "args": ["-c", command.shell],
            "cwd": self._roots.spelled(command.cwd),
            "env": self._env(),
            "outputByteLimit": command.limit_bytes,
        }
        shield = anyio.CancelScope(shield=True)
        failure: OSError | None = None

        async def hurry() -> None:
            try:
                await anyio.sleep_forever()
            finally:
                shield.deadline = min(shield.deadline, anyio.current_time() + STOPPING_S)

        async with anyio.create_task_group() as group:
            group.start_soon(hurry)
            with shield:
                try:
                    answer = await ask_editor(self._calls, "terminal/create", params, CREATE_S)
                    made.extend(id for id in (answer.get("terminalId"),) if isinstance(id, str))
                except OSError as error:
                    failure = error
            group.cancel_scope.cancel()
        await anyio.lowlevel.checkpoint_if_cancelled()
        if not made:
            raise failure or EditorFailed("the editor made a terminal without an id")

    def _env(self) -> list[dict[str, str]]:
        """What a pager would wait for forever, and, emptied, what is named like a secret."""
        env = {**{name: "" for name in self._environ if is_secret(name)}, **PLAIN_PAGERS}
        return [{"name": name, "value": value} for name, value in env.items()]

    async def _ends_in_time(self, terminal: str, timeout_s: float) -> bool:
        params = {"sessionId": self._session_id, "terminalId": terminal}
        with anyio.move_on_after(timeout_s) as deadline:
            await ask_editor(self._calls, "terminal/wait_for_exit", params, float("inf"))
        return not deadline.cancelled_caught

    async def _ask(self, method: str, terminal: str) -> dict[str, Any]:
        params = {"sessionId": self._session_id, "terminalId": terminal}
        return await ask_editor(self._calls, method, params, ANSWER_S)

    async def _release(self, terminal: str, *, running: bool) -> None:
        with anyio.CancelScope(shield=True):
            for method in ("terminal/kill", "terminal/release") if running else ("terminal/release",):
                with anyio.move_on_after(STOPPING_S):
                    await self._quietly(method, terminal)

    async def _quietly(self, method: str, terminal: str) -> None:
        try:
            await self._ask(method, terminal)
        except OSError as error:
            log.warning("%s of %s: %s", method, terminal, error)


def _result(answer: dict[str, Any], limit_bytes: int, *, timed_out: bool) -> CommandResult:
    said = answer.get("output")
    output = BoundedOutput(limit_bytes)
    output.feed(said.encode("utf-8", "replace") if isinstance(said, str) else b"")
    text, omitted_bytes = output.seen(final=True)
    if answer.get("truncated") is True:
        omitted_bytes = max(omitted_bytes, 1)

    status = answer.get("exitStatus")
    status = status if isinstance(status, dict) else {}
    code, signal = status.get("exitCode"), status.get("signal")
    return CommandResult(
        output=text,
        exit_code=code if type(code) is int and signal is None else None,
        signal=one_line(str(signal))[:_SIGNAL_LIMIT] if signal is not None else None,
        timed_out=timed_out,
        omitted_bytes=omitted_bytes,
    )
