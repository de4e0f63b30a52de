"""The CommandRunner seam on this machine: a fresh POSIX shell for each command, ended with its call.

Rules.
1. Nothing is awaited between starting the shell and the `try` that ends its group.
2. However a call ends, nobody of its group is left: not after a deadline, a cancel or a bug, and not
   when the shell left somebody in the background. Asking (SIGTERM), waiting and killing run under a
   shield whose end `Children.kill_grace_s` and `KILL_WAIT_S` set.
3. Output is read until the end, also while the group is being ended: a full pipe would keep it alive.
4. The end of the output is no sign of the shell's end, nor the other way round; both are looked for.
"""

import fcntl
import os
import re
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import anyio
from anyio.lowlevel import checkpoint

from agent_loop.workspace.children import Children, Group
from agent_loop.workspace.commands import Command, CommandResult
from agent_loop.workspace.output import BoundedOutput
from agent_loop.workspace.roots import Roots
from agent_loop.workspace.spill import SPILL_LIMIT_BYTES, Spill

if TYPE_CHECKING:
    from agent_loop.workspace.sandbox import Sandbox

KILL_WAIT_S = 1.0
LAST_OUTPUT_WAIT_S = 0.2
TELL_EVERY_S = 0.1
TELL_AFTER_S = 0.5
_READ_BYTES = 256 * 1024
# A flood then wakes us once for a megabyte, not for every 64 KiB; where it cannot be had, it is only slower.
_PIPE_BYTES = 1024 * 1024
_READ_AT_ONCE_BYTES = 1024 * 1024
_SHORTEST_PAUSE_S = 0.001
_LONGEST_PAUSE_S = 0.05

PLAIN_PAGERS: Final = {"PAGER": "cat", "GIT_PAGER": "cat"}
PLAIN_OUTPUT: Final = {"NO_COLOR": "1", "TERM": "dumb", **PLAIN_PAGERS}
# Git refuses to run when the count of its settings names keys that were taken away, so those go together.
_SECRET = re.compile(
    "KEY(?!RING|BOARD)|SECRET|TOKEN|PASSWORD|CREDENTIAL|^GIT_CONFIG_(COUNT$|VALUE_)", re.IGNORECASE
)

OnOutput = Callable[[str, bool], None]


class LocalCommands:
    """Runs commands as the user who runs us."""

    def __init__(
        self,
        children: Children,
        spill_folder: str,
        *,
        environ: Mapping[str, str] = os.environ,
        spill_limit_bytes: int = SPILL_LIMIT_BYTES,
        roots: Roots | None = None,
        sandbox: "Sandbox | None" = None,
    ) -> None:
        """Make a runner.

        Args:
            children: Where its groups are known, so that a hard exit reaches them.
            spill_folder: Made, for its owner alone, when the first output is too long to keep in memory.
            roots: Where a sandboxed command may write.
            sandbox: What confines commands; None for nothing. It must have been seen to work.
            environ: What commands inherit, once its secrets are taken out; looked at for each command.
        """
        self._children = children
        self._spill_folder = spill_folder
        self._environ = environ
        self._spill_limit_bytes = spill_limit_bytes
        self._roots = () if roots is None else roots.all
        self._sandbox = sandbox

    async def run(
        self, command: Command, on_output: OnOutput, *, on_terminal: Callable[[str], None] = lambda _: None
    ) -> CommandResult:
        """Run to the end, as the seam says."""
        await checkpoint()
        shell: tuple[str, ...] = ("/bin/sh", "-c", command.shell)
        if self._sandbox is not None:
            shell = (*self._sandbox.argv(self._roots, command.cwd), *shell)
        call = _Call(
            self._children,
            shell,
            command,
            scrubbed(self._environ),
            Spill(self._spill_folder, self._spill_limit_bytes),
            on_output,
        )

        try:
            return await call.run()
        except BaseException:
            # Cancelled, or `on_output` raised: nobody will learn where the rest of the output is.
            with anyio.CancelScope(shield=True):
                await call.spill.discard()
            raise
        finally:
            call.close()


def scrubbed(environ: Mapping[str, str]) -> dict[str, str]:
    """`environ` without whatever is named like a secret, and asking for plain output."""
    return {name: value for name, value in environ.items() if not is_secret(name)} | PLAIN_OUTPUT


def is_secret(variable: str) -> bool:
    """Whether an environment variable is named like something a command has no business to know."""
    return bool(_SECRET.search(variable))


