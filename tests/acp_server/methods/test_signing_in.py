"""Signing in and out as an editor does it; the goldens show the whole conversations."""

from pathlib import Path
from typing import Any

import pytest
from acp import schema

from agent_loop.config.credentials import Credentials
from agent_loop.config.resolve import KeyPlace
from tests.doubles.memory_editor import connected
from tests.doubles.memory_model import MemoryModel

OPENAI = KeyPlace("openai", "OPENAI_API_KEY", "https://api.openai.com", wanted=True, required=True)
SIGNED_OUT = -32000


@pytest.mark.parametrize(
    ("capabilities", "told"),
    [
        ({"auth": {"terminal": True}}, True),
        ({"auth": {"terminal": 1.5}}, False),
        ({"auth": None}, False),
        ({"terminal": True}, False),
        ({}, False),
    ],
)
async def test_a_login_in_a_terminal_is_told_only_to_editors_that_run_one(
    capabilities: dict[str, Any], told: bool, tmp_path: Path
) -> None:
    """ACP, authentication: agents MUST advertise it only when the client enabled the capability."""
    async with connected(tmp_path, MemoryModel(), flags={"model": "openai/x"}, initialize=False) as editor:
        hello = await editor.result(
            editor.send("initialize", protocolVersion=1, clientCapabilities=capabilities)
        )

    schema.InitializeResponse.model_validate(hello)
    in_terminal = [method["args"] for method in hello["authMethods"] if method.get("type") == "terminal"]
    assert in_terminal == ([["login", "openai"]] if told else [])
    assert hello["agentCapabilities"]["auth"] == {"logout": {}}


async def test_a_provider_without_a_variable_is_signed_in_to_at_the_terminal(tmp_path: Path) -> None:
    """Issue, sign-in: what is advertised can be done."""
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "config.toml").write_text(
        '[providers.far]\nkind = "openai"\nbase_url = "https://far.example/v1"\n'
    )
    async with connected(tmp_path, MemoryModel(), flags={"model": "far/x"}, initialize=False) as editor:
        hello = await editor.result(editor.send("initialize", protocolVersion=1))

    assert hello["authMethods"][0] == {
        "id": "far-key",
        "name": "A key for far",
        "description": "Run `acp-server login far` in a terminal. "
        "Choosing this looks whether a key is there now.",
    }


async def test_a_key_stored_elsewhere_signs_in_and_a_logout_forgets_it(tmp_path: Path) -> None:
    """ACP, authenticate and logout: with a login in another process in between, and no restart."""
    keys = Credentials(tmp_path / "state")
    async with connected(tmp_path, MemoryModel(), flags={"model": "openai/x"}) as editor:
        before = await editor.error(editor.send("authenticate", methodId="openai-key"))
        keys.keep(OPENAI, "sk")
        assert await editor.result(editor.send("authenticate", methodId="openai-key")) == {}
        await editor.new_session()

        assert await editor.result(editor.send("logout")) == {}

        after = await editor.error(editor.send("session/new", cwd=editor.cwd, mcpServers=[]))
        assert (before["code"], after["code"]) == (SIGNED_OUT, SIGNED_OUT)
        assert await keys.find(OPENAI) is None
