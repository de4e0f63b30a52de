"""Facts to JSON rows and back: `{"seq", "time", "type", "data"}`, format version 1.

Owns the spelling of every fact on disk. Reading is strict: a row that does not fit raises, and
the store decides what a broken row means.
"""

from collections.abc import Callable
from typing import Any, Final, assert_never, get_args

from agent_loop import chunks as c
from agent_loop.cards import card_from_json, card_to_json
from agent_loop.events import facts as f
from agent_loop.jsonvalue import freeze_json, thaw_json
from agent_loop.messages import Json, content_from_json, content_to_json

FORMAT_VERSION: Final = 1

_DELTAS: Final[dict[str, type[c.TextDelta] | type[c.ReasoningDelta]]] = {
    "text": c.TextDelta,
    "reasoning": c.ReasoningDelta,
}


def fact_to_json(fact: f.LoggedFact) -> Json:
    """The row of one fact, ready for a serialiser."""
    return {"seq": fact.seq, "time": fact.time, "type": fact.TYPE, "data": _data_of(fact)}


def row_to_json(row: f.LogRow) -> Json:
    """The row of a fact, or of a run of deltas packed into one."""
    if not isinstance(row, f.AssistantRun):
        return fact_to_json(row)
    data = {
        "turn": row.turn,
        "step": row.step,
        "attempt": row.attempt,
        "index": row.index,
        "kind": "text" if row.delta is c.TextDelta else "reasoning",
        "texts": row.texts,
        "dt_ms": row.dt_ms,
    }
    return {"seq": row.seq, "time": row.time, "type": row.TYPE, "data": data}


def row_from_json(row: Any) -> f.LogRow:
    """What a row stands for; a packed run stays one.

    Raises:
        ValueError: The row is not one this version wrote; the message says why.
    """
    if not isinstance(row, dict) or row.get("type") != f.AssistantRun.TYPE:
        return fact_from_json(row)
    try:
        return _run_from_json(row)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ValueError(f"not a fact of format {FORMAT_VERSION}: {error!r}") from error


def fact_from_json(row: Any) -> f.LoggedFact:
    """The fact a row stands for, `seq` and `time` set.

    A row of a type this version does not know, which says that it may be ignored, keeps its place as
    a fact of a nameless plugin.

    Raises:
        ValueError: The row is not one this version can read; the message says why.
    """
    try:
        fact = (_READERS.get(row["type"]) or _ignorable(row["type"]))(row["data"])
        seq, time = row["seq"], row["time"]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ValueError(f"not a fact of format {FORMAT_VERSION}: {error!r}") from error

    if type(seq) is not int or type(time) is not int:
        raise ValueError("not a fact: seq and time must be integers")
    return placed(fact, seq, time)


def _ignorable(kind: str) -> Callable[[Json], f.LoggedFact]:
    def read(data: Json) -> f.LoggedFact:
        if data["ignorable"] is not True:
            raise ValueError(f"unknown type {kind!r}")
        return f.PluginFact("", kind, freeze_json(data))

    return read


def placed(fact: f.LoggedFact, seq: int, time: int) -> f.LoggedFact:
    """Stamp a fact's place and time; for the log, and for whoever reads a log back."""
    object.__setattr__(fact, "seq", seq)
    object.__setattr__(fact, "time", time)
    return fact


def chunk_to_json(chunk: c.Chunk) -> Json:
    """One chunk as JSON; `chunk_from_json` is the way back."""
    match chunk:
        case c.TextDelta(index, text):
            return {"type": "text-delta", "index": index, "text": text}
        case c.ReasoningDelta(index, text):
            return {"type": "reasoning-delta", "index": index, "text": text}
        case c.ToolCallDelta(index, call_id, name, arguments):
            return {
                "type": "tool-call-delta",
                "index": index,
                "id": call_id,
                "name": name,
                "arguments": arguments,
            }
        case c.BlockStart(index, kind):
            return {"type": "block-start", "index": index, "kind": kind}
        case c.BlockEnd(index, block, opaque):
            value: Json = {"type": "block-end", "index": index}
            if block is not None:
                value["block"] = content_to_json((block,))[0]
            if opaque is not None:
                value["opaque"] = thaw_json(opaque)
            return value
        case c.UsageChunk(usage):
            return {"type": "usage", "usage": _usage_to_json(usage)}
        case c.Finish(kind="error") as finish:
            return {
                "type": "finish",
                "kind": "error",
                "message": finish.message,
                "errorKind": finish.error_kind,
            }
        case c.Finish(kind):
            return {"type": "finish", "kind": kind}
        case _:
            assert_never(chunk)


