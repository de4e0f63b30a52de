"""`_agent_loop/event`, our extension: moments for an editor that asked, and none for any other."""

from pathlib import Path

from tests.doubles.memory_editor import INITIALIZE, MemoryEditor, connected
from tests.doubles.memory_model import MemoryModel, calls, says
from tests.doubles.transcript import Frame

ASKING = {**INITIALIZE, "clientCapabilities": {"_meta": {"agent_loop": {"events": True}}}}


def events(editor: MemoryEditor) -> list[Frame]:
    frames = [line.frame or {} for line in editor.transcript if line.method == "_agent_loop/event"]
    return [frame["params"] for frame in frames]


async def test_nobody_is_told_unless_they_asked(tmp_path: Path) -> None:
    """ACP, extensibility: an extension is opt-in."""
    async with connected(tmp_path, MemoryModel()) as editor:
        session = await editor.new_session()

        await editor.result(editor.prompt(session))

        assert events(editor) == []


async def test_each_moment_of_its_sessions_is_told_once_to_whoever_asked_twice(tmp_path: Path) -> None:
    """Contracts 3: `{sessionId, event, turn?, step?}`, through the same writer."""
    model = MemoryModel(says("to nobody"), calls(("c1", "list", {})))
    async with connected(tmp_path, model, initialize=False) as editor:
        editor.send("initialize", **ASKING)
        editor.send("initialize", **ASKING)
        session = await editor.new_session()
        stranger = await editor.harness.create_session(editor.cwd)

        stranger.agent.send(())
        await stranger.agent.when_idle()
        await editor.result(editor.prompt(session))
        await editor.until(lambda: events(editor)[-1].get("status") == "idle", "the last status")
        await stranger.dispose()

        assert {event["sessionId"] for event in events(editor)} == {session}
        assert [(e["event"], e.get("turn"), e.get("step"), e.get("status")) for e in events(editor)] == [
            ("agent/queued", None, None, None),
            ("agent/status", None, None, "running"),
            ("agent/turn-start", 1, None, None),
            ("agent/step-start", 1, 1, None),
            ("agent/step-end", 1, 1, None),
            ("agent/step-start", 1, 2, None),
            ("agent/step-end", 1, 2, None),
            ("agent/turn-end", 1, None, None),
            ("agent/turn-flushed", 1, None, None),
            ("agent/status", None, None, "idle"),
        ]


async def test_moments_of_a_stranger_settle_nobody(tmp_path: Path) -> None:
    """Seed, bridge.spec: a foreign agent's turn gives zero updates."""
    live = calls(("c1", "run_command", {"command": "sleep 0.3; echo hello"}))
    model = MemoryModel(live)
    async with connected(tmp_path, model, flags={"permission_mode": "full-auto"}) as editor:
        stranger = await editor.harness.create_session(editor.cwd)
        before = len(editor.transcript)

        stranger.agent.send(())
        await stranger.agent.when_idle()
        stranger.agent.send(())
        stranger.agent.cancel()
        await stranger.dispose()

        assert editor.transcript[before:] == []
