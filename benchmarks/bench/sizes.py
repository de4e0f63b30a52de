"""How much of everything one run asks for."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Sizes:
    """The default is what the figures are defined on; `quick` only shows that all works.

    Attributes:
        stream: Deltas of the one long answer.
        flood: Deltas of an answer that is going to be disturbed.
        sessions: How many sessions prompt at once, `crowd` deltas each.
        paced: Deltas of a paced answer in each of the sessions, `pause_ms` apart.
        many_turns: Earlier turns of the long history; `few_turns` of the short one.
        turns: Prompts that one sample of CPU per step is averaged over.
        firsts: First tokens, and idle sessions, of which one sample is the median.
        events: Facts of the long session that is loaded.
        stored: Sessions that are listed.
        flood_bytes: What a command prints.
        edit_bytes: Of the file that is edited.
        tree_files: Files of the tree that is searched.
        stall_s: How long the client does not read.
        ceiling: Ready-made lines that show what the client can take.
    """

    stream: int = 10_000
    flood: int = 40_000
    sessions: int = 8
    crowd: int = 1_000
    paced: int = 200
    pause_ms: float = 2.0
    many_turns: int = 1_000
    few_turns: int = 10
    turns: int = 20
    firsts: int = 21
    events: int = 100_000
    stored: int = 10_000
    flood_bytes: int = 200_000_000
    edit_bytes: int = 50_000_000
    tree_files: int = 100_000
    stall_s: float = 3.0
    ceiling: int = 50_000


QUICK = Sizes(
    stream=300,
    flood=20_000,
    crowd=50,
    paced=20,
    many_turns=30,
    few_turns=5,
    turns=3,
    firsts=3,
    events=1_000,
    stored=60,
    flood_bytes=1_000_000,
    edit_bytes=100_000,
    tree_files=300,
    stall_s=0.5,
    ceiling=5_000,
)
