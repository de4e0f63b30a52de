"""The models we know, by name.

Owns the table and how a name finds its row. Nothing depends on a row being there: a model nobody heard of
works, its window unknown. Settings come first (`[models."PROVIDER/NAME"]`): makers change prices, and the
table only knows what they asked at the end of 2026, without what some ask on top for very long requests.

Sources: the makers' own model and price pages.
"""

import re
from collections.abc import Mapping
from typing import Final, Literal

from agent_loop.llm.models import ModelInfo, Price

UNKNOWN: Final = ModelInfo()

_VERSION: Final = re.compile(r"-(\d)-(\d)")
_DATE: Final = re.compile(r"-(\d{8}|\d{4}-\d\d-\d\d|latest)$")


def known_model(name: str) -> ModelInfo:
    """The row of that name; UNKNOWN when there is none.

    Gateways write `maker/name` and dots for dashes, makers a date behind: all are the same model. A name that
    only begins alike is another one, of another price.
    """
    plain = re.sub(r"[._:]", "-", name.rpartition("/")[2].lower())
    return _MODELS.get(_DATE.sub("", plain), UNKNOWN)


def known_names(kind: str) -> tuple[str, ...]:
    """The models we know of one kind of provider, as that provider spells them, the best known first."""
    prefix = {"openai": "gpt-", "anthropic": "claude-"}.get(kind)
    if prefix is None:
        return ()
    names = (name for name in _MODELS if name.startswith(prefix))
    return tuple(_VERSION.sub(r"-\1.\2", name) if kind == "openai" else name for name in names)


def _openai(
    window: int, output: int, asks: float, cached: float, writes: float, *, reasoning: bool = True
) -> ModelInfo:
    return ModelInfo(
        window, output, images=True, reasoning=reasoning, price=Price(asks, writes, cached, asks)
    )


def _claude(
    window: int, output: int, asks: float, writes: float, thinks_by: Literal["effort", "budget"] = "effort"
) -> ModelInfo:
    """Reading the cache costs a tenth, writing it a quarter more."""
    price = Price(asks, writes, asks / 10, asks * 1.25)
    return ModelInfo(window, output, images=True, reasoning=True, thinks_by=thinks_by, price=price)


_MODELS: Final[Mapping[str, ModelInfo]] = {
    "gpt-6-2-astra": _openai(1_050_000, 128_000, 8.0, 0.4, 40.0),
    "gpt-6-2-sol": ModelInfo(1_050_000, 128_000, images=True, reasoning=True),
    "gpt-6-astra": _openai(1_050_000, 128_000, 10.0, 1.0, 50.0),
    "gpt-5-2": _openai(400_000, 128_000, 1.75, 0.175, 14.0),
    "gpt-5-1": _openai(400_000, 128_000, 1.25, 0.125, 10.0),
    "gpt-5": _openai(400_000, 128_000, 1.25, 0.125, 10.0),
    "gpt-5-mini": _openai(400_000, 128_000, 0.25, 0.025, 2.0),
    "gpt-5-nano": _openai(400_000, 128_000, 0.05, 0.005, 0.4),
    "gpt-4-1": _openai(1_047_576, 32_768, 2.0, 0.5, 8.0, reasoning=False),
    "gpt-4-1-mini": _openai(1_047_576, 32_768, 0.4, 0.1, 1.6, reasoning=False),
    "gpt-4-1-nano": _openai(1_047_576, 32_768, 0.1, 0.025, 0.4, reasoning=False),
    "claude-fable-5-2": _claude(1_000_000, 128_000, 8.0, 40.0),
    "claude-fable-5-1": _claude(1_000_000, 128_000, 10.0, 50.0),
    "claude-opus-5-5": _claude(1_000_000, 128_000, 4.0, 20.0),
    "claude-opus-5": _claude(1_000_000, 128_000, 5.0, 25.0),
    "claude-opus-4-5": _claude(200_000, 64_000, 5.0, 25.0, "budget"),
    "claude-sonnet-5-5": _claude(1_000_000, 128_000, 2.0, 10.0),
    "claude-sonnet-5": _claude(1_000_000, 128_000, 2.0, 10.0),
    "claude-sonnet-4-5": _claude(200_000, 64_000, 3.0, 15.0, "budget"),
    "claude-haiku-5-5": ModelInfo(1_000_000, 128_000, images=True, reasoning=True),
    "claude-haiku-4-5": _claude(200_000, 64_000, 1.0, 5.0, "budget"),
}
