"""What is known of a model before it is asked: how much it reads and writes, what it can, what it costs.

Owns the shape of it, and the bill of a call. Which models we know belongs to `catalogue`, which is imported
with the first session: nobody waits for its table at a start.
"""

from typing import Final, Literal

from agent_loop.chunks import Usage
from agent_loop.events.facts import Cost
from agent_loop.record import record

PER_TOKENS: Final = 1_000_000
# A token of the cheapest model costs more than this leaves out; floats would show their tails.
_DECIMALS: Final = 9


@record
class Price:
    """What a million tokens cost, in `currency`."""

    input: float
    output: float
    cache_read: float
    cache_write: float
    currency: str = "USD"


@record
class ModelInfo:
    """A model as far as it is known.

    Attributes:
        context_window: Tokens it can read and write in one call together; None when unknown.
        max_output: Tokens it can write in one call; None when unknown.
        images: Whether it sees pictures.
        reasoning: Whether it can think before it answers.
        thinks_by: How it is told how long to think: by a word for its effort, or by a number of tokens.
        tools: Whether it takes tools; one that does not is told of none.
        price: None when unknown, or when somebody else's bill.
    """

    context_window: int | None = None
    max_output: int | None = None
    images: bool = False
    reasoning: bool = False
    thinks_by: Literal["effort", "budget"] = "effort"
    tools: bool = True
    price: Price | None = None


def charged(price: Price, usage: Usage, before: Cost | None) -> Cost:
    """What a call cost, thoughts like words, and what it makes of the session's bill.

    A session that changed to a model paid in another currency begins a new one.
    """
    amount = (
        usage.input_tokens * price.input
        + usage.cache_read_tokens * price.cache_read
        + usage.cache_write_tokens * price.cache_write
        + (usage.output_tokens + usage.reasoning_tokens) * price.output
    ) / PER_TOKENS
    so_far = before.total if before is not None and before.currency == price.currency else 0.0
    return Cost(round(amount, _DECIMALS), round(so_far + amount, _DECIMALS), price.currency)


def context_of(usage: Usage) -> int:
    """Tokens in the model's context after a call; thoughts are not read again."""
    read = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens
    return read + usage.output_tokens
