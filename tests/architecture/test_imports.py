"""Holds both packages to the contracts, and the checker to its word."""

from pathlib import Path

import pytest

from tests.architecture import contracts
from tests.architecture.contracts import CONTRACTS, Contract, read_packages

ROOT = Path(__file__).parents[2]
OPENING = '"""Owns one small thing."""\n'

# Contract, files of a small tree, and what must be found in it. Every file gets a good opening.
VIOLATIONS: list[tuple[Contract, dict[str, str], list[str]]] = [
    (
        contracts.the_loop_knows_no_server,
        {"agent_loop/loop/turn.py": "def f():\n    from acp_server.codec import x\n"},
        ["agent_loop/loop/turn.py:3 imports acp_server.codec"],
    ),
    (
        contracts.the_loop_knows_no_server,
        {"agent_loop/harness.py": "import importlib\nimportlib.import_module('acp_server.serve')\n"},
        ["agent_loop/harness.py:3 imports acp_server.serve"],
    ),
    (
        contracts.rooms_import_only_what_stands_below,
        {"agent_loop/session/log.py": "import agent_loop.agent.inbox\n", "agent_loop/agent/inbox.py": ""},
        ["agent_loop/session/log.py:2 imports agent_loop.agent.inbox"],
    ),
    (
        contracts.rooms_import_only_what_stands_below,
        {"agent_loop/loop/turn.py": "from agent_loop import plugins\n", "agent_loop/plugins/plugin.py": ""},
        ["agent_loop/loop/turn.py:2 imports agent_loop.plugins"],
    ),
    (
        contracts.rooms_import_only_what_stands_below,
        {
            "agent_loop/plugins/retry/policy.py": (
                "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from ...loop.turn import Turn\n"
            )
        },
        ["agent_loop/plugins/retry/policy.py:4 imports agent_loop.loop.turn"],
    ),
    (
        contracts.rooms_import_only_what_stands_below,
        {
            "agent_loop/tools/execute.py": "from agent_loop.workspace import FileAccess\n",
            "agent_loop/prompt/assemble.py": "from agent_loop.workspace import FileAccess\n",
            "agent_loop/workspace/local.py": "from agent_loop.tools import Tool\n",
        },
        [
            "agent_loop/prompt/assemble.py:2 imports agent_loop.workspace",
            "agent_loop/workspace/local.py:2 imports agent_loop.tools",
        ],
    ),
    (
        contracts.rooms_import_only_what_stands_below,
        {"agent_loop/ids.py": "from agent_loop.clock import now\n"},
        ["agent_loop/ids.py:2 imports agent_loop.clock"],
    ),
    (
        contracts.rooms_import_only_what_stands_below,
        {
            "agent_loop/__init__.py": "from agent_loop.harness import H\n",
            "agent_loop/agent/a.py": "import agent_loop\n",
        },
        ["agent_loop/agent/a.py:2 imports agent_loop"],
    ),
    (
        contracts.rooms_import_only_what_stands_below,
        {"agent_loop/helpers.py": "", "agent_loop/harness.py": "from agent_loop.helpers import f\n"},
        [
            "agent_loop/helpers.py:1 stands in no layer: give helpers a place in LAYERS",
            "agent_loop/harness.py:2 imports agent_loop.helpers",
        ],
    ),
    (
        contracts.plugins_are_strangers,
        {
            "agent_loop/plugins/plugin.py": "",
            "agent_loop/plugins/retry/__init__.py": "from ..plugin import Scope\nfrom .. import mcp\n",
            "agent_loop/plugins/mcp/client.py": "from agent_loop.plugins.retry import backoff\n",
        },
        [
            "agent_loop/plugins/mcp/client.py:2 imports agent_loop.plugins.retry",
            "agent_loop/plugins/retry/__init__.py:3 imports agent_loop.plugins.mcp",
        ],
    ),
    (
        contracts.pure_modules_know_no_event_loop,
        {
            "agent_loop/session/history.py": "import asyncio\n",
            "agent_loop/session/usage.py": "import anyio\n",
            "agent_loop/session/log.py": "import anyio\n",
            "agent_loop/loop/request.py": "import anyio\n",
            "agent_loop/llm/collect.py": "from anyio.abc import TaskGroup\n",
            "agent_loop/prompt/assemble.py": "import asyncio.events\n",
            "acp_server/codec/prompt_in.py": "import anyio\n",
            "acp_server/wire/blocks/text.py": "import anyio\n",
        },
        [
            "agent_loop/llm/collect.py:2 imports anyio.abc",
            "agent_loop/loop/request.py:2 imports anyio",
            "agent_loop/prompt/assemble.py:2 imports asyncio.events",
            "agent_loop/session/history.py:2 imports asyncio",
            "agent_loop/session/usage.py:2 imports anyio",
            "acp_server/codec/prompt_in.py:2 imports anyio",
            "acp_server/wire/blocks/text.py:2 imports anyio",
        ],
    ),
    (
        contracts.libraries_stay_in_their_homes,
        {
            "acp_server/rpc/dispatch.py": "import jsonrpcserver\n",
            "acp_server/rpc/peer.py": "from jsonrpcserver import Success\nimport acp.schema\n",
            "agent_loop/llm/providers/openai_compatible.py": "import openai, anthropic, httpx2\n",
            "agent_loop/llm/provider.py": "import openai, anthropic\n",
            "agent_loop/workspace/fetch.py": "import httpx2\nimport mcp\n",
            "agent_loop/plugins/mcp/client.py": "import mcp, httpx\n",
            "agent_loop/tools/fetch.py": "import httpx, httpx2\nfrom tests.doubles import clock\n",
        },
        [
            "agent_loop/llm/provider.py:2 imports openai",
            "agent_loop/llm/provider.py:2 imports anthropic",
            "agent_loop/tools/fetch.py:2 imports httpx",
            "agent_loop/tools/fetch.py:2 imports httpx2",
            "agent_loop/tools/fetch.py:3 imports tests.doubles",
            "agent_loop/workspace/fetch.py:3 imports mcp",
            "acp_server/rpc/peer.py:2 imports jsonrpcserver",
            "acp_server/rpc/peer.py:3 imports acp.schema",
        ],
    ),
    (
        contracts.the_server_uses_the_front_door,
        {
            "agent_loop/events/bus.py": "",
            "acp_server/serve.py": "import agent_loop\nfrom agent_loop import Harness\n",
            "acp_server/bridge/forward.py": (
                "from agent_loop import events\nfrom agent_loop.events import A, B\nimport agent_loop.clock\n"
            ),
        },
        [
            "acp_server/bridge/forward.py:2 imports agent_loop.events",
            "acp_server/bridge/forward.py:3 imports agent_loop.events",
            "acp_server/bridge/forward.py:4 imports agent_loop.clock",
        ],
    ),
    (
        contracts.nobody_prints,
        {
            "agent_loop/clock.py": "def f():\n    print('x')\n",
            "acp_server/client.py": "print('x')\n",
            "acp_server/cli.py": "print('x')\n",
            "acp_server/demo/show.py": "print('x')\n",
        },
        ["agent_loop/clock.py:3 prints", "acp_server/client.py:2 prints"],
    ),
    (
        contracts.the_server_init_is_only_a_sign,
        {"acp_server/__init__.py": "import os\nVERSION = 1\n", "agent_loop/__init__.py": "import os\n"},
        [
            "acp_server/__init__.py:2 holds more than its docstring",
            "acp_server/__init__.py:3 holds more than its docstring",
        ],
    ),
]


