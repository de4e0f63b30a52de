"""Runs one golden from its folder to its outcome.

Owns the order of a run:
1. lay out the places, start the server, play the steps; when the process lives on, settle once more.
   The transcript up to here is what `then/` shows;
2. unless the golden ended the process, one more session must answer one more prompt (standing check 4);
3. close the server's stdin, read what it says to its very end, collect facts and workspace;
4. unless a process was killed, a second server loads each session from a copy of the state directory.
Whether the outcome is right is for `verdict`.
"""

from __future__ import annotations

import json
import shutil
import sys
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from tests.doubles.editor import Editor
from tests.doubles.transcript import Frame, Line, is_update, request_id_key
from tests.goldens.control import PROBE, Control
from tests.goldens.faults import transcript_faults
from tests.goldens.golden import Golden, GoldenError, Json
from tests.goldens.places import Places, files_below
from tests.goldens.player import Player
from tests.goldens.replay import unanswered_sessions
from tests.goldens.schema import schema_faults
from tests.goldens.stored import stored_facts

__all__ = ["SERVER", "Outcome", "run_golden"]

SERVER = (sys.executable, "-m", "acp_server")
_INITIALIZE: Frame = {"protocolVersion": 1, "clientCapabilities": {}}


@dataclass
class Outcome:
    """What came of a run.

    Attributes:
        transcript: Every line of every process the golden drove, the probe's included.
        shown: How many of these lines are the golden's own.
        sessions: Session ids in order of first appearance.
        replays: Session id → the updates of its load in a second process, or why there are none.
        faults: What went wrong with the run itself.
    """

    places: Places
    transcript: list[Line]
    shown: int
    sessions: list[str]
    facts: dict[str, list[Json]]
    workspace: dict[str, str]
    stderr: str
    replays: dict[str, list[Json] | str]
    faults: list[str]


def run_golden(
    golden: Golden, root: Path, server: Sequence[str] = SERVER, timeout_s: float = 10.0
) -> Outcome:
    """Run a golden against a real server process.

    Raises:
        GoldenError, EditorError: A step made no sense, would be a race, or waited in vain.
    """
    places = Places(root)
    cwd = json.dumps(str(places.cwd))[1:-1]
    script: list[Json] = json.loads(json.dumps(golden.script).replace("$cwd", cwd))
    script.append({"session": PROBE, "do": [{"text": "Still here."}, {"finish": "stop"}]})
    with ExitStack() as stack:
        changed = threading.Condition()
        control = Control(script, changed)
        stack.callback(control.close)
        places.lay_out(golden, script, control.address)
        argv = [*server, "--state-dir", str(places.state)]
        editor = Editor(argv, cwd=places.home, env=places.environment(), timeout_s=timeout_s, changed=changed)
        editor.problems = control.faults  # an unexpected model call fails the very next wait
        stack.callback(editor.close)
        outcome = _play(golden, places, editor, control)

    if outcome.replays:
        _reload(outcome, editor)
    return outcome


def _play(golden: Golden, places: Places, editor: Editor, control: Control) -> Outcome:
    player = Player(editor, control, places.cwd, places.state)
    editor.start()
    for step in golden.steps:
        player.play(step)

    if not player.exited:
        player.settle()
        player.rest.check_all_answered()
    elif not editor.has_exited:
        raise GoldenError("the golden ends the process but has no exit step that checks its code")
    shown = len(editor.transcript)
    faults = [] if player.exited else _say_farewell(golden, places, editor, control)
    faults += editor.problems + [f"the model was never asked for {line}" for line in control.leftovers()]

    facts = stored_facts(places.state)
    facts.pop(control.probe_session or "", None)
    sessions = control.sessions + sorted(facts.keys() - set(control.sessions))
    may_reload = _loads(editor.transcript) and not player.killed and "no-reload" not in golden.allows
    known = _cwds(editor.transcript[:shown]) if may_reload else {}
    return Outcome(
        places=places,
        transcript=editor.transcript,
        shown=shown,
        sessions=sessions,
        facts=facts,
        workspace=files_below(places.cwd),
        stderr=editor.stderr,
        replays=dict.fromkeys(known, "it was not loaded"),
        faults=faults,
    )


