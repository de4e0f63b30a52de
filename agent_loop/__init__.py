"""An event-sourced ReAct loop: call the model, run its tools, repeat; everything else is a plugin.

This is the front door: what other packages use, they import from here.
"""

from agent_loop.agent.agent import AgentOptions, ReactLoopAgent
from agent_loop.agent.registry import AgentHandle
from agent_loop.cards import Card, CardCode, CardDiff, CardItem, CardOutput, CardStatus, CardText, Location
from agent_loop.chunks import Chunk, Finish, ReasoningDelta, TextDelta
from agent_loop.config.load import Loaded, load_settings, state_dir
from agent_loop.errors import (
    Busy,
    ConfigError,
    Disposed,
    Duplicate,
    ErrorKind,
    HarnessError,
    NotFound,
    ProviderError,
    StoreError,
)
from agent_loop.events.bus import Bus
from agent_loop.events.contain import stray_cancel, supervise
from agent_loop.events.facts import (
    AssistantChunk,
    AssistantRun,
    EndReason,
    Exit,
    LoggedFact,
    LogRow,
    Outcome,
    PermissionAsked,
    PermissionDecided,
    PermissionMode,
    SessionMode,
    SessionTitle,
    SteeringMessage,
    ToolCall,
    ToolResult,
    ToolStarted,
    TurnEnd,
    TurnStart,
    UserMessage,
)
from agent_loop.events.facts_json import chunk_to_json, row_to_json
from agent_loop.events.moments import (
    AgentFailed,
    Discarded,
    Moment,
    Pace,
    Queued,
    StatusChanged,
    Steered,
    StepEnded,
    StepStarted,
    ToolOutput,
    TurnEnded,
    TurnFlushed,
    TurnStarted,
    Warned,
)
from agent_loop.harness import Harness, open_grants, open_harness, open_store, same_directory
from agent_loop.jsonvalue import clean_text, thaw_json
from agent_loop.llm.provider import STREAM, ModelRequest
from agent_loop.messages import Content, Text, text_of
from agent_loop.persistence.store import Page, SessionSummary, Store
from agent_loop.plugins.permission.approver import Approver, Decision, PermissionRequest
from agent_loop.session.header import SessionHeader, header_to_json
from agent_loop.session.invariants import InvariantError, Invariants
from agent_loop.session.repair import closers
from agent_loop.session.titles import one_line, title_from

__all__ = [
    "STREAM",
    "AgentFailed",
    "AgentHandle",
    "AgentOptions",
    "Approver",
    "AssistantChunk",
    "AssistantRun",
    "Bus",
    "Busy",
    "Card",
    "CardCode",
    "CardDiff",
    "CardItem",
    "CardOutput",
    "CardStatus",
    "CardText",
    "Chunk",
    "ConfigError",
    "Content",
    "Decision",
    "Discarded",
    "Disposed",
    "Duplicate",
    "EndReason",
    "ErrorKind",
    "Exit",
    "Finish",
    "Harness",
    "HarnessError",
    "InvariantError",
    "Invariants",
    "Loaded",
    "Location",
    "LogRow",
    "LoggedFact",
    "ModelRequest",
    "Moment",
    "NotFound",
    "Outcome",
    "Pace",
    "Page",
    "PermissionAsked",
    "PermissionDecided",
    "PermissionMode",
    "PermissionRequest",
    "ProviderError",
    "Queued",
    "ReactLoopAgent",
    "ReasoningDelta",
    "SessionHeader",
    "SessionMode",
    "SessionSummary",
    "SessionTitle",
    "StatusChanged",
    "Steered",
    "SteeringMessage",
    "StepEnded",
    "StepStarted",
    "Store",
    "StoreError",
    "Text",
    "TextDelta",
    "ToolCall",
    "ToolOutput",
    "ToolResult",
    "ToolStarted",
    "TurnEnd",
    "TurnEnded",
    "TurnFlushed",
    "TurnStart",
    "TurnStarted",
    "UserMessage",
    "Warned",
    "chunk_to_json",
    "clean_text",
    "closers",
    "header_to_json",
    "load_settings",
    "one_line",
    "open_grants",
    "open_harness",
    "open_store",
    "row_to_json",
    "same_directory",
    "state_dir",
    "stray_cancel",
    "supervise",
    "text_of",
    "thaw_json",
    "title_from",
]
