"""Where a session's log lies under the store's root.

Owns the layout `sessions/cwd-<12 hex>/<id>.jsonl` and which ids can be file names at all.
Reading and writing belong to `jsonl`.
"""

import hashlib
import os
import re
from typing import Final

SESSIONS: Final = "sessions"
NO_CWD: Final = "_no-cwd"
SUFFIX: Final = ".jsonl"
TITLE_SUFFIX: Final = ".title"

_BUCKET: Final = "cwd-"
_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,128}")


def is_session_id(text: str) -> bool:
    """Whether a store can have made this id; anything else never reaches the disk."""
    return _ID.fullmatch(text) is not None and text not in {".", ".."}


def is_bucket(name: str) -> bool:
    """Whether a folder of that name holds session logs."""
    return name == NO_CWD or name.startswith(_BUCKET)


def bucket_name(cwd: str | None) -> str:
    """The folder for sessions of `cwd`, by its spelling: a link on the way to it may lead elsewhere tomorrow.

    Raises:
        ValueError: No directory can have that name.
    """
    if cwd is None:
        return NO_CWD
    if "\0" in cwd:
        raise ValueError("a directory's name has no NUL")
    return _BUCKET + hashlib.sha256(os.fsencode(cwd)).hexdigest()[:12]
