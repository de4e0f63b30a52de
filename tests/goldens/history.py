"""History is valid for every provider: what a model would be sent at each step of a session, and after it.

Owns folding stored facts into requests of every format there is, and asking each format's double whether the
real endpoint would take them. What the wire doubles refuse is theirs to say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import orjson

from agent_loop.events.facts import StepStart, TurnEnd
from agent_loop.events.facts_json import fact_from_json
from agent_loop.llm.provider import ModelRequest
from agent_loop.llm.providers import anthropic_request, openai_request
from agent_loop.messages import Message, Text
from agent_loop.session.history import History
from tests.doubles import anthropic_wire, openai_wire
from tests.goldens.golden import Json

__all__ = ["history_faults"]

THINKING_TOKENS = 2048

Body = Callable[[ModelRequest], bytes]
Problem = Callable[[Any], str | None]

_FORMATS: dict[str, tuple[Body, Problem]] = {
    "OpenAI": (
        lambda request: openai_request.request_body(request, returns_reasoning=True),
        openai_wire.problem,
    ),
    "Anthropic": (
        lambda request: anthropic_request.request_body(
            request, max_tokens=2 * THINKING_TOKENS, thinking=THINKING_TOKENS
        ),
        anthropic_wire.problem,
    ),
}


def history_faults(rows: Sequence[Json]) -> Iterator[str]:
    """What an endpoint would refuse of a session; its last turn may be open, where a process was killed."""
    history, ended = History(), True

    for row in rows:
        try:
            fact = fact_from_json(row)
        except ValueError:
            # Whether a second process can read the session is another check.
            continue

        history.fold([fact])

        if isinstance(fact, StepStart):
            yield from _refusals(history.messages(), f"step {fact.step} of turn {fact.turn}")

        ended = isinstance(fact, TurnEnd) or (ended and fact.SCOPE == "session")

    if ended:
        yield from _refusals((*history.messages(), Message("user", (Text("and now?"),))), "the next prompt")


def _refusals(messages: Sequence[Message], place: str) -> Iterator[str]:
    for name, (body, problem) in _FORMATS.items():
        refused = problem(orjson.loads(body(ModelRequest("p", "m", messages))))

        if refused is not None:
            yield f"{name} would refuse the request of {place}: {refused}"
