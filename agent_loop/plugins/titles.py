"""Names a session after its first prompt, once its first turn is over; a name the person chose stays."""

from agent_loop.events.facts import SessionTitle, UserMessage
from agent_loop.events.moments import TurnEnded
from agent_loop.messages import text_of
from agent_loop.plugins.scope import PluginScope
from agent_loop.session.titles import title_from


def activate(scope: PluginScope) -> None:
    """Watch every turn from now on."""

    def name(moment: TurnEnded) -> None:
        session = scope.sessions.get(moment.agent_id)
        if session is None or session.log.title is not None:
            return
        first = next((fact for fact in session.log.rows_since(0) if isinstance(fact, UserMessage)), None)
        title = "" if first is None else title_from(text_of(first.content))
        if title:
            session.log.append(SessionTitle(title, "prompt"))

    scope.on(TurnEnded, name)
