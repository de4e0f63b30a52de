"""Which files a session's model has seen, and as what: an edit of what was never read is a guess.

Kept in the session's memory alone. After a restart nothing was seen, and a read costs little.
"""

import hashlib
from typing import Final

from agent_loop.tools.tool import ToolContext, ToolRefused

_KEY: Final = "files seen"


def fingerprint(content: bytes) -> str:
    """What two contents have in common only when they are the same."""
    return hashlib.sha256(content).hexdigest()


def note_seen(ctx: ToolContext, real: str, content: bytes) -> None:
    """The model has been shown this content, or has written it."""
    ctx.session_state.setdefault(_KEY, {})[real] = fingerprint(content)


def require_seen(ctx: ToolContext, real: str, shown: str, content: bytes) -> None:
    """Raises ToolRefused for a file that was not read in this session, or has changed since."""
    seen = ctx.session_state.get(_KEY, {}).get(real)
    if seen is None:
        raise ToolRefused(f"{shown} was not read in this session; read it first, then edit.", code="NOT_READ")
    if seen != fingerprint(content):
        raise ToolRefused(f"{shown} changed since it was read; read it again, then edit.", code="CHANGED")
