"""The composition root: settings in, a running harness out."""

import logging
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from agent_loop.config.load import Loaded, load_settings
from agent_loop.errors import ConfigError, HarnessError, ProviderError
from agent_loop.events.facts import AssistantMessage, StepStart, TurnEnd
from agent_loop.harness import open_harness
from agent_loop.llm.models import Price
from agent_loop.llm.providers.openai_compatible import OpenAICompatible
from agent_loop.messages import Text, text_of
from agent_loop.session.invariants import InvariantError

ROOT = Path(__file__).parents[2]
WAIT_S = 5.0


def loaded(state: Path, toml: str, environ: dict[str, str] | None = None) -> Loaded:
    state.mkdir(exist_ok=True)
    (state / "config.toml").write_text(f"format = 1\n{toml}")
    return load_settings(flags={}, environ=environ or {}, state_dir=state)


DEMO = '[agent]\nmodel = "demo/tour"\n'


async def test_a_session_answers_with_the_configured_model(tmp_path: Path) -> None:
    """Our promise: config in, running harness out."""
    async with open_harness(loaded(tmp_path / "state", DEMO), {}) as harness:
        handle = await harness.create_session(str(tmp_path))

        handle.agent.send((Text("hi"),))
        with anyio.fail_after(WAIT_S):
            await handle.agent.when_idle()

        answers = [fact for fact in handle.agent.session.log if isinstance(fact, AssistantMessage)]
        assert "not a language model" in text_of(answers[0].content)
        await handle.dispose()


async def test_a_session_needs_a_directory(tmp_path: Path) -> None:
    """Decision: a cwd that does not exist is refused at `session/new`."""
    async with open_harness(loaded(tmp_path / "state", DEMO), {}) as harness:
        with pytest.raises(HarnessError, match="no directory") as caught:
            await harness.create_session(str(tmp_path / "missing"))

    assert caught.value.code == "CWD"


async def test_broken_settings_fail_the_session_not_the_start(tmp_path: Path) -> None:
    """Bug report mistral-vibe#56: a broken config must name file and key, and the start must work."""
    async with open_harness(loaded(tmp_path / "state", "[agent]\nmax_steps = 0\n"), {}) as harness:
        with pytest.raises(ConfigError, match="max_steps"):
            await harness.create_session(str(tmp_path))


async def test_settings_nobody_reads_are_warned_of(tmp_path: Path) -> None:
    """Contract: an unknown key warns with file and key."""
    async with open_harness(loaded(tmp_path / "state", DEMO + 'colour = "red"\n'), {}) as harness:
        [warning] = harness.warnings

    assert "agent.colour" in warning


async def test_configured_agents_are_there_at_the_start(tmp_path: Path) -> None:
    """Spec loop 1.3: config agents exist at start, each on a session of its own."""
    toml = DEMO + '[[agents]]\nid = "first"\n[[agents]]\nid = "second"\nsystem_prompt = "Be brief."\n'
    async with open_harness(loaded(tmp_path / "state", toml), {}) as harness:
        handles = await harness.start_configured()

        assert [agent.id.split("-session-")[0] for agent in harness.agents.list()] == ["first", "second"]
        assert [handle.agent.options.system_prompt for handle in handles] == ["", "Be brief."]
        for handle in handles:
            await handle.dispose()


async def test_a_configured_agent_goes_on_with_its_session(tmp_path: Path) -> None:
    """Spec loop 8.5.11: an agent appears on the session its settings name, with its history."""
    async with open_harness(loaded(tmp_path / "state", DEMO), {}) as harness:
        handle = await harness.create_session(str(tmp_path))
        handle.agent.inject((Text("remember"),), {"kind": "plugin", "plugin": "test"})
        await handle.dispose()

    toml = f'{DEMO}[[agents]]\nid = "again"\nresume_session_id = "{handle.agent.id}"\n'
    async with open_harness(loaded(tmp_path / "state", toml), {}) as harness:
        [resumed] = await harness.start_configured()

        assert resumed.agent.id == handle.agent.id
        assert "remember" in text_of(resumed.agent.session.messages()[0].content)
        await resumed.dispose()


