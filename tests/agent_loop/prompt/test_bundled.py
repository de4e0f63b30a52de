"""The sections of the house: identity, environment, and the project's own rules."""

import os
from pathlib import Path

import anyio
import pytest

from agent_loop.events.bus import Bus
from agent_loop.prompt.bundled import IDENTITY, RULES_LIMIT_BYTES, bundled_sections
from agent_loop.prompt.system_prompt import PromptContext, SystemPrompt


@pytest.fixture
def prompt() -> SystemPrompt:
    prompt = SystemPrompt(Bus())
    bundled_sections(prompt)
    return prompt


async def rules_of(prompt: SystemPrompt, cwd: Path, session_id: str = "s1") -> str:
    with anyio.fail_after(5):
        text = await prompt.text(PromptContext(session_id, str(cwd)))
    return text.partition("The project's rules, from AGENTS.md:\n\n")[2]


async def test_a_session_without_a_directory_is_told_who_it_is(prompt: SystemPrompt) -> None:
    """Our promise: sections with nothing to say say nothing."""
    assert await prompt.text(PromptContext("s1", None)) == IDENTITY


async def test_a_session_is_told_where_it_works(prompt: SystemPrompt, tmp_path: Path) -> None:
    """Our promise: identity, environment, rules, in that order."""
    (tmp_path / "AGENTS.md").write_text("Write tests.\n")

    text = await prompt.text(PromptContext("s1", str(tmp_path), "Be kind."))

    parts = text.split("\n\n")
    assert parts[0] == IDENTITY
    assert parts[1].startswith(f"Working directory: {tmp_path}\nOperating system: ")
    assert parts[2:] == ["The project's rules, from AGENTS.md:", "Write tests.", "Be kind."]


async def test_rules_are_read_once_for_a_session(prompt: SystemPrompt, tmp_path: Path) -> None:
    """Our promise: a stable prefix is a cached one; a new session reads them anew."""
    file = tmp_path / "AGENTS.md"
    file.write_text("first")
    assert await rules_of(prompt, tmp_path) == "first"

    file.write_text("second")

    assert await rules_of(prompt, tmp_path) == "first"
    assert await rules_of(prompt, tmp_path, "s2") == "second"


@pytest.mark.parametrize("content", [b"", b" \n\t\n"])
async def test_empty_rules_are_none(prompt: SystemPrompt, tmp_path: Path, content: bytes) -> None:
    """Our promise: no heading without a text."""
    (tmp_path / "AGENTS.md").write_bytes(content)

    text = await prompt.text(PromptContext("s1", str(tmp_path)))

    assert "AGENTS.md" not in text


async def test_rules_that_are_no_file_are_none(prompt: SystemPrompt, tmp_path: Path) -> None:
    """Our promise: what a repository holds must not stop a turn: nothing, a folder, a FIFO, a dead link."""
    for name in ("nothing", "folder", "fifo", "link"):
        (tmp_path / name).mkdir()
    (tmp_path / "folder" / "AGENTS.md").mkdir()
    os.mkfifo(tmp_path / "fifo" / "AGENTS.md")
    (tmp_path / "link" / "AGENTS.md").symlink_to("nowhere")

    for name in ("nothing", "folder", "fifo", "link"):
        assert await rules_of(prompt, tmp_path / name, name) == ""


async def test_rules_that_lead_out_of_the_project_are_none(prompt: SystemPrompt, tmp_path: Path) -> None:
    """Our promise: a cloned repository cannot send out what no tool may read; a link inside is fine."""
    (tmp_path / "secret.txt").write_text("top secret")
    for name in ("out", "inside"):
        (tmp_path / name).mkdir()
    (tmp_path / "out" / "AGENTS.md").symlink_to(tmp_path / "secret.txt")
    (tmp_path / "inside" / "RULES.md").write_text("be kind")
    (tmp_path / "inside" / "AGENTS.md").symlink_to("RULES.md")

    assert await rules_of(prompt, tmp_path / "out", "out") == ""
    assert "be kind" in await rules_of(prompt, tmp_path / "inside", "inside")


async def test_rules_nobody_may_read_are_none(
    prompt: SystemPrompt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Our promise: a broken disk costs the rules, not the turn."""
    (tmp_path / "AGENTS.md").write_text("secret")

    def refuses(*_: object) -> object:
        raise PermissionError

    monkeypatch.setattr(Path, "open", refuses)

    assert await rules_of(prompt, tmp_path) == ""


async def test_rules_are_bounded(prompt: SystemPrompt, tmp_path: Path) -> None:
    """Our promise: a file of any size costs a known number of tokens, and the cut is told."""
    file = tmp_path / "AGENTS.md"
    file.write_text("x" * RULES_LIMIT_BYTES)
    assert await rules_of(prompt, tmp_path) == "x" * RULES_LIMIT_BYTES

    file.write_text("x" * RULES_LIMIT_BYTES + "y")
    text = await rules_of(prompt, tmp_path, "s2")
    assert text == "x" * RULES_LIMIT_BYTES + "\n[the rest of the file is left out]"


async def test_rules_are_text_whatever_the_file_holds(prompt: SystemPrompt, tmp_path: Path) -> None:
    """Contract 8: text from files is cleaned where it enters; a character cut in two is one mark."""
    (tmp_path / "AGENTS.md").write_bytes(b"a\xff\xed\xa0\x80b")

    text = await rules_of(prompt, tmp_path)

    assert text.encode()
    assert (text[0], text[-1], "\ufffd" in text) == ("a", "b", True)