def _say_farewell(golden: Golden, places: Places, editor: Editor, control: Control) -> list[str]:
    """Standing check 4, then the end of the process."""
    faults = [] if "no-probe" in golden.allows else _probe(places, editor, control)
    editor.eof()
    code = editor.wait_exit()
    return faults if code == 0 else [*faults, f"the server exited with {code} at the end of its input"]


def _probe(places: Places, editor: Editor, control: Control) -> list[str]:
    ends = [i for i, line in enumerate(editor.transcript) if (line.event or {}).get("event") == "exit"]
    if not _results_of(editor.transcript[ends[-1] if ends else 0 :], "initialize"):
        editor.call("initialize", _INITIALIZE)
    new = editor.call("session/new", {"cwd": str(places.cwd), "mcpServers": []})
    if "result" not in new:
        return [f"no further session can be made (check 4): {new['error']}"]

    control.probe_session = new["result"]["sessionId"]
    prompt = [{"type": "text", "text": "Are you still there?"}]
    answer = editor.call("session/prompt", {"sessionId": control.probe_session, "prompt": prompt})
    if answer.get("result", {}).get("stopReason") != "end_turn":
        return [f"a further prompt is not answered (check 4): {answer}"]
    return []


def _reload(outcome: Outcome, first: Editor) -> None:
    """Load each session in a second process; what it replays goes into the outcome."""
    copy = outcome.places.root / "state-copy"
    shutil.copytree(outcome.places.state, copy)
    argv = [*first.argv[:-1], str(copy)]
    second = Editor(argv, cwd=first.cwd, env=first.env, timeout_s=first.timeout_s)
    try:
        second.start()
        second.call("initialize", _as_the_last(outcome.transcript))
        skipped = unanswered_sessions(outcome.transcript)
        cwds = _cwds(outcome.transcript)
        outcome.replays = {session: "" for session in outcome.replays if session not in skipped}
        for session in outcome.replays:
            start = len(second.transcript)
            params = {"sessionId": session, "cwd": cwds[session], "mcpServers": []}
            answer = second.call("session/load", params)
            replayed = [line.update for line in second.transcript[start:] if is_update(line, session)]
            outcome.replays[session] = replayed if "result" in answer else json.dumps(answer["error"])
        second.eof()
        second.wait_exit()
        found = transcript_faults(second.transcript) + schema_faults(second.transcript)
        outcome.faults += [f"while loading in a second process, {fault}" for fault in found]
    finally:
        second.close()


def _as_the_last(lines: Sequence[Line]) -> Frame:
    """How the editor last introduced itself, without the services that nobody would answer for it here."""
    said = [line.frame or {} for line in lines if line.sender == "editor" and line.method == "initialize"]
    capabilities = said[-1].get("params", {}).get("clientCapabilities") if said else None
    shown = capabilities.get("_meta") if isinstance(capabilities, dict) else None
    return {**_INITIALIZE, "clientCapabilities": {"_meta": shown} if shown else {}}


def _loads(lines: Sequence[Line]) -> bool:
    found = _results_of(lines, "initialize")
    return bool(found and found[-1].get("agentCapabilities", {}).get("loadSession"))


def _cwds(lines: Sequence[Line]) -> dict[str, str]:
    """Session id → directory, for the sessions made or loaded on this connection and not deleted since."""
    cwds: dict[str, str] = {}
    asked: dict[str, Line] = {}
    for line in lines:
        if line.sender == "editor" and line.is_request:
            asked[request_id_key(line.request_id)] = line
        result = (line.frame or {}).get("result") if line.sender == "agent" and line.is_response else None
        request = asked.get(request_id_key(line.request_id))
        if result is None or request is None:
            continue
        session = result.get("sessionId") if request.method == "session/new" else request.session
        if request.method in ("session/new", "session/load", "session/resume"):
            cwds[str(session)] = (request.frame or {})["params"]["cwd"]
        if request.method == "session/delete":
            cwds.pop(str(session), None)
    return cwds


def _results_of(lines: Sequence[Line], method: str) -> list[Frame]:
    """The results the editor got for its requests with this method."""
    asked = {
        request_id_key(line.request_id) for line in lines if line.sender == "editor" and line.method == method
    }
    answers = [line for line in lines if line.sender == "agent" and line.is_response]
    return [
        (line.frame or {})["result"]
        for line in answers
        if request_id_key(line.request_id) in asked and "result" in (line.frame or {})
    ]
