"""What a call would do, piece by piece, so that rules can be held against each piece. Pure.

A call that moves a file is two deeds, a compound command one for each simple command and each file it
is redirected to. How a call becomes deeds belongs to `look`.
"""

from agent_loop.record import record
from agent_loop.tools.tool import EffectKind


@record
class Place:
    """A path, by every name it goes by here.

    Attributes:
        real: Where it leads; absolute.
        names: Absolute, `real` among them: links on the way are other names of the same thing.
    """

    real: str
    names: tuple[str, ...]
    is_folder: bool = False


@record
class Deed:
    """One piece.

    Attributes:
        kinds: Usually one; a file that a command is redirected to is written by executing something.
        argv: A simple command's words, None for one nobody knows before it runs; None for no command.
        plain: Whether nothing in front of the command changes what it does.
        places: What it touches; for a command, what its words might name.
    """

    tool: str
    kinds: tuple[EffectKind, ...]
    places: tuple[Place, ...] = ()
    argv: tuple[str | None, ...] | None = None
    plain: bool = True
    domain: str | None = None


@record
class Call:
    """All deeds of one call.

    Attributes:
        whole: Whether they are surely all of it; a command may do what nobody can read.
        roots: Real paths of the session's directories.
    """

    deeds: tuple[Deed, ...]
    roots: tuple[str, ...]
    whole: bool = True