class _Call:
    """One running command."""

    def __init__(
        self,
        children: Children,
        argv: Sequence[str],
        command: Command,
        env: Mapping[str, str],
        spill: Spill,
        on_output: OnOutput,
    ) -> None:
        self.spill = spill
        self._children = children
        self._timeout_s = command.timeout_s
        self._output = BoundedOutput(command.limit_bytes)
        self._output_ended = False
        self._on_output = on_output
        self._told_bytes = 0
        # A command this short is told by its result alone; live news of it would only be noise.
        self._tell_at = anyio.current_time() + TELL_AFTER_S
        self._pipe, writing = os.pipe()

        try:
            os.set_blocking(self._pipe, False)
            _widen(writing)
            self._group: Group = children.start(argv, cwd=command.cwd, env=env, output=writing)
        except BaseException:
            os.close(self._pipe)
            raise
        finally:
            os.close(writing)

    async def run(self) -> CommandResult:
        try:
            ended = await self._follow(self._group.ended, _after(self._timeout_s), tell=True)
            if ended:
                await self._follow(lambda: self._output_ended, _after(LAST_OUTPUT_WAIT_S), tell=True)
        finally:
            with anyio.CancelScope(shield=True):
                await self._end_group()

        return await self._result(timed_out=not ended)

    def close(self) -> None:
        self._children.release(self._group)
        os.close(self._pipe)

    async def _end_group(self) -> None:
        """End whoever is left: ask, wait, insist."""
        began = anyio.current_time()
        self._group.signal(signal.SIGTERM)
        gone = await self._follow(
            self._group.gone, lambda: anyio.current_time() >= began + self._children.kill_grace_s
        )
        if not gone:
            self._group.signal(signal.SIGKILL)
            await self._follow(self._group.gone, _after(KILL_WAIT_S))

        # What they said last. Not to its end: whoever left for a session of its own may hold the pipe.
        await self._read()

    async def _follow(
        self, until: Callable[[], bool], give_up: Callable[[], bool], *, tell: bool = False
    ) -> bool:
        """Read output until `until()` holds; false when `give_up()` held first."""
        pause_s = _SHORTEST_PAUSE_S

        while not until():
            if give_up():
                return False

            if self._output_ended:
                await anyio.sleep(pause_s)
                pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
            else:
                with anyio.move_on_after(_LONGEST_PAUSE_S):
                    await anyio.wait_readable(self._pipe)
                await self._read()

            if tell:
                self._tell()

        return True

    async def _read(self) -> None:
        """Take what is in the pipe now, bounded so that a flood leaves others their turn."""
        parts = []
        room = _READ_AT_ONCE_BYTES

        while room > 0 and not self._output_ended:
            try:
                part = os.read(self._pipe, _READ_BYTES)
            except BlockingIOError:
                break

            self._output_ended = not part
            parts.append(part)
            room -= len(part)

        if self.spill.started:
            await self.spill.add(*parts)
        elif not self._output.fits(sum(map(len, parts))):
            await self.spill.add(self._output.kept(), *parts)

        for part in parts:
            self._output.feed(part)

    def _tell(self) -> None:
        now = anyio.current_time()
        if self._output.total_bytes == self._told_bytes or now < self._tell_at:
            return

        self._told_bytes = self._output.total_bytes
        self._tell_at = now + TELL_EVERY_S
        text, omitted_bytes = self._output.seen(final=False)
        self._on_output(text, omitted_bytes > 0)

    async def _result(self, *, timed_out: bool) -> CommandResult:
        text, omitted_bytes = self._output.seen(final=True)
        if omitted_bytes and not self.spill.started:
            # Bytes that are no text take more room as text than they did.
            await self.spill.add(self._output.kept())
        await self.spill.flush()

        code = self._group.exit_code
        return CommandResult(
            output=text,
            exit_code=code if code is not None and code >= 0 else None,
            signal=_signal_name(code),
            timed_out=timed_out,
            omitted_bytes=omitted_bytes,
            spill_path=self.spill.path,
        )


def _widen(pipe: int) -> None:
    size = getattr(fcntl, "F_SETPIPE_SZ", None)
    if size is not None:
        with suppress(OSError):
            fcntl.fcntl(pipe, size, _PIPE_BYTES)


def _after(seconds: float) -> Callable[[], bool]:
    deadline = anyio.current_time() + seconds
    return lambda: anyio.current_time() >= deadline


def _signal_name(code: int | None) -> str | None:
    if code is None:
        return "SIGKILL"  # sent, and stuck in the kernel
    if code >= 0:
        return None

    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"
