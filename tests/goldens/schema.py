"""Checks every frame, both directions, against the public Python SDK's models of the protocol.

Owns the table from method to model, and the list of what those models don't know yet. A model is asked twice:
it must accept the value, and writing it out again must give the same value back. The second question finds
misspelt optional names (models drop them) and values a lenient validator silently threw away.
What the editor sends wrong on purpose is told by the agent's answer: -32700 and -32600 to -32602.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from acp import schema as s
from pydantic import TypeAdapter, ValidationError

from tests.doubles.transcript import Frame, Line, request_id_key

__all__ = ["UNKNOWN_TO_THE_SDK", "schema_faults"]

Model = Any  # a model class, or a union of some

# Methods the agent answers: params, result (None: a notification).
AGENT: dict[str, tuple[tuple[Model, ...], Model | None]] = {
    "initialize": ((s.InitializeRequest,), s.InitializeResponse),
    "authenticate": ((s.AuthenticateRequest,), s.AuthenticateResponse),
    "logout": ((s.LogoutRequest,), s.LogoutResponse),
    "session/new": ((s.NewSessionRequest,), s.NewSessionResponse),
    "session/load": ((s.LoadSessionRequest,), s.LoadSessionResponse),
    "session/resume": ((s.ResumeSessionRequest,), s.ResumeSessionResponse),
    "session/list": ((s.ListSessionsRequest,), s.ListSessionsResponse),
    "session/close": ((s.CloseSessionRequest,), s.CloseSessionResponse),
    "session/delete": ((s.DeleteSessionRequest,), s.DeleteSessionResponse),
    "session/fork": ((s.ForkSessionRequest,), s.ForkSessionResponse),
    "session/prompt": ((s.PromptRequest,), s.PromptResponse),
    "session/cancel": ((s.CancelNotification,), None),
    "session/set_mode": ((s.SetSessionModeRequest,), s.SetSessionModeResponse),
    "session/set_config_option": (
        (s.SetSessionConfigOptionSelectRequest, s.SetSessionConfigOptionBooleanRequest),
        s.SetSessionConfigOptionResponse,
    ),
    "$/cancel_request": ((s.CancelRequestNotification,), None),
}

# Methods the editor answers.
EDITOR: dict[str, tuple[tuple[Model, ...], Model | None]] = {
    "session/update": ((s.SessionNotification,), None),
    "session/request_permission": ((s.RequestPermissionRequest,), s.RequestPermissionResponse),
    "fs/read_text_file": ((s.ReadTextFileRequest,), s.ReadTextFileResponse),
    "fs/write_text_file": ((s.WriteTextFileRequest,), s.WriteTextFileResponse),
    "terminal/create": ((s.CreateTerminalRequest,), s.CreateTerminalResponse),
    "terminal/output": ((s.TerminalOutputRequest,), s.TerminalOutputResponse),
    "terminal/wait_for_exit": ((s.WaitForTerminalExitRequest,), s.WaitForTerminalExitResponse),
    "terminal/kill": ((s.KillTerminalRequest,), s.KillTerminalResponse),
    "terminal/release": ((s.ReleaseTerminalRequest,), s.ReleaseTerminalResponse),
    "elicitation/create": ((s.CreateElicitationRequest,), s.CreateElicitationResponse),
    "$/cancel_request": ((s.CancelRequestNotification,), None),
}

# Where the SDK's schema is older than the protocol: method, path below params or result, reason.
# A path names keys with dots; list positions are left out.
UNKNOWN_TO_THE_SDK: dict[tuple[str, str], str] = {
    ("session/update", "update.name"): "the tool's own name on a tool_call: stable since 2026-09-17",
    ("session/request_permission", "toolCall.name"): "the tool's own name: stable since 2026-09-17",
}

_ON_PURPOSE = frozenset({-32700, -32600, -32601, -32602})


def schema_faults(lines: Sequence[Line]) -> list[str]:
    """Every frame that is not what the protocol says; empty when all are."""
    faults: list[str] = []
    refused = {request_id_key(line.request_id) for line in lines if _refuses(line)}
    asked: dict[tuple[str, str], str] = {}  # who asked, id → method
    for number, line in enumerate(lines, 1):
        if line.frame is None:
            continue
        other = "agent" if line.sender == "editor" else "editor"
        if line.is_request:
            asked[line.sender, request_id_key(line.request_id)] = line.method or ""
        if line.raw is not None or (line.sender == "editor" and request_id_key(line.request_id) in refused):
            continue  # wrong on purpose, or written by hand

        method = line.method or asked.get((other, request_id_key(line.request_id)), "")
        found = _envelope(line.frame) if line.is_response else []
        found += _params_or_result(method, line)
        faults += [f"line {number}: {method or 'response'}: {fault}" for fault in found]
    return faults


def _refuses(line: Line) -> bool:
    error = (line.frame or {}).get("error")
    return line.sender == "agent" and isinstance(error, dict) and error.get("code") in _ON_PURPOSE


def _envelope(frame: Frame) -> list[str]:
    if ("result" in frame) == ("error" in frame):
        return ["a response has either a result or an error"]
    return [] if "result" in frame else list(_compare((s.Error,), frame["error"]))


def _params_or_result(method: str, line: Line) -> list[str]:
    frame = line.frame or {}
    if method.startswith("_") or (line.is_response and ("error" in frame or not method)):
        return []  # an extension, or an answer to a line that was no request

    handled_by_agent = (line.sender == "editor") != line.is_response
    entry = (AGENT if handled_by_agent else EDITOR).get(method)
    if entry is None:
        return ["no such method in this direction"]
    params, result = entry
    if line.is_response:
        return [] if result is None else _known(method, _compare((result,), frame["result"]))
    if line.is_request and result is None:
        return ["a notification must not carry an id"]
    return _known(method, _compare(params, frame.get("params")))


def _known(method: str, found: Iterator[str]) -> list[str]:
    faults = []
    for fault in found:
        path = fault.split(":", 1)[0]
        if (method, path) not in UNKNOWN_TO_THE_SDK:
            faults.append(fault)
    return faults


def _compare(models: Sequence[Model], value: Any) -> Iterator[str]:
    problem = ""
    for model in models:
        try:
            adapter = TypeAdapter(model)
            written = adapter.dump_python(
                adapter.validate_python(value), mode="json", by_alias=True, exclude_unset=True
            )
        except ValidationError as error:
            problem = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
            continue
        yield from _differences(value, written)
        return
    yield problem


def _differences(value: Any, written: Any, path: str = "") -> Iterator[str]:
    if isinstance(value, dict) and isinstance(written, dict):
        for key, item in value.items():
            where = f"{path}.{key}" if path else key
            if key not in written:
                yield f"{where}: unknown name, or a value no reader accepts"
            else:
                yield from _differences(item, written[key], where)
    elif isinstance(value, list) and isinstance(written, list) and len(value) == len(written):
        for item, other in zip(value, written, strict=True):
            yield from _differences(item, other, path)
    elif value != written:
        yield f"{path}: {value!r} is read as {written!r}"