@pytest.mark.parametrize(
    "entry",
    [
        'id = "gone"\nresume_session_id = "never-was"\n',
        'id = "lost"\nmodel = "nowhere/model"\n',
    ],
)
async def test_a_configured_agent_that_cannot_start_is_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, entry: str
) -> None:
    """Spec loop 8.5.12: warning, no agent, process alive."""
    async with open_harness(loaded(tmp_path / "state", f"{DEMO}[[agents]]\n{entry}"), {}) as harness:
        with caplog.at_level(logging.WARNING):
            assert await harness.start_configured() == []

        assert harness.agents.list() == ()
    assert "was not started" in caplog.text


async def test_the_invariants_plugin_fails_the_turn_that_breaks_a_rule(tmp_path: Path) -> None:
    """Our promise: the checker is usable as an optional plugin."""
    async with open_harness(loaded(tmp_path / "state", f"{DEMO}[plugins.invariants]\n"), {}) as harness:
        handle = await harness.create_session(str(tmp_path))

        with pytest.raises(InvariantError, match="outside its turn"):
            handle.agent.session.log.append(StepStart(1, 1))
        await handle.dispose()


async def test_a_scripted_model_needs_its_script(tmp_path: Path) -> None:
    """Contract: demo and scripted are never a silent default."""
    async with open_harness(loaded(tmp_path / "state", '[agent]\nmodel = "scripted/x"\n'), {}) as harness:
        with pytest.raises(ConfigError, match="needs a script"):
            await harness.create_session(str(tmp_path))


async def test_a_warm_provider_is_loaded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Contract 8: what the first call would wait for begins after the first session is made."""
    began, loads = anyio.Event(), 0

    async def load(self: OpenAICompatible) -> None:
        nonlocal loads
        loads += 1
        began.set()

    async def models(self: OpenAICompatible) -> tuple[str, ...]:
        return ()

    monkeypatch.setattr(OpenAICompatible, "load", load)
    monkeypatch.setattr(OpenAICompatible, "models", models)
    environ = {"OPENAI_API_KEY": "k"}
    async with open_harness(loaded(tmp_path / "state", '[agent]\nmodel = "openai/x"\n'), environ) as harness:
        handle = await harness.create_session(str(tmp_path))

        harness.warm_up()
        harness.warm_up()
        with anyio.fail_after(WAIT_S):
            await began.wait()

        await handle.dispose()
    assert loads == 1


WARM_UP = """
import sys, anyio
from pathlib import Path
from agent_loop import load_settings, open_harness

home, loaded = Path(sys.argv[1]), anyio.Event()
later = ["agent_loop.loop.turn", "agent_loop.tools.bundled"]

async def main():
    settings = load_settings(flags={"model": "demo/tour"}, environ={}, state_dir=home / "state")
    async with open_harness(settings, {}) as harness:
        handle = await harness.create_session(str(home))
        harness.llm.get("demo").load = load
        print([name for name in later if name in sys.modules])

        harness.warm_up()
        with anyio.fail_after(10):
            await loaded.wait()

        print([name for name in later if name in sys.modules] == later)
        await handle.dispose()

async def load():
    loaded.set()

anyio.run(main)
"""


def test_what_a_turn_is_made_of_is_imported_by_the_warm_up_and_not_for_a_session(tmp_path: Path) -> None:
    """Our promise: neither the editor that opens a session nor the first prompt waits for it."""
    done = subprocess.run(
        [sys.executable, "-c", WARM_UP, str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        timeout=30,
        check=True,
    )

    assert done.stdout.splitlines() == ["[]", "True"]


async def test_a_provider_that_cannot_warm_up_fails_its_turn_not_the_server(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Decision 18: one raise in a background task never ends the server."""
    tried = anyio.Event()

    async def load(self: OpenAICompatible) -> None:
        tried.set()
        raise ProviderError("unknown", "no SDK here")

    async def models(self: OpenAICompatible) -> tuple[str, ...]:
        return ()

    monkeypatch.setattr(OpenAICompatible, "load", load)
    monkeypatch.setattr(OpenAICompatible, "models", models)
    environ = {"OPENAI_API_KEY": "k"}
    async with open_harness(loaded(tmp_path / "state", '[agent]\nmodel = "openai/x"\n'), environ) as harness:
        handle = await harness.create_session(str(tmp_path))

        harness.warm_up()
        with anyio.fail_after(WAIT_S):
            await tried.wait()
            handle.agent.send((Text("hi"),))
            await handle.agent.when_idle()

        [end] = [fact for fact in handle.agent.session.log if isinstance(fact, TurnEnd)]
        assert (end.reason.kind, end.reason.message) == ("error", "no SDK here")
        await handle.dispose()
    assert "the warm-up failed: no SDK here" in caplog.text


