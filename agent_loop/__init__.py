"""An event-sourced ReAct loop: call the model, run its tools, repeat; everything else is a plugin.

This is the front door: what other packages use, they import from here.
"""

from agent_loop.agent.agent import AgentOptions, ReactLoopAgent
from agent_loop.agent.registry import AgentHandle
from agent_loop.cards import Card, CardCode, CardDiff, CardItem, CardOutput, CardStatus, CardText, Location
from agent_loop.chosen_model import ask_endpoint
from agent_loop.chunks import Chunk, Finish, ReasoningDelta, TextDelta, Usage
from agent_loop.config.load import Loaded, load_settings, state_dir
from agent_loop.config.resolve import (
    KeyPlace,
    ResolvedModel,
    find_model,
    find_provider,
    key_missing,
    providers_of,
)
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
    PlanChanged,
    RequestRetried,
    SessionMode,
    SessionModel,
    SessionTitle,
    SteeringMessage,
    ThoughtLevel,
    ToolCall,
    ToolResult,
    ToolStarted,
    TurnEnd,
    TurnStart,
    UsageRecorded,
    UserMessage,
)
from agent_loop.events.facts_json import chunk_to_json, row_to_json
from agent_loop.events.moments import (
    AgentFailed,
    Discarded,
    ModelsListed,
    Moment,
    Pace,
    Queued,
    StatusChanged,
    Steered,
    StepEnded,
    StepStarted,
    ToolOutput,
    ToolTerminal,
    TurnEnded,
    TurnFlushed,
    TurnStarted,
    Warned,
)
from agent_loop.harness import (
    Harness,
    find_ripgrep,
    open_grants,
    open_harness,
    open_store,
    same_directory,
)
from agent_loop.jsonvalue import clean_text, thaw_json
from agent_loop.llm.models import context_of
from agent_loop.llm.provider import STREAM, ModelRequest
from agent_loop.messages import Content, Image, Text, text_of
from agent_loop.model_choice import ModelState
from agent_loop.persistence.store import Page, SessionSummary, Store
from agent_loop.pictures import PICTURE_KINDS, PICTURE_LIMIT_BYTES, picture_kind
from agent_loop.plugins.permission.approver import Approver, Decision, PermissionRequest
from agent_loop.record import replace
from agent_loop.session.header import SessionHeader, header_to_json
from agent_loop.session.invariants import InvariantError, Invariants
from agent_loop.session.repair import closers
from agent_loop.session.titles import one_line, title_from
from agent_loop.sign_in import Way, model_to_use, open_credentials
from agent_loop.workspace.commands import Command, CommandLost, CommandResult
from agent_loop.workspace.files import Entry, FileAccess, FileTooLarge, Survey
from agent_loop.workspace.local_commands import PLAIN_PAGERS, is_secret
from agent_loop.workspace.output import BoundedOutput
from agent_loop.workspace.roots import Roots
from agent_loop.workspace.workspace import Workspace
from agent_loop.workspaces import sandbox_of, sandbox_trouble

__all__ = [
    "PICTURE_KINDS",
    "PICTURE_LIMIT_BYTES",
    "PLAIN_PAGERS",
    "STREAM",
    "AgentFailed",
    "AgentHandle",
    "AgentOptions",
    "Approver",
    "AssistantChunk",
    "AssistantRun",
    "BoundedOutput",
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
    "Command",
    "CommandLost",
    "CommandResult",
    "ConfigError",
    "Content",
    "Decision",
    "Discarded",
    "Disposed",
    "Duplicate",
    "EndReason",
    "Entry",
    "ErrorKind",
    "Exit",
    "FileAccess",
    "FileTooLarge",
    "Finish",
    "Harness",
    "HarnessError",
    "Image",
    "InvariantError",
    "Invariants",
    "KeyPlace",
    "Loaded",
    "Location",
    "LogRow",
    "LoggedFact",
    "ModelRequest",
    "ModelState",
    "ModelsListed",
    "Moment",
    "NotFound",
    "Outcome",
    "Pace",
    "Page",
    "PermissionAsked",
    "PermissionDecided",
    "PermissionMode",
    "PermissionRequest",
    "PlanChanged",
    "ProviderError",
    "Queued",
    "ReactLoopAgent",
    "ReasoningDelta",
    "RequestRetried",
    "ResolvedModel",
    "Roots",
    "SessionHeader",
    "SessionMode",
    "SessionModel",
    "SessionSummary",
    "SessionTitle",
    "StatusChanged",
    "Steered",
    "SteeringMessage",
    "StepEnded",
    "StepStarted",
    "Store",
    "StoreError",
    "Survey",
    "Text",
    "TextDelta",
    "ThoughtLevel",
    "ToolCall",
    "ToolOutput",
    "ToolResult",
    "ToolStarted",
    "ToolTerminal",
    "TurnEnd",
    "TurnEnded",
    "TurnFlushed",
    "TurnStart",
    "TurnStarted",
    "Usage",
    "UsageRecorded",
    "UserMessage",
    "Warned",
    "Way",
    "Workspace",
    "ask_endpoint",
    "chunk_to_json",
    "clean_text",
    "closers",
    "context_of",
    "find_model",
    "find_provider",
    "find_ripgrep",
    "header_to_json",
    "is_secret",
    "key_missing",
    "load_settings",
    "model_to_use",
    "one_line",
    "open_credentials",
    "open_grants",
    "open_harness",
    "open_store",
    "picture_kind",
    "providers_of",
    "replace",
    "row_to_json",
    "same_directory",
    "sandbox_of",
    "sandbox_trouble",
    "state_dir",
    "stray_cancel",
    "supervise",
    "text_of",
    "thaw_json",
    "title_from",
]
