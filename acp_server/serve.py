"""One connection's life: from the first byte on stdin to the last on stdout.

Rules.
1. End of stdin, SIGTERM, SIGINT and a broken stdout mean the same: end every session, write what is
   queued, go within SHUTDOWN_S. A second signal kills what still runs and goes at once.
2. A watchdog in C is armed when shutdown starts, so that nothing of ours can keep the process.
3. Drivers stop before handlers, and handlers before the outbox is drained.
"""

import asyncio
import faulthandler
import logging
import os
import signal
import sys
from collections.abc import Callable, Mapping
from contextvars import copy_context
from types import FrameType
from typing import TYPE_CHECKING, Final

import anyio

from acp_server.bridge.connection import Connection
from acp_server.logs import start_log, stop_log
from acp_server.methods.table import methods
from acp_server.rpc.dispatch import Dispatcher
from acp_server.rpc.peer import Peer
from acp_server.transport.framing import LineFramer
from acp_server.transport.inbox import read_blocks
from acp_server.transport.outbox import Outbox
from agent_loop import STREAM, Harness, Loaded, open_harness

if TYPE_CHECKING:
    from acp_server.trace import Trace

log = logging.getLogger(__name__)

SHUTDOWN_S: Final = 1.5
DRAIN_S: Final = 1.0
WATCHDOG_S: Final = 4.0
STDERR: Final = 2
SWITCH_S: Final = 5e-5
"""How long a running thread keeps the interpreter from one that waits. The default, 5 ms, starts anew at each
system call of a streaming loop: a worker thread's half millisecond of disk work then took up to 150 ms."""


def serve_stdio(fd_in: int, fd_out: int, loaded: Loaded, environ: Mapping[str, str]) -> None:
    """Serve one editor on two descriptors until it leaves, then end the process; never returns."""
    handler = start_log(loaded.state_dir, loaded.log_level)
    trace = _trace(loaded, environ)
    sys.setswitchinterval(SWITCH_S)
    code = 0
    try:
        anyio.run(_serve, fd_in, fd_out, loaded, environ, trace, backend="asyncio")
    except BaseException:
        log.exception("the server failed")
        code = 1
    if trace is not None:
        trace.close()
    stop_log(handler)
    # Not sys.exit: a thread of a library, or a hung import, must not keep the process.
    os._exit(code)


async def _serve(
    fd_in: int, fd_out: int, loaded: Loaded, environ: Mapping[str, str], trace: "Trace | None"
) -> None:
    stop = anyio.Event()
    async with open_harness(loaded, environ) as harness, anyio.create_task_group() as handlers:
        _on_signals(stop, harness)
        outbox = Outbox(fd_out, on_broken=stop.set)
        peer = Peer(outbox if trace is None else trace.sink(outbox))
        connection = Connection(harness, peer, outbox, handlers)
        peer.dispatch = Dispatcher(methods(), connection)
        on_line: Callable[[bytes], None] = peer.on_line
        if trace is not None:
            on_line = trace.listen(on_line)
            harness.bus.around(STREAM, trace.around_model)
        framer = LineFramer(on_line, peer.on_oversize)

        def end() -> None:
            framer.end()
            stop.set()

        await read_blocks(fd_in, framer.feed, end)
        configured = await harness.start_configured() if loaded.settings.agents else []
        await stop.wait()
        if trace is not None:
            trace.end()

        faulthandler.dump_traceback_later(WATCHDOG_S, exit=True, file=STDERR)
        harness.hasten()
        with anyio.move_on_after(SHUTDOWN_S, shield=True) as scope:
            for handle in configured:
                await handle.dispose()
            await connection.close()
        if scope.cancelled_caught:
            log.error("some sessions did not end within %s s", SHUTDOWN_S)
        harness.workspaces.children.kill_all()
        handlers.cancel_scope.cancel()
        with anyio.CancelScope(shield=True):
            await outbox.drain(DRAIN_S)
        outbox.close()


def _trace(loaded: Loaded, environ: Mapping[str, str]) -> "Trace | None":
    """The trace that was asked for; it is imported only then."""
    if loaded.trace is None:
        return None

    from acp_server.trace import open_trace

    return open_trace(loaded.trace, loaded, environ)


def _on_signals(stop: anyio.Event, harness: Harness) -> None:
    """Plain handlers, which run even while the loop is blocked; the loop's own would not."""
    loop = asyncio.get_running_loop()
    context = copy_context()
    heard: list[int] = []

    def handle(number: int, _: FrameType | None) -> None:
        if heard:
            harness.workspaces.children.kill_all()
            os._exit(128 + number)
        heard.append(number)
        faulthandler.dump_traceback_later(WATCHDOG_S, exit=True, file=STDERR)
        loop.call_soon_threadsafe(stop.set, context=context)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, handle)
