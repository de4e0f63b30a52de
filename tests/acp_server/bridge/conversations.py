"""Random conversations on one connection, and everything that must hold of each of them.

Owns the moves an editor can make and the checks on what came of them. Which moves are drawn, and how
many, belongs to the test.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from hypothesis import strategies as st

from agent_loop.persistence import files
from agent_loop.session.invariants import Invariants
from tests.doubles.memory_editor import MemoryEditor, connected
from tests.doubles.memory_model import HANG, STOP, Item, MemoryModel, calls, says
from tests.doubles.transcript import Frame, Line, request_id_key
from tests.goldens.faults import transcript_faults

SESSIONS = 2
READ = calls(("r", "list", {}))
WRITE = calls(("w", "write", {"path": "a.txt", "content": "x"}))
BOTH = calls(("x", "list", {}), ("y", "write", {"path": "b.txt", "content": "y"}), ("z", "nope", {}))
LONG: list[Item] = [*({"text": "a"} if n % 2 else {"think": "b"} for n in range(140)), STOP]
FAILS: list[Item] = [{"text": "half"}, {"raise": {"kind": "overloaded", "message": "Later."}}]
ANSWERS: list[list[Item]] = [
    says("a", "b"),
    LONG,
    READ,
    WRITE,
    BOTH,
    FAILS,
    [{"text": "a"}, HANG],
    [{"think": "hm"}, *BOTH],
    [{"text": "cut"}, {"finish": "max_tokens"}],
]

MOVES = (
    *("prompt",) * 6,
    *("rest",) * 5,
    *("answer",) * 3,
    *("steer", "cancel", "run", "cancel and prompt") * 2,
    *("cancel_request", "load", "stall", "flow"),
)
Move = tuple[str, int, int]
moves = st.tuples(
    st.sampled_from(MOVES),
    st.integers(0, SESSIONS - 1),
    st.integers(0, 12),
)
conversations = st.tuples(
    st.lists(st.sampled_from(ANSWERS), min_size=4, max_size=12), st.lists(moves, min_size=15, max_size=40)
)


@dataclass
class Conversation:
    """One of them, as it goes."""

    editor: MemoryEditor
    model: MemoryModel
    sessions: list[str] = field(default_factory=list)
    asked: dict[int, tuple[str, str, str]] = field(default_factory=dict)  # request → method, session, text
    faults: list[str] = field(default_factory=list)
    answered_questions: int = 0

    def open_requests(self, session: str | None = None, method: str | None = None) -> list[int]:
        """Requests without an answer, oldest first."""
        return [
            request
            for request, (name, whose, _) in self.asked.items()
            if session in (None, whose) and method in (None, name) and not self.editor.answered_yet(request)
        ]

    async def move(self, move: Move) -> None:
        name, at, number = move
        session = self.sessions[at]
        match name:
            case "prompt":
                text = f"prompt {len(self.asked)}"
                self.asked[self.editor.prompt(session, text)] = ("prompt", session, text)
            case "steer":
                text = f"steer {len(self.asked)}"
                self.asked[self.editor.steer(session, text)] = ("steer", session, text)
            case "load":
                self.asked[self.editor.load(session)] = ("load", session, "")
            case "cancel and prompt":
                self._cancel(session)
                await self.move(("prompt", at, number))
            case "cancel":
                self._cancel(session)
            case "cancel_request":
                self._cancel_request(self.open_requests(), number)
            case "answer":
                self._answer(number)
            case "stall":
                self.editor.has_room = False
            case "flow":
                self._flow()
            case "rest":
                await self.editor.until(lambda: self._rests(session), "a session at rest")
            case _:
                for _ in range(number):
                    await anyio.lowlevel.checkpoint()

    async def end(self) -> None:
        """Let everything come to its end: read on, refuse what is asked, cancel what hangs and only that."""
        self._flow()
        while self.open_requests():
            await self.editor.until(
                lambda: not self.open_requests() or self.model.hanging or self._unanswered(),
                "the last answer, or something to do about it",
            )
            await anyio.lowlevel.checkpoint()
            self._answer(1)
            if self.model.hanging:
                for session in self.sessions:
                    self._cancel_oldest(session)
        for agent in self.editor.harness.agents.list():
            await agent.when_idle()

    def _rests(self, session: str) -> bool:
        agent = self.editor.harness.agents.get(session)
        waits = self._unanswered() or self.model.hanging or not self.editor.has_room
        return agent is None or agent.status == "idle" or bool(waits)

    def _cancel(self, session: str) -> None:
        prompts = self.open_requests(session, "prompt")
        steers = self.open_requests(session, "steer")
        self.editor.cancel(session)
        for request in prompts:
            self._expect(request, {"stopReason": "cancelled"})
        for request in steers:
            self._expect(request, {"outcome": "cancelled"})

    def _cancel_request(self, requests: list[int], number: int) -> None:
        if not requests:
            return
        request = requests[number % len(requests)]
        is_prompt = self.asked[request][0] == "prompt"
        self.editor.cancel_request(request)
        if is_prompt:
            self._expect(request, {"stopReason": "cancelled"})

    def _cancel_oldest(self, session: str) -> None:
        """Of a session's prompts the oldest runs; a steer that joined its turn is answered already."""
        agent = self.editor.harness.agents.get(session)
        if agent is not None and agent.status == "running":
            self._cancel_request(self.open_requests(session), 0)

    def _unanswered(self) -> list[Frame]:
        return self.editor.questions()[self.answered_questions :]

    def _answer(self, number: int) -> None:
        questions = self._unanswered()
        if not questions:
            return
        self.answered_questions += 1
        option = ("allow_once", "reject_once", "nonsense")[number % 3]
        self.editor.answer(questions[0], option)

    def _flow(self) -> None:
        self.editor.has_room = True
        self.editor.bell.ring()

    def _expect(self, request: int, result: dict[str, Any]) -> None:
        if not self.editor.answered_yet(request):
            self.faults.append(f"request {request} was not answered in the tick of its cancel")
        elif self.editor.responses[str(request)].get("result") != result:
            self.faults.append(f"request {request} was answered {self.editor.responses[str(request)]}")


