"""Each session's workspace: what the settings want of it, or an error that says what to do."""

import os
from pathlib import Path

import pytest

from agent_loop import workspaces
from agent_loop.config.load import Loaded, load_settings
from agent_loop.errors import ConfigError
from agent_loop.harness import open_harness
from agent_loop.workspace.sandbox import Sandbox
from agent_loop.workspaces import sandbox_of


def loaded(state: Path, toml: str = "", **flags: str) -> Loaded:
    state.mkdir(exist_ok=True)
    (state / "config.toml").write_text(f"format = 1\n{toml}")
    return load_settings(flags={"model": "demo/tour", **flags}, environ={}, state_dir=state)


def test_without_a_word_there_is_no_sandbox(tmp_path: Path) -> None:
    """Issue "Acting with consent": when asked for."""
    assert sandbox_of(loaded(tmp_path), {}) is None
    assert sandbox_of(loaded(tmp_path, '[agent]\nsandbox = "read-only"\n', sandbox="off"), {}) is None


def test_a_sandbox_is_what_the_settings_say(tmp_path: Path) -> None:
    """Our promise: by flag, variable or file; the state directory and a person's keys are out of sight."""
    found = sandbox_of(
        loaded(tmp_path / "state", "[sandbox]\nnetwork = true\n", sandbox="workspace-write"),
        {"HOME": str(tmp_path)},
    )

    assert found is not None
    state = os.path.realpath(tmp_path / "state")
    assert (found.mode, found.network, found.shown) == ("workspace-write", True, f"{state}/spill")
    assert {state, os.path.realpath(tmp_path / ".ssh")} <= set(found.masked)


@pytest.mark.parametrize("value", ["yes", "danger"])
def test_another_word_is_an_error(value: str, tmp_path: Path) -> None:
    """Our promise: never silently off."""
    error = loaded(tmp_path, f'[agent]\nsandbox = "{value}"\n').error

    assert error is not None
    assert 'agent.sandbox must be "off", "workspace-write" or "read-only"' in str(error)


async def test_a_sandbox_that_cannot_be_had_fails_the_session_in_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue "Acting with consent": a clear error when unavailable; one look that succeeds is enough."""
    looks: list[Sandbox] = []
    answers = ["there is no bwrap", None]

    def look(sandbox: Sandbox) -> str | None:
        looks.append(sandbox)
        return answers.pop(0)

    monkeypatch.setattr(workspaces, "sandbox_trouble", look)
    async with open_harness(loaded(tmp_path / "state", sandbox="read-only"), {}) as harness:
        with pytest.raises(ConfigError, match=r"there is none: there is no bwrap\. Nothing is run") as it:
            await harness.create_session(str(tmp_path))
        assert (it.value.path, it.value.needs_auth) == ("agent.sandbox", False)

        for _ in range(2):
            handle = await harness.create_session(str(tmp_path))
            await handle.dispose()

    assert len(looks) == 2
