"""What a line for `/bin/sh -c` says, as far as that can be known without running it. Pure.

What a command does with its words (`sh -c`, `xargs`, `python -c`) is not followed.
"""

from agent_loop.record import record


class Unreadable(ValueError):
    """A line that is not surely understood; the message says why."""


@record
class Word:
    """One word of a command, as the command gets it: without its quotes and backslashes.

    Attributes:
        text: None when only running it would tell: a variable, a substitution, a brace.
        is_glob: The shell may put the names of files in its place.
    """

    text: str | None
    is_glob: bool = False


@record
class Simple:
    """A simple command, or a redirection that stands alone.

    Attributes:
        argv: Its words; assignments in front of it are left out.
        assigns: Whether there were any: they can change what the command does.
        reads, writes: Files it is redirected from and to.
    """

    argv: tuple[Word, ...]
    assigns: bool = False
    reads: tuple[Word, ...] = ()
    writes: tuple[Word, ...] = ()

    @property
    def words(self) -> tuple[Word, ...]:
        """Everything in it that may name a file."""
        return (*self.argv, *self.reads, *self.writes)


@record
class Script:
    """Every simple command of a line, in order, those in subshells and substitutions included.

    Attributes:
        opaque: Some words, assignments included, are unknown.
    """

    commands: tuple[Simple, ...]
    opaque: bool