async def test_broken_settings_choose_no_store(tmp_path: Path) -> None:
    """Our promise: what is listed or deleted is never in another place than the person chose."""
    async with open_harness(loaded(tmp_path / "state", '[store]\nurl = "mysql://x"\n'), {}) as harness:
        with pytest.raises(ConfigError, match=r"store\.url"):
            _ = harness.store


async def test_a_store_that_is_not_installed_is_said_when_it_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue, PostgreSQL store: an extra; without it the start works and the words name the command."""
    for name in ("postgres", "postgres_connections", "postgres_listing"):
        monkeypatch.delitem(sys.modules, f"agent_loop.persistence.{name}", raising=False)
    monkeypatch.setitem(sys.modules, "asyncpg", None)
    settings = loaded(tmp_path / "state", DEMO + '[store]\nurl = "postgresql://x"\n')
    async with open_harness(settings, {}) as harness:
        with pytest.raises(ConfigError, match="pip install"):
            _ = harness.store
        with pytest.raises(ConfigError, match="pip install"):
            await harness.create_session(str(tmp_path))


@pytest.mark.parametrize(
    ("toml", "environ", "window", "price"),
    [
        ("", {}, 400_000, Price(1.25, 10.0, 0.125, 1.25)),
        ("", {"OPENAI_BASE_URL": "http://localhost/v1"}, 400_000, None),
        ('[models."openai/gpt-5"]\ncontext_window = 9\n', {}, 9, Price(1.25, 10.0, 0.125, 1.25)),
        (
            '[models."openai/gpt-5"]\ninput_price = 1.0\noutput_price = 2.0\ncurrency = "EUR"\n',
            {"OPENAI_BASE_URL": "http://localhost/v1"},
            400_000,
            Price(1.0, 2.0, 1.0, 1.0, "EUR"),
        ),
        (
            '[models."openai/gpt-5"]\ninput_price = 1.0\noutput_price = 2.0\n'
            "cache_read_price = 0.0\ncache_write_price = 3.0\n",
            {},
            400_000,
            Price(1.0, 2.0, 0.0, 3.0, "USD"),
        ),
    ],
)
async def test_a_person_knows_a_model_best_and_prices_are_the_makers_own(
    tmp_path: Path, toml: str, environ: dict[str, str], window: int, price: Price | None
) -> None:
    """Issue, model catalogue: overridable; what somebody else asks for the same model is not known."""
    settings = loaded(tmp_path / "state", f'[agent]\nmodel = "openai/gpt-5"\n{toml}')
    async with open_harness(settings, {"OPENAI_API_KEY": "k", **environ}) as harness:
        handle = await harness.create_session(str(tmp_path))

        assert handle.agent.options.info.context_window == window
        assert handle.agent.options.info.price == price
        await handle.dispose()


async def test_what_a_model_can_do_is_the_persons_word(tmp_path: Path) -> None:
    """Issue, model catalogue: abilities, overridable; what nobody says stays as it is known."""
    toml = '[models."openai/gpt-5"]\nimages = false\ntools = false\n'
    settings = loaded(tmp_path / "state", f'[agent]\nmodel = "openai/gpt-5"\n{toml}')
    async with open_harness(settings, {"OPENAI_API_KEY": "k"}) as harness:
        handle = await harness.create_session(str(tmp_path))

        info = handle.agent.options.info
        assert (info.images, info.reasoning, info.tools) == (False, True, False)
        await handle.dispose()
