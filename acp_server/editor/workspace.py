"""A session's workspace with an editor behind it."""

from acp_server.editor.files import EditorFiles
from acp_server.editor.terminals import EditorCommands
from acp_server.rpc.calls import Calls
from acp_server.wire.client import Client
from agent_loop import Workspace, replace


def editor_workspace(calls: Calls, session_id: str, here: Workspace, client: Client) -> Workspace:
    """The same with whatever the editor offers; the rest stays here, as do commands in a sandbox."""
    files, commands = here.files, here.commands
    if client.reads or client.writes:
        files = EditorFiles(calls, session_id, here.roots, files, reads=client.reads, writes=client.writes)
    if client.terminals and here.sandbox is None:
        commands = EditorCommands(calls, session_id, here.roots)
    return replace(here, files=files, commands=commands)
