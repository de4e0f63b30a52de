"""The methods as an editor calls them: before and after the handshake, right and wrong."""

from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import pytest
from acp import schema

from acp_server.methods import initialize as initialize_module
from acp_server.methods.table import methods
from tests.doubles.memory_editor import INITIALIZE, connected
from tests.doubles.memory_model import MemoryModel

STDIO: dict[str, Any] = {"name": "files", "command": "/bin/files", "args": [], "env": []}


@pytest.mark.parametrize("asked", [0, 1, 2, 99, 65535])
async def test_whatever_version_is_asked_for_we_say_one(asked: int, tmp_path: Path) -> None:
    """speakeasy kit#213: reply with our own latest version; never echo, never refuse a newer one."""
    async with connected(tmp_path, MemoryModel(), initialize=False) as editor:
        result = await editor.result(editor.send("initialize", protocolVersion=asked))

        assert result["protocolVersion"] == 1
        assert result["authMethods"] == []
        schema.InitializeResponse.model_validate(result)


async def test_a_version_that_is_no_number_is_refused_and_nothing_is_open(tmp_path: Path) -> None:
    """Scenario B10: a string is -32602 and no crash."""
    async with connected(tmp_path, MemoryModel(), initialize=False) as editor:
        error = await editor.error(editor.send("initialize", protocolVersion="1"))

        assert (error["code"], error["data"]) == (-32602, {"path": "protocolVersion"})
        assert (await editor.error(editor.send("session/new", cwd=editor.cwd)))["code"] == -32600


async def test_only_what_is_implemented_is_advertised(tmp_path: Path) -> None:
    """ACP, initialization: a capability is a promise."""
    async with connected(tmp_path, MemoryModel(), initialize=False) as editor:
        result = await editor.result(editor.send("initialize", **INITIALIZE))

        assert result["agentCapabilities"] == {
            "loadSession": True,
            "promptCapabilities": {"image": True, "audio": False, "embeddedContext": False},
            "mcpCapabilities": {"http": False, "sse": False},
            "sessionCapabilities": {
                "list": {},
                "resume": {},
                "close": {},
                "delete": {},
                "fork": {},
                "additionalDirectories": {},
            },
            "_meta": {
                "agent_loop": {"steer": True, "rename": True, "events": True, "unstable": ["session/fork"]}
            },
        }
        assert result["agentInfo"]["name"]
        assert result["agentInfo"]["version"] == initialize_module.own_version()