def chunk_from_json(value: Json) -> c.Chunk:
    """A chunk from what `chunk_to_json` wrote.

    Raises:
        KeyError, TypeError, ValueError: The value was not written by this house.
    """
    match value["type"]:
        case "text-delta":
            return c.TextDelta(value["index"], value["text"])
        case "reasoning-delta":
            return c.ReasoningDelta(value["index"], value["text"])
        case "tool-call-delta":
            return c.ToolCallDelta(value["index"], value["id"], value["name"], value["arguments"])
        case "block-start":
            return c.BlockStart(value["index"], value["kind"])
        case "block-end":
            block = value.get("block")
            content = None if block is None else content_from_json([block])[0]
            return c.BlockEnd(value["index"], content, value.get("opaque"))
        case "usage":
            return c.UsageChunk(_usage_from_json(value["usage"]))
        case "finish":
            return c.Finish(value["kind"], value.get("message", ""), value.get("errorKind", "unknown"))
        case other:
            raise ValueError(f"unknown chunk type {other!r}")


def _data_of(fact: f.LoggedFact) -> Json:
    match fact:
        case f.AssistantChunk(turn=turn, step=step, attempt=attempt, chunk=chunk):
            return {"turn": turn, "step": step, "attempt": attempt, "chunk": chunk_to_json(chunk)}
        case f.TurnStart(turn, trigger, message_ids):
            source = {"kind": trigger.kind, "source": thaw_json(trigger.source)}
            return {"turn": turn, "trigger": source, "messageIds": list(message_ids)}
        case f.TurnEnd(turn, reason):
            return {"turn": turn, "reason": _reason_to_json(reason)}
        case f.StepStart(turn, step) | f.StepEnd(turn, step):
            return {"turn": turn, "step": step}
        case f.UserMessage(turn, message_id, content, source) | f.SteeringMessage(
            turn, message_id, content, source
        ):
            return {
                "turn": turn,
                "id": message_id,
                "content": content_to_json(content),
                "source": thaw_json(source),
            }
        case f.ContextMessage(turn, content, source):
            return {"turn": turn, "content": content_to_json(content), "source": thaw_json(source)}
        case f.AssistantMessage(turn, step, attempt, content, interrupted):
            return {
                "turn": turn,
                "step": step,
                "attempt": attempt,
                "content": content_to_json(content),
                "interrupted": interrupted,
            }
        case f.ToolCall(turn, step, call_id, name, arguments, card):
            return {
                "turn": turn,
                "step": step,
                "callId": call_id,
                "name": name,
                "arguments": arguments,
                "card": None if card is None else card_to_json(card),
            }
        case f.ToolStarted(turn, step, call_id):
            return {"turn": turn, "step": step, "callId": call_id}
        case f.ToolResult():
            return _result_to_json(fact)
        case f.PermissionAsked(turn, step, call_id, options, rule):
            value = {"turn": turn, "step": step, "callId": call_id, "options": list(options)}
            return value if rule is None else {**value, "rule": rule}
        case f.PermissionDecided(turn, step, call_id, allowed, by, option, rule):
            value = {
                "turn": turn,
                "step": step,
                "callId": call_id,
                "allowed": allowed,
                "by": by,
                "option": option,
            }
            return value if rule is None else {**value, "rule": rule}
        case f.PlanChanged(turn, step, entries):
            listed = [{"content": it.content, "priority": it.priority, "status": it.status} for it in entries]
            return {"turn": turn, "step": step, "entries": listed}
        case f.UsageRecorded():
            return _usage_fact_to_json(fact)
        case f.ErrorRecorded(turn, message, code, kind):
            value = {"turn": turn, "message": message, "code": code}
            return value if kind is None else {**value, "kind": kind}
        case f.RequestRetried(turn, step, attempt, kind, message, delay_ms, shown):
            return {
                "turn": turn,
                "step": step,
                "attempt": attempt,
                "kind": kind,
                "message": message,
                "delayMs": delay_ms,
                "shown": shown,
            }
        case f.SessionTitle(title, by):
            return {"title": title, "by": by}
        case f.SessionMode(mode):
            return {"mode": mode}
        case f.SessionModel(model, thought):
            return {"model": model} if thought is None else {"model": model, "thought": thought}
        case f.PluginFact(plugin, kind, data):
            return {"plugin": plugin, "kind": kind, "data": thaw_json(data), "ignorable": True}
        case _:
            assert_never(fact)


