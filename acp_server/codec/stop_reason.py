"""Why a turn ended, as ACP says it. Pure.

Source: https://agentclientprotocol.com/protocol/v1/prompt-turn (stop reasons)
"""

from typing import Literal, assert_never

from agent_loop import EndReason

StopReason = Literal["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"]


def stop_reason(reason: EndReason) -> StopReason | None:
    """The stop reason; None for a failed turn, which is an error response instead.

    `cancelled` is only for what the client stopped, and for a session that was disposed: a turn that a
    plugin or another caller aborted ends as `end_turn`.
    """
    match reason.kind:
        case "completed" | "interrupted":
            return "end_turn"
        case "aborted":
            return "cancelled" if reason.cause == "client" else "end_turn"
        case "disposed":
            return "cancelled"
        case "max-tokens":
            return "max_tokens"
        case "max-steps":
            return "max_turn_requests"
        case "refusal":
            return "refusal"
        case "error":
            return None
        case _:
            assert_never(reason.kind)
