"""A server process with a workspace, settings and a model of its own, for one test.

Owns the places around the process and what is left of it afterwards. Talking to it belongs to
`tests.doubles.editor`, directing a held model to `tests.goldens.control`.
"""

import json
import os
import select
import signal
import sys
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from copy import copy
from pathlib import Path
from typing import Any

from tests.doubles.editor import Editor
from tests.doubles.memory_model import STOP, Item
from tests.doubles.transcript import is_update
from tests.goldens.control import Control
from tests.goldens.places import as_toml
from tests.goldens.stored import stored_facts

ROOT = Path(__file__).parents[2]
OPENED = {"modes", "configOptions"}
"""Members of an answer that opens a session again and has no news."""
ARGV = (sys.executable, "-m", "acp_server")
INITIALIZE: dict[str, Any] = {"protocolVersion": 1, "clientCapabilities": {}}
WAIT_S = 15.0
# Measuring coverage makes a process slow to leave.
EXIT_S = 5.0 if any(name.startswith("COVERAGE_") for name in os.environ) else 2.0

DONE: list[Item] = [{"text": "Done."}, STOP]


class Server:
    """One server, started by `start`.

    Attributes:
        marker: Part of the command line of whatever `sleeping` runs, and of nothing else.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cwd, self.state, self.home = (folder / name for name in ("project", "state", "home"))
        for place in (self.cwd, self.state, self.home):
            place.mkdir()
        kept = {name: value for name, value in os.environ.items() if name.startswith("COVERAGE_")}
        own = {"HOME": str(self.home), "LC_ALL": "C", "PYTHONPATH": str(ROOT)}
        own["PYTHON_KEYRING_BACKEND"] = "keyring.backends.fail.Keyring"
        self.env: dict[str, str] = {**kept, **own, "PATH": os.environ.get("PATH", os.defpath)}
        self.marker = f"600.{uuid.uuid4().int % 10**9:09}"
        self.editor: Editor
        self.control: Control | None = None
        self._others: list[Server] = []

    def unmeasured(self) -> dict[str, str]:
        """Its environment without what makes a process measure coverage."""
        return {name: value for name, value in self.env.items() if not name.startswith("COVERAGE_")}

    @property
    def sleeping(self) -> Item:
        """A tool call that runs for ten minutes."""
        command = f"echo begun; sleep {self.marker}; echo woken"
        return {"tool": "run_command", "id": "c1", "args": {"command": command}}

    def argv(self, *flags: str) -> list[str]:
        """The command line."""
        return [*ARGV, "--state-dir", str(self.state), *flags]

    def settings(self, settings: Mapping[str, Any]) -> None:
        """Write the person's settings file."""
        (self.state / "config.toml").write_text(as_toml(settings), "utf-8")

    def start(self, *answers: Sequence[Item], apart: bool = False, directed: bool = False) -> Editor:
        """Start with a model that gives these answers, one for each call; see `model`."""
        return self.launch(changed=self.model(*answers, apart=apart, directed=directed))

    def model(
        self, *answers: Sequence[Item], apart: bool = False, directed: bool = False
    ) -> threading.Condition:
        """Lay out a scripted model; the condition its control, if any, is waited on with.

        Args:
            apart: Each answer is for a session of its own.
            directed: Holds can be released through `control`.
        """
        script = [{"session": at if apart else 1, "do": list(items)} for at, items in enumerate(answers, 1)]
        path = self.folder / "model.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in script), "utf-8")
        provider = {"kind": "scripted", "script": str(path)}
        changed = threading.Condition()
        if directed:
            self.control = Control(script, changed)
            provider["control"] = self.control.address
        self.settings(
            {"format": 1, "agent": {"model": "scripted/script"}, "providers": {"scripted": provider}}
        )
        return changed

    def launch(self, *, flags: Sequence[str] = (), changed: threading.Condition | None = None) -> Editor:
        """Start with whatever settings there are."""
        self.editor = Editor(
            self.argv(*flags), cwd=self.home, env=self.env, timeout_s=WAIT_S, changed=changed
        )
        self.editor.start()
        return self.editor

    def beside(self) -> "Server":
        """A second process on the same places, initialized; its model begins its script anew."""
        other = copy(self)
        other._others = []
        other.launch()
        self._others.append(other)
        other.initialize()
        return other

    def kill(self) -> None:
        """End the process the way a crash does."""
        self.editor.signal("KILL")
        assert self.editor.wait_exit() == -signal.SIGKILL

    def restart(self) -> None:
        """A new process, initialized, on what the last one left."""
        self.editor.start()
        self.initialize()

    def initialize(self) -> dict[str, Any]:
        return dict(self.editor.call("initialize", INITIALIZE)["result"])

    def new_session(self) -> str:
        made = self.editor.call("session/new", {"cwd": str(self.cwd), "mcpServers": []})
        return str(made["result"]["sessionId"])

    def prompt(self, session: str, text: str = "Hello.") -> int:
        """Write a prompt; its request id."""
        blocks = [{"type": "text", "text": text}]
        return self.editor.request("session/prompt", {"sessionId": session, "prompt": blocks})

    def run(self, session: str, text: str = "Hello.") -> dict[str, Any]:
        """The response to a prompt."""
        return dict(self.editor.wait_response(self.prompt(session, text)))

    def load(self, session: str) -> dict[str, Any]:
        params = {"sessionId": session, "cwd": str(self.cwd), "mcpServers": []}
        return dict(self.editor.call("session/load", params))

    def replay(self, session: str) -> list[dict[str, Any]]:
        """Load a session, which must work; the updates that came before the answer."""
        begin = len(self.editor.transcript)
        assert set(self.load(session)["result"]) == OPENED
        return [line.update for line in self.editor.transcript[begin:] if is_update(line, session)]

    def listed(self) -> dict[str, dict[str, Any]]:
        """What `session/list` shows, by id."""
        sessions = self.editor.call("session/list", {})["result"]["sessions"]
        return {it["sessionId"]: it for it in sessions}

    def allow(self) -> None:
        """Wait for a permission request, and allow it."""
        question = self.editor.wait_request("session/request_permission")
        outcome = {"outcome": "selected", "optionId": "allow_once"}
        self.editor.answer(question["id"], result={"outcome": outcome})

    def until_held(self, name: str) -> None:
        """Wait until a directed model holds there."""
        assert self.control is not None
        held = self.control.held
        self.editor.wait_until(lambda: held(name), f"the hold {name}")

    def until_stored(self, session: str, words: str) -> None:
        """Wait until the log on disk holds these words."""
        self.until(lambda: words.encode() in self.log(session).read_bytes(), f"{words} on disk")

    def until(self, condition: Callable[[], object], what: str) -> None:
        """Wait for what no line of the server tells; each look is a round trip, so that nothing sleeps."""
        deadline = time.monotonic() + WAIT_S
        while not condition():
            assert time.monotonic() < deadline, f"waited in vain for {what}"
            self.editor.sync()

    def run_the_sleeper(self) -> str:
        """A session whose tool sleeps for ten minutes; the id."""
        session = self.new_session()
        self.prompt(session)
        self.allow()
        self.editor.wait_update({"toolCallId": "c1", "status": "in_progress"}, session)
        self.editor.wait_until(lambda: self.children(), "the sleeping child")
        return session

    def leave(self) -> int:
        """Close stdin and wait for the end, which must not take longer than EXIT_S; the exit code."""
        self.editor.eof()
        return self.exit_soon()

    def exit_soon(self) -> int:
        """Wait for the end, which must not take longer than EXIT_S; the exit code."""
        began = time.monotonic()
        code = self.editor.wait_exit()
        took = time.monotonic() - began
        assert took <= EXIT_S, f"it took {took:.2f} s to leave"
        return code

    def children(self) -> list[int]:
        """Processes that still run the sleeping command."""
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                line = (folder / "cmdline").read_bytes()
            except OSError:
                continue
            if self.marker.encode() in line:
                found.append(int(folder.name))
        return found

    def end_orphans(self) -> None:
        """End what a killed server left running, and wait for its end."""
        for pid in self.children():
            with suppress(ProcessLookupError):  # it may have left with the one before it
                process = os.pidfd_open(pid)
                signal.pidfd_send_signal(process, signal.SIGKILL)
                select.select([process], [], [], WAIT_S)
                os.close(process)

    def log(self, session: str) -> Path:
        """The file a session is stored in."""
        [path] = self.state.glob(f"sessions/*/{session}.jsonl")
        return path

    def facts(self, session: str) -> list[dict[str, Any]]:
        """What is stored of a session."""
        return stored_facts(self.state)[session]

    def ends(self, session: str) -> list[dict[str, Any]]:
        """Why each of its turns ended; the log must end with a closed one, its title behind it."""
        facts = self.facts(session)
        types = [fact["type"] for fact in facts]
        assert [kind for kind in types if kind != "session/title"][-1] == "turn/end", types
        return [fact["data"]["reason"] for fact in facts if fact["type"] == "turn/end"]

    def close(self) -> None:
        """End whatever is left."""
        for other in self._others:
            other.editor.close()
        if hasattr(self, "editor"):
            self.editor.close()
        if self.control is not None:
            self.control.close()