def test_a_server_that_is_not_installed_has_a_version_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Our promise: running from a checkout must not break the handshake."""

    def missing(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(initialize_module, "version", missing)

    assert initialize_module.own_version() == "0+unknown"


@pytest.mark.parametrize(
    "method", sorted(set(methods()) - {"initialize", "session/cancel", "$/cancel_request"})
)
async def test_nothing_else_is_answered_before_initialize(method: str, tmp_path: Path) -> None:
    """ACP: requests before initialize are -32600."""
    async with connected(tmp_path, MemoryModel(), initialize=False) as editor:
        error = await editor.error(editor.send(method))

        assert error["code"] == -32600
        assert "initialize" in error["message"]


async def test_notifications_before_initialize_are_ignored(tmp_path: Path) -> None:
    """ACP, overview: a notification is never answered."""
    async with connected(tmp_path, MemoryModel(), initialize=False) as editor:
        editor.cancel("s")
        editor.cancel_request(1)
        editor.say(method="session/cancel", params={})

        assert [line for line in editor.transcript if line.sender == "agent"] == []


async def test_authenticating_is_refused_by_name_because_there_is_nothing_to_choose(tmp_path: Path) -> None:
    """Contracts 5: `authMethods: []`."""
    async with connected(tmp_path, MemoryModel()) as editor:
        error = await editor.error(editor.send("authenticate", methodId="x" * 500))

        assert (error["code"], error["data"]) == (-32602, {"path": "methodId"})
        assert len(error["message"]) < 200


@pytest.mark.parametrize("method", ["session/new", "session/load", "session/resume", "session/fork"])
@pytest.mark.parametrize(
    ("extra", "path"),
    [
        ({"cwd": "."}, "cwd"),
        ({"cwd": ""}, "cwd"),
        ({"cwd": "project"}, "cwd"),
        ({"cwd": "/a\0b"}, "cwd"),
        ({"cwd": 5}, "cwd"),
        ({"additionalDirectories": ["/", "tmp"]}, "additionalDirectories[1]"),
        ({"additionalDirectories": ["/a\0b"]}, "additionalDirectories[0]"),
        ({"additionalDirectories": [5]}, "additionalDirectories[0]"),
        ({"mcpServers": ["x"]}, "mcpServers[0]"),
        ({"mcpServers": [STDIO, {**STDIO, "name": ""}]}, "mcpServers[1].name"),
        ({"mcpServers": [{"command": "x"}]}, "mcpServers[0].name"),
        ({"mcpServers": [{"name": "x"}]}, "mcpServers[0].command"),
        ({"mcpServers": [{**STDIO, "command": 5}]}, "mcpServers[0].command"),
        ({"mcpServers": [{**STDIO, "args": "x"}]}, "mcpServers[0].args"),
        ({"mcpServers": [{**STDIO, "env": {"A": "b"}}]}, "mcpServers[0].env"),
        (
            {"mcpServers": [{"type": "http", "name": "x", "url": "http://x", "headers": []}]},
            "mcpServers[0].type",
        ),
        (
            {"mcpServers": [{"type": "sse", "name": "x", "url": "http://x", "headers": []}]},
            "mcpServers[0].type",
        ),
        ({"mcpServers": [{"type": "pigeon", "name": "x"}]}, "mcpServers[0].type"),
    ],
)
async def test_what_an_editor_hands_over_is_checked_and_named(
    method: str, extra: dict[str, Any], path: str, tmp_path: Path
) -> None:
    """ACP, session setup: absolute paths, advertised transports; real errors name the parameter."""
    async with connected(tmp_path, MemoryModel()) as editor:
        params = {"cwd": editor.cwd, "sessionId": "s", "mcpServers": [], **extra}

        error = await editor.error(editor.send(method, **params))

        assert (error["code"], error["data"]) == (-32602, {"path": path})
        assert editor.harness.agents.list() == ()


async def test_mcp_servers_are_named_once_as_not_connected(tmp_path: Path) -> None:
    """Contracts 5: validated for shape, accepted, and named once."""
    async with connected(tmp_path, MemoryModel()) as editor:
        servers = [STDIO, {"name": "web", "command": "/bin/web"}]

        new = editor.send("session/new", cwd=editor.cwd, mcpServers=servers)
        result = await editor.result(new)
        loaded = editor.send(
            "session/load", sessionId=result["sessionId"], cwd=editor.cwd, mcpServers=servers
        )

        for told in (result, await editor.result(loaded)):
            [warning] = told["_meta"]["agent_loop"]["warnings"]
            assert "files, web" in warning
        assert await editor.result(editor.prompt(result["sessionId"])) == {"stopReason": "end_turn"}


async def test_a_directory_alone_makes_a_session(tmp_path: Path) -> None:
    """kimi-cli#764: a client left out mcpServers."""
    async with connected(tmp_path, MemoryModel()) as editor:
        assert (await editor.result(editor.send("session/new", cwd=editor.cwd)))["sessionId"]
        assert (await editor.result(editor.send("session/new", cwd=editor.cwd, mcpServers=None)))["sessionId"]


@pytest.mark.parametrize("hostile", ["nope", "", "../../etc/passwd", "x" * 10_000, "a/b", ".", "\n", "%s"])
@pytest.mark.parametrize("method", ["session/load", "session/prompt", "_agent_loop/steer", "session/cancel"])
async def test_a_session_nobody_made_is_not_found_and_not_made(
    method: str, hostile: str, tmp_path: Path
) -> None:
    """hermes-agent#74678, acpx#152: a missing session was reported as success."""
    async with connected(tmp_path, MemoryModel()) as editor:
        before = sorted(str(path) for path in tmp_path.rglob("*"))
        params = {
            "sessionId": hostile,
            "cwd": editor.cwd,
            "mcpServers": [],
            "prompt": [{"type": "text", "text": "x"}],
        }

        if method == "session/cancel":
            editor.cancel(hostile)
        else:
            error = await editor.error(editor.send(method, **params))
            assert (error["code"], error["data"]) == (-32002, {"sessionId": hostile[:200]})

        assert sorted(str(path) for path in tmp_path.rglob("*")) == before


async def test_a_bad_block_is_refused_before_anything_runs(tmp_path: Path) -> None:
    """ACP, prompt turn: an unadvertised block type is -32602, as is a picture for a model that sees none."""
    model = MemoryModel()
    async with connected(tmp_path, model) as editor:
        session = await editor.new_session()
        image = {"type": "image", "data": "AA==", "mimeType": "image/png"}

        for prompt, path in (([image], "prompt[0].type"), ([], "prompt")):
            error = await editor.error(editor.send("session/prompt", sessionId=session, prompt=prompt))
            assert (error["code"], error["data"]) == (-32602, {"path": path})

        assert model.requests == []
        assert await editor.result(editor.prompt(session)) == {"stopReason": "end_turn"}


@pytest.mark.parametrize("method", ["fs/read_text_file", "terminal/create", "nope", "_nope"])
async def test_what_is_not_advertised_is_not_found(method: str, tmp_path: Path) -> None:
    """ACP, errors: -32601 for an unknown method or a capability we did not advertise."""
    async with connected(tmp_path, MemoryModel()) as editor:
        assert (await editor.error(editor.send(method)))["code"] == -32601
