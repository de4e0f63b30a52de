"""Which figures there are, and what they have to reach: the rows of the table, one line each."""

from dataclasses import dataclass
from typing import Final, Literal

from bench.agents import ANTHROPIC, BLAST, OPENAI, SCRIPTED

Goal = Literal["sdk<=", "sdk>=", "sdk", "<=", ""]
"""What must and aim are held against: the ratio to the SDK anchor, at most or at least; the value itself.

Without a sign nothing is held against anything; `sdk` shows the ratio all the same.
"""

ALONE: Final = "alone"
FIRST: Final = "first"
CROWD: Final = "crowd"
STALL: Final = "stall"
HISTORY: Final = "history"
STORE: Final = "store"
PROVIDER: Final = "provider"
REPLAY: Final = "replay"
LIST: Final = "list"
TOOLS: Final = "tools"
CEILING: Final = "ceiling"

SCENES: Final = {
    "start": ALONE,
    "scripted": ALONE,
    "openai": ALONE,
    "anthropic": ALONE,
    "first": FIRST,
    "provider": PROVIDER,
    "memory": ALONE,
    "cancel": CROWD,
    "eight": CROWD,
    "new": CROWD,
    "store": STORE,
    "replay": REPLAY,
    "list": LIST,
    "history": HISTORY,
    "tools": TOOLS,
    "stall": STALL,
    "exit": ALONE,
    "client": CEILING,
}
"""Part, as `--only` names it → the scene it is measured in."""

PARTS: Final = tuple(SCENES)


@dataclass(frozen=True)
class Figure:
    """One row of the table.

    Attributes:
        part: What `--only` names.
        agent: Whose row it is.
        name: What the scene calls the value.
        must: The limit.
        aim: What would be good, where that is more.
    """

    part: str
    agent: str
    name: str
    title: str
    goal: Goal = ""
    must: float | None = None
    aim: float | None = None

    @property
    def scene(self) -> str:
        return SCENES[self.part]

    @property
    def of_sdk(self) -> bool:
        return self.goal.startswith("sdk")

    @property
    def more_is_better(self) -> bool:
        return self.goal.endswith(">=")


