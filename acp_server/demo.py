"""`acp-server demo`: the real server, one prompt, and the conversation as a person wants to read it.

Owns the story and what must be true at its end. The process belongs to `demo_editor`, whether a frame
is right to `demo_frames`, how it looks to `demo_screen`.
"""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import acp_server
from acp_server.demo_editor import DemoEditor, DemoFailed, Leaving
from acp_server.demo_frames import Frames
from acp_server.demo_screen import Screen, wants_colour

PROMPT: Final = "Have a look around and write me a hello program."
README: Final = "# A place to play\n\nThis workspace is temporary; nothing in it matters.\n"
PROGRAM: Final = 'print("Hello from the demonstration.")\n'
OUTPUT: Final = "Hello from the demonstration."
"""What the tour of the demo provider writes to hello.py, and what that prints."""

SERVER: Final = (sys.executable, "-m", "acp_server", "--model", "demo/tour")
WAIT_S: Final = 20.0
LEAVE_S: Final = 2.0

INTRODUCTION: Final = (
    "This is the real server on real pipes, offline, in a temporary workspace. The model is a scripted "
    "demonstration and not a language model: it takes the same tour whatever it is asked. Permission is "
    "asked for as in an editor; here the demo answers."
)


def demo(server: Sequence[str] = SERVER, wait_s: float = WAIT_S) -> int:
    """Run one prompt and print it; 0 when all was as it must be, else 1 and the last line says what was not.

    Args:
        server: The command line; the state directory is added to it.
        wait_s: Longest wait for any one answer.
    """
    screen = Screen(sys.stdout, colour=wants_colour(sys.stdout, os.environ))
    screen.note(INTRODUCTION)
    with TemporaryDirectory(prefix="acp-server-demo-") as folder:
        root = Path(os.path.realpath(folder))
        failures = _tell(root, [*server, "--state-dir", str(root / "state")], screen, wait_s)
    screen.verdict(failures)
    return 1 if failures else 0


def _tell(root: Path, argv: Sequence[str], screen: Screen, wait_s: float) -> list[str]:
    """The conversation, and everything that was wrong with it."""
    cwd = root / "workspace"
    cwd.mkdir()
    (cwd / "README.md").write_text(README, encoding="utf-8")
    frames = Frames()
    # Next to the package, so that `-m` finds it wherever the person is, installed or not.
    home = Path(acp_server.__file__).parents[1]
    try:
        with DemoEditor(argv, home, _environment(os.environ), frames, screen, wait_s) as editor:
            editor.call("initialize", {"protocolVersion": 1, "clientCapabilities": {}})
            session = editor.open_session(str(cwd))
            screen.say("you", PROMPT)
            prompt = {"sessionId": session, "prompt": [{"type": "text", "text": PROMPT}]}
            result = editor.call("session/prompt", prompt)
            screen.ended(result.get("stopReason"))
            leaving = editor.leave(LEAVE_S)
    except DemoFailed as failure:
        return [str(failure), *frames.faults]
    return list(_failures(result.get("stopReason"), cwd, frames, leaving))


def _failures(stop_reason: object, cwd: Path, frames: Frames, leaving: Leaving) -> Iterator[str]:
    if stop_reason != "end_turn":
        yield f"the turn ended with {stop_reason!r}, not 'end_turn'"

    program = cwd / "hello.py"
    found = program.read_bytes() if program.is_file() else None
    if found != PROGRAM.encode():
        yield f"hello.py holds {found!r}, not {PROGRAM.encode()!r}"

    runs = [card for card in frames.cards.values() if card.kind == "execute"]
    if not any(card.status == "completed" and OUTPUT in card.text.splitlines() for card in runs):
        yield f"no command ran that printed {OUTPUT!r}"

    for kind, what in (("edit", "the write"), ("execute", "the command")):
        if kind not in frames.asked:
            yield f"permission was not asked for {what}"

    yield from frames.faults

    if leaving.code != 0:
        yield f"the server exited with {leaving.code}"
    if leaving.seconds > LEAVE_S:
        yield f"the server needed {leaving.seconds:.1f} s to exit, more than {LEAVE_S:g}"


def _environment(inherited: Mapping[str, str]) -> dict[str, str]:
    """Ours, without the person's settings of the server, and with a `python3` the tour can run."""
    kept = {name: value for name, value in inherited.items() if not name.startswith("ACP_SERVER_")}
    kept["PATH"] = os.pathsep.join([os.path.dirname(sys.executable), inherited.get("PATH", os.defpath)])
    return kept
