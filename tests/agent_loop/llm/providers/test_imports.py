"""What importing a provider brings along: nothing heavy."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    "module",
    ["openai_compatible", "openai_request", "openai_stream", "anthropic_messages", "failures", "demo"],
)
def test_importing_a_provider_imports_no_sdk(module: str) -> None:
    """Architecture, decision 10: nothing heavy before `initialize` is answered."""
    program = (
        f"import sys, agent_loop.llm.registry, agent_loop.llm.providers.{module}\n"
        "print([name for name in ('openai', 'anthropic', 'httpx2', 'httpx') if name in sys.modules])"
    )

    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=30
    )

    assert done.stdout == "[]\n"
