"""One editor's connection: what it can do, which sessions it opened, and how they come and go."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Protocol

import anyio
from anyio.abc import TaskGroup

from acp_server.bridge.command_cards import CommandCards
from acp_server.bridge.forward import forward, watch
from acp_server.bridge.record import SessionRecord
from acp_server.bridge.replay import replay
from acp_server.bridge.setup import Setup
from acp_server.codec.chunk_line import ChunkLine, update_message
from acp_server.codec.update_out import Update
from acp_server.editor.permission import EditorApprover
from acp_server.errors import (
    INVALID_REQUEST,
    RpcError,
    cancelled_request,
    invalid_params,
    to_rpc_error,
    unknown_session,
)
from acp_server.options.config_options import config_options
from acp_server.options.modes import modes
from acp_server.rpc.peer import Peer
from acp_server.rpc.pending import Pending
from acp_server.wire.client import Client
from agent_loop import (
    AgentHandle,
    Disposed,
    Harness,
    ModelsListed,
    Pace,
    SessionHeader,
    Workspace,
    same_directory,
    stray_cancel,
)

log = logging.getLogger(__name__)


class Room(Protocol):
    """The part of a transport a stream waits on."""

    async def room(self) -> None:
        """Return when the editor has kept up."""


class Connection:
    """The context every method gets.

    Attributes:
        initialized: Whether `initialize` was answered; nothing else is before.
    """

    def __init__(self, harness: Harness, peer: Peer, outbox: Room, handlers: TaskGroup) -> None:
        self.harness = harness
        self.peer = peer
        self.initialized = False
        self._outbox = outbox
        self._handlers = handlers
        self._records: dict[str, SessionRecord] = {}
        self._loading: set[str] = set()
        self._closed = False
        # Told once, on the first session's answer.
        self._config_warnings = harness.warnings
        self._undo = forward(harness.bus, self._records.get)
        self._undo.append(harness.bus.on(Pace, self._pace))
        self._undo.append(harness.bus.on(ModelsListed, self._models_listed))
        self._client = Client()
        self._watching = False

    def meet(self, client: Client) -> None:
        """Work with what the editor can do, in sessions opened from now on; it may say so again."""
        self._client = client
        self.harness.workspaces.behind = self._behind
        if client.events and not self._watching:
            self._watching = True
            notify = partial(self.peer.notify, "_agent_loop/event")
            self._undo.extend(watch(self.harness.bus, self._records.get, notify))

    def record(self, session_id: str) -> SessionRecord:
        """The session of that id on this connection.

        Raises:
            RpcError: -32002, there is none.
        """
        record = self._records.get(session_id)
        if record is None:
            raise unknown_session(session_id)
        return record

    def find(self, session_id: str) -> SessionRecord | None:
        """The same, or None."""
        return self._records.get(session_id)

    def spawn(self, work: Callable[[Pending], Awaitable[None]], *, session_id: str = "") -> Pending:
        """Do slow work for a request; whatever it raises becomes the answer, and so does its cancellation."""
        pending = Pending()
        scope = anyio.CancelScope()
        pending.on_cancel = scope.cancel

        async def run() -> None:
            try:
                with scope:
                    await work(pending)
                if scope.cancelled_caught:
                    pending.fail(cancelled_request())
            except (Exception, asyncio.CancelledError) as error:
                if isinstance(error, asyncio.CancelledError) and not stray_cancel():
                    pending.fail(cancelled_request())
                    raise
                known = to_rpc_error(error, session_id=session_id)
                if not isinstance(error, RpcError):
                    log.warning("a request failed", exc_info=error)
                pending.fail(known)

        self._handlers.start_soon(run)
        return pending

    async def open(self, pending: Pending, setup: Setup) -> None:
        """`session/new`: a stored session and its agent, then the answer.

        Raises:
            RpcError, HarnessError: It could not be made; nothing is left behind.
        """
        handle = await self.harness.create_session(setup.cwd, setup.additional)
        await self._announce(pending, handle, setup)

    async def fork(self, pending: Pending, parent_id: str, setup: Setup) -> None:
        """`session/fork`: a session that begins with another's whole turns, then the answer.

        Raises:
            RpcError, HarnessError: It could not be made; nothing is left behind.
        """
        check = partial(_require_same_cwd, cwd=setup.cwd)
        handle = await self.harness.fork_session(parent_id, setup.cwd, check, setup.additional)
        await self._announce(pending, handle, setup)

    async def _announce(self, pending: Pending, handle: AgentHandle, setup: Setup) -> None:
        record = await self._installed(handle)
        record.warnings.extend((*self._config_warnings, *setup.warnings))
        self._config_warnings = ()
        pending.settle(record.with_warnings({"sessionId": record.id, **self._options_of(record)}))
        self.harness.warm_up()

    async def load(self, pending: Pending, session_id: str, setup: Setup, *, replayed: bool) -> None:
        """`session/load`: the whole conversation as updates, then the answer; `session/resume`: the answer.

        Raises:
            RpcError, HarnessError: It could not be loaded; nothing is left behind.
        """
        check = partial(_require_same_cwd, cwd=setup.cwd)
        record = self._records.get(session_id)
        if record is None:
            handle = await self.harness.resume_session(session_id, check, setup.additional)
            record = await self._installed(handle)
            try:
                await self._replay(record, replayed=replayed)
            except BaseException:
                self.retire(session_id)
                await _free(record)
                raise
        else:
            await check(record.handle.agent.session.header)
            await self._replay(record, replayed=replayed)
        record.warnings.extend(setup.warnings)
        pending.settle(record.with_warnings(self._options_of(record)))
        self.harness.warm_up()

    def require_not_loading(self, session_id: str) -> None:
        """Raises RpcError (-32600) while a session is being loaded."""
        if session_id in self._loading:
            raise _busy(session_id, "the session is being loaded")

    def reserve(self, session_id: str) -> None:
        """Claim an id for a load, before anything is awaited; from now on a live session's prompts wait.

        Raises:
            RpcError: -32600, it is being loaded or has work to do.
        """
        record = self._records.get(session_id)
        running = record is not None and (
            record.busy or record.loading or record.handle.agent.status == "running"
        )
        if session_id in self._loading or running:
            raise _busy(session_id, "the session is busy: load it when it is idle")
        self._loading.add(session_id)
        if record is not None:
            record.loading = True

    def release(self, session_id: str) -> None:
        """The load is over, however it went, and what waited for its end may run."""
        self._loading.discard(session_id)
        record = self._records.get(session_id)
        if record is not None:
            record.loading = False
            record.admit_next()

    def retire(self, session_id: str) -> SessionRecord | None:
        """Take a session from this connection: its prompts are answered now, and it takes no more."""
        record = self._records.get(session_id)
        if record is not None:
            record.cancel()
            record.handle.agent.begin_disposal()
            del self._records[session_id]
        return record

    async def end(self, pending: Pending, record: SessionRecord) -> None:
        """`session/close`: what a retired session holds is freed and its log whole, then the answer."""
        await _free(record)
        pending.settle({})

    async def delete(self, pending: Pending, session_id: str, record: SessionRecord | None) -> None:
        """`session/delete`: no such session any more, then the answer; there may have been none.

        Raises:
            StoreError: Another process is at it, or the disk failed.
        """
        if record is not None:
            await _free(record)
        await self.harness.store.delete(session_id)
        pending.settle({})

    async def close(self) -> None:
        """The editor is gone: end every session, side by side. Idempotent; callers bound it."""
        self._closed = True
        self.peer.calls.close()
        # The records hear of it, and answer their prompts, before anything is taken from them.
        for record in self._records.values():
            record.handle.agent.begin_disposal()
        for undo in self._undo:
            undo()
        records, self._records = self._records, {}
        async with anyio.create_task_group() as group:
            for record in records.values():
                group.start_soon(_free, record)

    async def _installed(self, handle: AgentHandle) -> SessionRecord:
        if self._closed:
            await handle.dispose()
            raise Disposed("the connection is closed")
        return self._install(handle)

    async def _replay(self, record: SessionRecord, *, replayed: bool) -> None:
        record.loading = True
        if replayed:
            rows = list(record.handle.agent.session.log.rows_since(0))
            draws = record.commands.drawn is not None
            await replay(rows, record.send, self._outbox.room, draws_terminals=draws)

    def _options_of(self, record: SessionRecord) -> dict[str, Any]:
        """What can be chosen for a session, as its answer says it."""
        mode = self.harness.permission.mode(record.id)
        return {"modes": modes(mode), "configOptions": record.options()}

    def _behind(self, session_id: str, here: Workspace) -> Workspace:
        client = self._client
        if not (client.reads or client.writes or client.terminals):
            return here
        # Imported with the first session of an editor that offers any of it.
        from acp_server.editor.workspace import editor_workspace

        return editor_workspace(self.peer.calls, session_id, here, client)

    def _models_listed(self, _: ModelsListed) -> None:
        for record in self._records.values():
            record.tell_options()

    def _install(self, handle: AgentHandle) -> SessionRecord:
        session_id = handle.agent.id

        def send(update: Update) -> None:
            self.peer.send(update_message(session_id, update))

        def options() -> list[dict[str, Any]]:
            return config_options(
                self.harness.permission.mode(session_id), self.harness.models.state(handle.agent)
            )

        commands = CommandCards(draws=self._client.draws_terminals)
        record = SessionRecord(handle, send, self.peer.send_line, ChunkLine(session_id), options, commands)
        record.undo.append(handle.agent.session.log.observe(record.on_fact))
        approver = EditorApprover(self.peer.calls)
        record.undo.append(self.harness.permission.set_approver(session_id, approver))
        if news := self.harness.models.restore(handle.agent):
            record.warnings.append(news)
        self._records[session_id] = record
        return record

    async def _pace(self, _: Pace) -> None:
        await self._outbox.room()


def _busy(session_id: str, why: str) -> RpcError:
    return RpcError(
        INVALID_REQUEST, f"Invalid request: {why}", {"kind": "busy", "sessionId": session_id[:200]}
    )


async def _free(record: SessionRecord) -> None:
    for undo in record.undo:
        undo()
    await record.handle.dispose()


async def _require_same_cwd(header: SessionHeader, cwd: str) -> None:
    """Raises RpcError (-32602) when a stored session works elsewhere than the editor says."""
    if header.cwd is None or not await same_directory(header.cwd, cwd):
        raise invalid_params("cwd", f"is {cwd}, but the session works in {header.cwd}")