def _plant(root: Path, files: dict[str, str], opening: str = OPENING) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(opening + text)


@pytest.mark.parametrize("contract", CONTRACTS, ids=lambda contract: contract.__name__)
def test_both_packages_keep_the_contract(contract: Contract) -> None:
    """Architecture, section 2: checked by a test, not by hope."""
    assert (ROOT / "pyproject.toml").exists(), "the checker looks at the wrong folder"

    found = list(contract(read_packages(ROOT)))
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("contract", "files", "found"), VIOLATIONS, ids=lambda it: getattr(it, "__name__", "-")
)
def test_the_checker_finds_a_planted_violation(
    contract: Contract, files: dict[str, str], found: list[str], tmp_path: Path
) -> None:
    """Our promise: no contract is vacuous."""
    _plant(tmp_path, files)

    assert sorted(contract(read_packages(tmp_path))) == sorted(found)


@pytest.mark.parametrize(
    "opening", ["", "import os\n", '"""Turn."""\n', '"""Owns the turn and\nno full stop"""\n']
)
def test_the_checker_finds_a_module_that_opens_without_a_sentence(opening: str, tmp_path: Path) -> None:
    """Style, a module opens: with what it owns, in a sentence."""
    _plant(tmp_path, {"acp_server/serve.py": "x = 1\n"}, opening)

    assert len(list(contracts.modules_open_with_a_sentence(read_packages(tmp_path)))) == 1


def test_an_opening_may_run_over_two_lines(tmp_path: Path) -> None:
    """Style, a module opens: one sentence, however long the line."""
    _plant(
        tmp_path, {"acp_server/serve.py": ""}, '"""Owns one connection,\nfrom start to end.\n\nMore\n"""\n'
    )

    assert list(contracts.modules_open_with_a_sentence(read_packages(tmp_path))) == []


def test_every_contract_has_a_planted_violation() -> None:
    """Our promise: a contract added later is proven too."""
    proven = {contract for contract, _, _ in VIOLATIONS} | {contracts.modules_open_with_a_sentence}

    assert proven == set(CONTRACTS)