FIGURES: Final = (
    Figure("start", SCRIPTED, "start.cpu_ms", "CPU ms to the initialize answer", "sdk<=", 0.5, 0.42),
    Figure("start", SCRIPTED, "ready.cpu_ms", "CPU ms to the session/new answer", "sdk<=", 0.5),
    Figure("start", SCRIPTED, "ready.ms", "wall ms to the session/new answer", "sdk"),
    Figure("scripted", SCRIPTED, "stream.per_s", "scripted: deltas/s", "sdk>=", 6, 10),
    Figure("scripted", SCRIPTED, "stream.cpu_us", "scripted: CPU us per delta", "sdk<=", 0.15, 0.10),
    Figure("openai", OPENAI, "stream.per_s", "openai: deltas/s", "sdk>=", 3, 5),
    Figure("openai", OPENAI, "stream.cpu_us", "openai: CPU us per delta", "sdk<=", 0.3, 0.2),
    Figure("anthropic", ANTHROPIC, "stream.per_s", "anthropic: deltas/s", "sdk>=", 2.5, 5),
    Figure("anthropic", ANTHROPIC, "stream.cpu_us", "anthropic: CPU us per delta", "sdk<=", 0.4, 0.2),
    Figure("first", OPENAI, "first.ms", "server's first byte to our first update, ms, openai", "<=", 5, 1),
    Figure("first", ANTHROPIC, "first.ms", "- anthropic", "<=", 5, 1),
    Figure(
        "first", OPENAI, "first.cold_ms", "cold: session/new answer to the model's first byte, ms, openai"
    ),
    Figure("first", ANTHROPIC, "first.cold_ms", "- anthropic"),
    Figure("first", OPENAI, "first.new_ms", "session/new while a provider warms up, ms, openai"),
    Figure("first", OPENAI, "first.new_ratio", "- over idle, openai", "<=", 3),
    Figure("first", ANTHROPIC, "first.new_ratio", "- over idle, anthropic", "<=", 3),
    Figure("provider", OPENAI, "provider.cpu_us", "openai alone: CPU us per delta"),
    Figure("provider", OPENAI, "provider.ratio", "- over the SDK's typed stream", "<=", 0.25),
    Figure("provider", ANTHROPIC, "provider.cpu_us", "anthropic alone: CPU us per delta"),
    Figure("provider", ANTHROPIC, "provider.ratio", "- over the SDK's typed stream", "<=", 0.25),
    Figure("memory", SCRIPTED, "memory.idle_mb", "MB idle, no provider SDK", "sdk<=", 1.15, 1.0),
    Figure("memory", OPENAI, "memory.warm_mb", "MB with the provider SDK loaded", "sdk<=", 1.6),
    Figure("memory", SCRIPTED, "memory.peak_mb", "MB at most, scripted stream", "sdk"),
    Figure("memory", OPENAI, "memory.peak_mb", "MB at most, openai stream", "sdk"),
    Figure("cancel", OPENAI, "cancel.paced_ms", "cancel, ms, openai paced", "<=", 50, 10),
    Figure("cancel", SCRIPTED, "cancel.unpaced_ms", "cancel, ms, scripted", "<=", 20),
    Figure("cancel", OPENAI, "cancel.unpaced_ms", "cancel, ms, openai", "<=", 20),
    Figure("cancel", SCRIPTED, "cancel.unpaced_between", "- updates before the answer, scripted", "<=", 200),
    Figure("cancel", OPENAI, "cancel.unpaced_between", "- updates before the answer, openai", "<=", 200),
    Figure("cancel", SCRIPTED, "cancel.unpaced_after", "- updates after the answer, scripted", "<=", 0),
    Figure("cancel", OPENAI, "cancel.unpaced_after", "- updates after the answer, openai", "<=", 0),
    Figure("cancel", OPENAI, "cancel.paced_after", "- updates after the answer, openai paced", "<=", 0),
    Figure("eight", SCRIPTED, "eight.spread", "8 sessions: last/first, scripted", "<=", 1.5),
    Figure("eight", OPENAI, "eight.spread_paced", "8 sessions: last/first, openai paced", "<=", 1.5),
    Figure("eight", OPENAI, "eight.spread", "8 sessions: last/first, openai"),
    Figure("new", SCRIPTED, "new.idle_ms", "session/new, ms, scripted idle", "sdk"),
    Figure("new", SCRIPTED, "new.busy_ms", "session/new, ms, in a scripted stream", "sdk"),
    Figure("new", SCRIPTED, "new.ratio", "- stream/idle, scripted", "<=", 5, 1),
    Figure("new", OPENAI, "new.busy_ms", "session/new, ms, in an openai stream", "sdk"),
    Figure("new", OPENAI, "new.ratio", "- stream/idle, openai", "<=", 5, 1),
    Figure("store", SCRIPTED, "store.stream_us", "us per delta, stored behind the stream"),
    Figure("store", SCRIPTED, "store.stream_ratio", "- over a store in memory", "<=", 1.25),
    Figure("store", SCRIPTED, "store.cpu_ratio", "- CPU over a store in memory, turn end too", "<=", 1.25),
    Figure("store", SCRIPTED, "store.stored_ratio", "- until it is on disk, over one in memory"),
    Figure("store", SCRIPTED, "store.syncs", "fsyncs of a turn of 10,000 deltas", "<=", 1),
    Figure("store", SCRIPTED, "store.persist_ms", "ms to bring 10,000 deltas to disk at once"),
    Figure("store", SCRIPTED, "store.persist_ratio", "- over a row per delta, one fsync", "<=", 0.3),
    Figure("store", SCRIPTED, "store.bytes", "bytes on disk per delta, of a whole turn"),
    Figure("store", SCRIPTED, "store.bytes_ratio", "- over a row per delta", "<=", 0.35),
    Figure(
        "store", SCRIPTED, "store.slow_bytes_ratio", "- ten deltas a write, over a row per delta", "<=", 0.35
    ),
    Figure("replay", SCRIPTED, "replay.ms", "session/load of 100,000 events, ms"),
    Figure("replay", SCRIPTED, "replay.ratio", "- over parsing each with pydantic", "<=", 0.2),
    Figure("replay", SCRIPTED, "replay.cpu_ms", "- CPU ms"),
    Figure("replay", SCRIPTED, "replay.cpu_ratio", "- CPU over parsing each with pydantic", "<=", 0.2),
    Figure("replay", SCRIPTED, "replay.event_bytes", "- bytes per event, over idle", "<=", 400),
    Figure("replay", SCRIPTED, "replay.peak_bytes", "- bytes per event at most, over idle"),
    Figure("list", SCRIPTED, "list.ms", "session/list of 10,000 sessions, a page, ms"),
    Figure("list", SCRIPTED, "list.ratio", "- over stat of all, header of each shown", "<=", 2),
    Figure("list", SCRIPTED, "list.cpu_ratio", "- CPU over the same", "<=", 2),
    Figure("history", SCRIPTED, "history.many_ms", "CPU ms a step after 1,000 turns, scripted"),
    Figure("history", SCRIPTED, "history.ratio", "- over 10 turns, scripted", "<=", 1.3),
    Figure("history", OPENAI, "history.many_ms", "CPU ms a step after 1,000 turns, openai"),
    Figure("history", OPENAI, "history.ratio", "- over 10 turns, openai", "<=", 1.3),
    Figure("tools", SCRIPTED, "command.s", "a command that prints 200 MB, s"),
    Figure("tools", SCRIPTED, "command.ratio", "- over reading its pipe", "<=", 2),
    Figure("tools", SCRIPTED, "command.grown_mb", "- MB grown at most", "<=", 64),
    Figure("tools", SCRIPTED, "edit.s", "a line of a file of 50 MB changed, s"),
    Figure("tools", SCRIPTED, "edit.ratio", "- over reading it and writing it back", "<=", 3),
    Figure("tools", SCRIPTED, "edit.kernel_ratio", "- over a copy made by the kernel"),
    Figure("tools", SCRIPTED, "search.s", "search through 100,000 files, s"),
    Figure("tools", SCRIPTED, "search.ratio", "- over bare ripgrep", "<=", 1.3),
    Figure("stall", SCRIPTED, "stall.grown_mb", "client stalls: MB grown, scripted"),
    Figure("stall", OPENAI, "stall.grown_mb", "client stalls: MB grown, openai"),
    Figure("stall", SCRIPTED, "stall.cancel_ms", "- then ms to the cancelled answer, scripted"),
    Figure("stall", OPENAI, "stall.cancel_ms", "- then ms to the cancelled answer, openai"),
    Figure("stall", OPENAI, "stall.new_ms", "- then ms to a session/new answer, openai"),
    Figure("stall", OPENAI, "stall.piled_up", "- updates read before these, openai"),
    Figure("exit", SCRIPTED, "exit.ms", "ms from end of input to exit, scripted", "sdk"),
    Figure("exit", OPENAI, "exit.ms", "ms from end of input to exit, openai", "sdk"),
    Figure("client", BLAST, "ceiling.per_s", "the client's own ceiling: updates/s"),
)