def _run_from_json(row: Json) -> f.AssistantRun:
    d, seq, time = row["data"], row["seq"], row["time"]
    if type(seq) is not int or type(time) is not int:
        raise ValueError("seq and time must be integers")

    run = f.AssistantRun(d["turn"], d["step"], d["attempt"], d["index"], _DELTAS[d["kind"]], seq, time)
    run.texts, run.dt_ms = d["texts"], d["dt_ms"]
    if not run.texts or len(run.texts) != len(run.dt_ms):
        raise ValueError("texts and dt_ms must be as long as each other, and not empty")
    if {*map(type, run.texts)} != {str} or {*map(type, run.dt_ms)} != {int}:
        raise ValueError("texts must be text, and dt_ms integers")
    run.last_time = run.time + sum(run.dt_ms)
    return run


def _reason_to_json(reason: f.EndReason) -> Json:
    match reason.kind:
        case "aborted":
            return {"kind": "aborted", "cause": reason.cause, "text": reason.text}
        case "error":
            value: Json = {"kind": "error", "errorKind": reason.error_kind, "message": reason.message}
            return value if reason.data is None else {**value, "data": thaw_json(reason.data)}
        case kind:
            return {"kind": kind}


def _reason_from_json(value: Json) -> f.EndReason:
    data = value.get("data")
    return f.EndReason(
        kind=value["kind"],
        cause=value.get("cause"),
        text=value.get("text", ""),
        error_kind=value.get("errorKind"),
        message=value.get("message", ""),
        data=None if data is None else freeze_json(data),
    )


def _result_to_json(fact: f.ToolResult) -> Json:
    value: Json = {
        "turn": fact.turn,
        "step": fact.step,
        "callId": fact.call_id,
        "content": content_to_json(fact.content),
        "isError": fact.is_error,
        "outcome": fact.outcome,
        "card": None if fact.card is None else card_to_json(fact.card),
    }
    if fact.error_code is not None:
        value["errorCode"] = fact.error_code
    if fact.exit is not None:
        value["exit"] = {"code": fact.exit.code, "signal": fact.exit.signal, "timedOut": fact.exit.timed_out}
    return value


def _result_from_json(d: Json) -> f.ToolResult:
    ended, card = d.get("exit"), d["card"]
    return f.ToolResult(
        turn=d["turn"],
        step=d["step"],
        call_id=d["callId"],
        content=content_from_json(d["content"]),
        is_error=d["isError"],
        outcome=d["outcome"],
        error_code=d.get("errorCode"),
        exit=None if ended is None else f.Exit(ended["code"], ended["signal"], ended["timedOut"]),
        card=None if card is None else card_from_json(card),
    )


def _usage_to_json(usage: c.Usage) -> Json:
    return {
        "inputTokens": usage.input_tokens,
        "outputTokens": usage.output_tokens,
        "cacheReadTokens": usage.cache_read_tokens,
        "cacheWriteTokens": usage.cache_write_tokens,
        "reasoningTokens": usage.reasoning_tokens,
    }


def _usage_from_json(d: Json) -> c.Usage:
    return c.Usage(
        d["inputTokens"], d["outputTokens"], d["cacheReadTokens"], d["cacheWriteTokens"], d["reasoningTokens"]
    )


def _usage_fact_to_json(fact: f.UsageRecorded) -> Json:
    value: Json = {"turn": fact.turn, "step": fact.step, "usage": _usage_to_json(fact.usage)}
    if fact.window is not None:
        value["window"] = fact.window
    if fact.cost is not None:
        cost = fact.cost
        value["cost"] = {"amount": cost.amount, "total": cost.total, "currency": cost.currency}
    return value


