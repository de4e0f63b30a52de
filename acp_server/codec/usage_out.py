"""What a turn used, for its prompt's answer. Pure.

ACP v1 has no place for it yet; the names are those of its draft, under `_meta`.
Source: https://agentclientprotocol.com/protocol/v1/draft/prompt-turn
"""

from typing import Any

from agent_loop import Usage


def added(one: Usage, other: Usage) -> Usage:
    """Both together."""
    return Usage(
        one.input_tokens + other.input_tokens,
        one.output_tokens + other.output_tokens,
        one.cache_read_tokens + other.cache_read_tokens,
        one.cache_write_tokens + other.cache_write_tokens,
        one.reasoning_tokens + other.reasoning_tokens,
    )


def usage_out(usage: Usage) -> dict[str, Any]:
    """Tokens by what they were; the kinds are disjoint, and what was not counted is left out."""
    counts = {
        "inputTokens": usage.input_tokens,
        "outputTokens": usage.output_tokens,
        "cachedReadTokens": usage.cache_read_tokens,
        "cachedWriteTokens": usage.cache_write_tokens,
        "thoughtTokens": usage.reasoning_tokens,
    }
    told = {name: count for name, count in counts.items() if count or name in ("inputTokens", "outputTokens")}
    return {**told, "totalTokens": sum(counts.values())}
