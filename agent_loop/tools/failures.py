"""How a failure becomes what the model reads: words it can act on, and a stable code for the log."""

import logging

from agent_loop.errors import code_of, in_words
from agent_loop.events.facts import Outcome
from agent_loop.messages import Text
from agent_loop.tools.tool import ToolOutcome, ToolRefused
from agent_loop.workspace.roots import OutsideRoots

_log = logging.getLogger(__name__)


def failed(text: str, code: str, outcome: Outcome = "ran") -> ToolOutcome:
    """The outcome of a call that gave an error; `text` says how to mend it."""
    return ToolOutcome(content=(Text(f"Error: {text}"),), is_error=True, error_code=code, outcome=outcome)


def stopped_before_acting() -> ToolOutcome:
    """The outcome of a call whose turn was cancelled right before its effect."""
    return failed("the turn was cancelled; nothing was done", "CANCELLED", "interrupted")


def outcome_of(error: BaseException, tool_name: str, outcome: Outcome = "ran") -> ToolOutcome:
    """The outcome of a call that raised. What is nobody's fault but a tool's own is logged, too."""
    match error:
        case ToolRefused():
            return failed(str(error), error.code, outcome)
        case OutsideRoots():
            return failed(f"{error}. Use a path inside one of them.", "OUTSIDE_ROOTS", outcome)
        case OSError():
            return failed(disk_words(error), disk_code(error), outcome)

    _log.error("tool %s failed: %s", tool_name, in_words(error), exc_info=error)
    return failed(f"{tool_name} failed: {in_words(error)}", code_of(error), outcome)


def disk_words(error: OSError) -> str:
    """What the disk said, without a number; the path first where there is one."""
    if error.strerror is None:
        return in_words(error)
    return f"{error.filename}: {error.strerror}" if error.filename is not None else error.strerror


def disk_code(error: OSError) -> str:
    """`NOT_FOUND` for what is not there, `IO` for the rest."""
    return "NOT_FOUND" if isinstance(error, FileNotFoundError) else "IO"
