"""One agent, several sessions: `session/new` beside a stream, cancelling, and who finishes when."""

import statistics

from bench.agents import Launch, Script
from bench.client import Client, Wrong, now
from bench.said import require_prefix, require_whole, texts
from bench.samples import Values
from bench.sizes import Sizes

WARM_DELTAS = 64
BEFORE_DISTURBING = 500
NEW_SESSIONS = 3
QUIET_S = 0.1
"""How long it is listened for updates that still come behind the answer of a cancelled prompt."""
PACED_CANCEL_AFTER = 20
PACED_PAUSE_MS = 5.0


def script(sizes: Sizes) -> Script:
    """What the scripted provider will be asked for; it cannot pace itself, so paced prompts are missing."""
    disturbed = [WARM_DELTAS, *([sizes.flood] * (NEW_SESSIONS + 1))]
    return [disturbed, *([sizes.crowd] for _ in range(sizes.sessions))]


def measure(launch: Launch, sizes: Sizes, *, paced: bool) -> Values:
    """Disturb one agent in every way, then let all sessions run at once."""
    values: Values = {}
    client = Client(launch)
    try:
        client.initialize()
        session, _ = client.new_session()
        client.result(client.prompt(session, WARM_DELTAS))
        require_whole(client.heard(), session, WARM_DELTAS)

        _new_beside_stream(client, session, sizes, values)
        _cancel(client, session, sizes.flood, 0, BEFORE_DISTURBING, "unpaced", values)
        if paced:
            _cancel(client, session, sizes.flood, PACED_PAUSE_MS, PACED_CANCEL_AFTER, "paced", values)

        values["eight.spread"] = _all_at_once(client, sizes.sessions, sizes.crowd, 0)
        if paced:
            values["eight.spread_paced"] = _all_at_once(client, sizes.sessions, sizes.paced, sizes.pause_ms)
    finally:
        client.close()
    return values


def _new_beside_stream(client: Client, session: str, sizes: Sizes, values: Values) -> None:
    idle = [_new_session_ms(client) for _ in range(NEW_SESSIONS)]
    busy = []
    for _ in range(NEW_SESSIONS):
        client.heard()
        request = client.prompt(session, sizes.flood)
        client.read_lines(BEFORE_DISTURBING, request)
        # An agent that only answers when the stream is over has earned the time it took.
        busy.append(_new_session_ms(client))
        client.cancel(session)
        client.result(request)
        require_prefix(client.heard(), session)
    idle_ms, busy_ms = statistics.median(idle), statistics.median(busy)
    values |= {"new.idle_ms": idle_ms, "new.busy_ms": busy_ms, "new.ratio": busy_ms / idle_ms}


def _new_session_ms(client: Client) -> float:
    began = now()
    _, answer = client.new_session()
    return (answer.at - began) * 1000


def _cancel(
    client: Client, session: str, deltas: int, pause_ms: float, after: int, kind: str, values: Values
) -> None:
    client.heard()
    request = client.prompt(session, deltas, pause_ms)
    client.read_lines(after, request)
    began = now()
    client.cancel(session)
    answer = client.wait(request)
    client.read_for(QUIET_S)

    lines = client.heard()
    end = next(at for at, line in enumerate(lines) if line.message.get("id") == request)
    if answer.result.get("stopReason") != "cancelled":
        raise Wrong(f"a cancelled prompt was answered with {answer.result}")
    require_prefix(lines, session)
    values[f"cancel.{kind}_ms"] = (answer.at - began) * 1000
    values[f"cancel.{kind}_between"] = len(texts([line for line in lines[:end] if line.at > began], session))
    values[f"cancel.{kind}_after"] = len(texts(lines[end:], session))


def _all_at_once(client: Client, sessions: int, deltas: int, pause_ms: float) -> float:
    """How long the last session took over how long the first one took."""
    names = [client.new_session()[0] for _ in range(sessions)]
    client.heard()
    began = now()
    answers = [client.wait(request) for request in client.prompts(names, deltas, pause_ms)]
    ends = [answer.at - began for answer in answers if answer.result]
    lines = client.heard()
    for name in names:
        require_whole(lines, name, deltas)
    return max(ends) / min(ends)
