"""Asks the editor for a service, and puts whatever goes wrong in words for the tool that needs it."""

from typing import Any, Final

import anyio

from acp_server.errors import RpcError
from acp_server.rpc.calls import Calls, ConnectionClosed
from agent_loop import clean_text, one_line

NOT_FOUND: Final = -32002
_WORDS_LIMIT: Final = 300


class EditorFailed(OSError):
    """The editor refused, or did not answer; the message says so."""


class EditorRefused(EditorFailed):
    """It answered with an error."""


async def ask_editor(calls: Calls, method: str, params: dict[str, Any], timeout_s: float) -> dict[str, Any]:
    """Its answer; one that is no object reads as an empty one.

    Raises:
        FileNotFoundError: It says that there is no such thing.
        EditorRefused: It answered with another error.
        EditorFailed: It did not answer in time, or is gone.
    """
    try:
        with anyio.fail_after(timeout_s):
            answer = await calls.request(method, params)
    except TimeoutError:
        raise EditorFailed(f"the editor did not answer {method} within {timeout_s:g} s") from None
    except ConnectionClosed:
        raise EditorFailed("the editor is gone") from None
    except RpcError as error:
        said = one_line(clean_text(error.message))[:_WORDS_LIMIT] or f"error {error.code}"
        kind = FileNotFoundError if error.code == NOT_FOUND else EditorRefused
        raise kind(f"the editor answered {method} with: {said}") from None
    return answer if isinstance(answer, dict) else {}