async def converse(folder: Path, answers: list[list[Item]], script: list[Move]) -> list[str]:
    """Hold one conversation; everything wrong with it."""
    model = MemoryModel(*answers)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(anyio.to_thread, "run_sync", _at_once)
        patch.setattr(files, "sync_data", lambda _: None)
        patch.setattr(os, "fsync", lambda _: None)
        return await _converse(folder, model, script)


# A failed call is made again soon: its usual pauses are longer than anybody waits here.
SETTINGS = "format = 1\n[plugins.retry]\nattempts = 3\nbase_s = 0.001\n"


async def _converse(folder: Path, model: MemoryModel, script: list[Move]) -> list[str]:
    (folder / "state").mkdir()
    (folder / "state" / "config.toml").write_text(SETTINGS)
    async with connected(folder, model) as editor:
        talk = Conversation(editor, model)
        for _ in range(SESSIONS):
            talk.sessions.append(await editor.new_session())
        for move in script:
            await talk.move(move)
        await talk.end()
        logs = {agent.id: list(agent.session.log) for agent in editor.harness.agents.list()}

        faults = talk.faults + transcript_faults(_without_busy_loads(editor))
        for session in talk.sessions:
            faults += _log_faults(
                logs[session], [text for _, whose, text in talk.asked.values() if whose == session]
            )
        return faults


def _without_busy_loads(editor: MemoryEditor) -> list[Line]:
    """The transcript as the standing checks read it: a load that was refused as busy changed nothing."""
    busy = {key for key, frame in editor.responses.items() if frame.get("error", {}).get("code") == -32600}
    return [
        line
        for line in editor.transcript
        if not (line.method == "session/load" and request_id_key(line.request_id) in busy)
    ]


async def _at_once(function: Callable[..., Any], *args: Any, **_: Any) -> Any:
    """A worker thread's work, done right here: then a conversation goes the same way each time."""
    await anyio.lowlevel.checkpoint()
    return function(*args)


def _log_faults(log: list[Any], said: list[str]) -> list[str]:
    Invariants().check_all(log)
    ran = [fact.content[0].text for fact in log if fact.TYPE == "user/message"]
    prompts = [text for text in ran if text.startswith("prompt")]
    in_order = [text for text in said if text in prompts]
    faults = []
    if prompts != in_order:
        faults.append(f"prompts ran as {prompts}, and were sent as {said}")
    for start in (fact for fact in log if fact.TYPE == "turn/start"):
        mine = [f for f in log if f.TYPE == "user/message" and f.turn == start.turn]
        if sum(f.content[0].text.startswith("prompt") for f in mine) > 1:
            faults.append(f"turn {start.turn} ran more than one prompt")
    return faults