def _usage_fact_from_json(d: Json) -> f.UsageRecorded:
    cost = d.get("cost")
    return f.UsageRecorded(
        d["turn"],
        d["step"],
        _usage_from_json(d["usage"]),
        d.get("window"),
        None if cost is None else f.Cost(cost["amount"], cost["total"], cost["currency"]),
    )


def _tool_call_from_json(d: Json) -> f.ToolCall:
    card = None if d["card"] is None else card_from_json(d["card"])
    return f.ToolCall(d["turn"], d["step"], d["callId"], d["name"], d["arguments"], card)


def _mode_from_json(d: Json) -> f.SessionMode:
    # What it lets happen unasked is worth a look at the word.
    if d["mode"] not in get_args(f.PermissionMode):
        raise ValueError(f"unknown mode {d['mode']!r}")
    return f.SessionMode(d["mode"])


def _model_from_json(d: Json) -> f.SessionModel:
    thought = d.get("thought")
    if thought is not None and thought not in get_args(f.ThoughtLevel):
        raise ValueError(f"unknown thought level {thought!r}")
    return f.SessionModel(d["model"], thought)


def _turn_start_from_json(d: Json) -> f.TurnStart:
    trigger = f.Trigger(d["trigger"]["kind"], freeze_json(d["trigger"]["source"]))
    return f.TurnStart(d["turn"], trigger, tuple(d["messageIds"]))


_READERS: Final[dict[str, Callable[[Json], f.LoggedFact]]] = {
    f.TurnStart.TYPE: _turn_start_from_json,
    f.TurnEnd.TYPE: lambda d: f.TurnEnd(d["turn"], _reason_from_json(d["reason"])),
    f.StepStart.TYPE: lambda d: f.StepStart(d["turn"], d["step"]),
    f.StepEnd.TYPE: lambda d: f.StepEnd(d["turn"], d["step"]),
    f.UserMessage.TYPE: lambda d: f.UserMessage(
        d["turn"], d["id"], content_from_json(d["content"]), freeze_json(d["source"])
    ),
    f.SteeringMessage.TYPE: lambda d: f.SteeringMessage(
        d["turn"], d["id"], content_from_json(d["content"]), freeze_json(d["source"])
    ),
    f.ContextMessage.TYPE: lambda d: f.ContextMessage(
        d["turn"], content_from_json(d["content"]), freeze_json(d["source"])
    ),
    f.AssistantChunk.TYPE: lambda d: f.AssistantChunk(
        d["turn"], d["step"], d["attempt"], chunk_from_json(d["chunk"])
    ),
    f.AssistantMessage.TYPE: lambda d: f.AssistantMessage(
        d["turn"], d["step"], d["attempt"], content_from_json(d["content"]), d["interrupted"]
    ),
    f.ToolCall.TYPE: _tool_call_from_json,
    f.ToolStarted.TYPE: lambda d: f.ToolStarted(d["turn"], d["step"], d["callId"]),
    f.ToolResult.TYPE: _result_from_json,
    f.PermissionAsked.TYPE: lambda d: f.PermissionAsked(
        d["turn"], d["step"], d["callId"], tuple(d["options"]), d.get("rule")
    ),
    f.PermissionDecided.TYPE: lambda d: f.PermissionDecided(
        d["turn"], d["step"], d["callId"], d["allowed"], d["by"], d["option"], d.get("rule")
    ),
    f.PlanChanged.TYPE: lambda d: f.PlanChanged(
        d["turn"],
        d["step"],
        tuple(f.PlanEntry(it["content"], it["priority"], it["status"]) for it in d["entries"]),
    ),
    f.UsageRecorded.TYPE: _usage_fact_from_json,
    f.ErrorRecorded.TYPE: lambda d: f.ErrorRecorded(d["turn"], d["message"], d["code"], d.get("kind")),
    f.RequestRetried.TYPE: lambda d: f.RequestRetried(
        d["turn"], d["step"], d["attempt"], d["kind"], d["message"], d["delayMs"], d["shown"]
    ),
    f.SessionTitle.TYPE: lambda d: f.SessionTitle(d["title"], d["by"]),
    f.SessionMode.TYPE: _mode_from_json,
    f.SessionModel.TYPE: _model_from_json,
    f.PluginFact.TYPE: lambda d: f.PluginFact(d["plugin"], d["kind"], freeze_json(d["data"])),
}
