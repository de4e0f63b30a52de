"""Whether an agent said what it was asked to say: a figure counts only then."""

from bench.agents import delta_text
from bench.client import Line, Wrong


def texts(lines: list[Line], session: str) -> list[str]:
    """What the session's agent said, update by update."""
    said = []
    for line in lines:
        params = line.message.get("params") or {}
        update = params.get("update") or {}
        if params.get("sessionId") == session and update.get("sessionUpdate") == "agent_message_chunk":
            said.append(update["content"]["text"])
    return said


def require_whole(lines: list[Line], session: str, deltas: int) -> None:
    """Raises Wrong unless every delta came, each as an update of its own, and the text is what was asked."""
    said = texts(lines, session)
    if len(said) != deltas:
        raise Wrong(f"{len(said)} updates came for {deltas} deltas")
    require_prefix(lines, session)


def require_prefix(lines: list[Line], session: str) -> None:
    """Raises Wrong unless what came is how the asked text begins."""
    for at, text in enumerate(texts(lines, session)):
        if text != delta_text(at):
            raise Wrong(f"delta {at} reads {text!r}, not {delta_text(at)!r}")
