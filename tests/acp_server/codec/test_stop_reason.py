"""Every way a turn can end has an answer, and `cancelled` has only its own."""

from typing import Any, get_args

import pytest
from acp import schema

from acp_server.codec.stop_reason import StopReason, stop_reason
from agent_loop import EndReason
from agent_loop.events.facts import CancelCause, EndKind

EXPECTED: dict[str, str | None] = {
    "completed": "end_turn",
    "interrupted": "end_turn",
    "disposed": "cancelled",
    "max-tokens": "max_tokens",
    "max-steps": "max_turn_requests",
    "refusal": "refusal",
    "error": None,
}


@pytest.mark.parametrize("kind", [kind for kind in get_args(EndKind) if kind != "aborted"])
def test_every_kind_of_end_has_its_answer(kind: Any) -> None:
    """ACP, prompt turn (stop reasons): a closed set; there is none for a failure."""
    assert stop_reason(EndReason(kind)) == EXPECTED[kind]


@pytest.mark.parametrize("cause", get_args(CancelCause))
def test_only_what_the_client_stopped_was_cancelled(cause: Any) -> None:
    """copilot-cli#4561: cancelled only when the client cancelled."""
    assert stop_reason(EndReason("aborted", cause)) == ("cancelled" if cause == "client" else "end_turn")


def test_every_answer_is_one_acp_knows() -> None:
    """ACP, schema StopReason."""
    assert set(get_args(StopReason)) == set(get_args(schema.StopReason))
