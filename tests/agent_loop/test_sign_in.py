"""Signing in and out, and a newer key for the next prompt: real files, real HTTP on loopback."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest

from agent_loop.chunks import Finish, TextDelta
from agent_loop.config.credentials import Credentials
from agent_loop.config.load import Loaded, load_settings
from agent_loop.config.resolve import find_provider
from agent_loop.config.vaults import FILE_NAME, KeyringVault
from agent_loop.errors import ConfigError, HarnessError, NotFound
from agent_loop.events.facts import TurnEnd
from agent_loop.events.moments import ModelsListed
from agent_loop.harness import open_harness
from agent_loop.messages import Text
from agent_loop.sign_in import SignIn, Way, model_to_use
from tests.doubles.keyrings import WaitingKeyring
from tests.doubles.openai_wire import events_of
from tests.doubles.provider_server import ProviderServer, Reply, closed_port, provider_server

WAIT_S = 10.0
OLLAMA = Way("ollama", "ollama", needs_key=False)
OPENAI = Way("openai-key", "openai", "OPENAI_API_KEY")
ANTHROPIC = Way("anthropic-key", "anthropic", "ANTHROPIC_API_KEY")
NOWHERE = {"OLLAMA_HOST": f"127.0.0.1:{closed_port()}"}


def loaded(state: Path, model: str | None = None, toml: str = "") -> Loaded:
    state.mkdir(exist_ok=True)
    (state / "config.toml").write_text(f"format = 1\n{toml}")
    return load_settings(flags={"model": model}, environ={}, state_dir=state)


def signing_in(state: Path, model: str | None = None, environ: Mapping[str, str] = NOWHERE) -> SignIn:
    return SignIn(loaded(state, model), environ)


def store_key(settings: Loaded, provider: str, key: str) -> None:
    """What `acp-server login` does, in whatever process."""
    place = find_provider(settings.settings, {}, provider).key_place
    assert place is not None
    Credentials(settings.state_dir).keep(place, key)


@pytest.mark.parametrize(
    ("model", "ways"),
    [
        (None, (OPENAI, ANTHROPIC, OLLAMA)),
        ("openai/gpt-5", (OPENAI, OLLAMA)),
        ("anthropic/claude", (ANTHROPIC, OLLAMA)),
        ("demo/tour", ()),
        ("ollama/qwen3", ()),
        ("nobody/x", ()),
    ],
)
def test_the_ways_follow_from_the_model(model: str | None, ways: tuple[Way, ...], tmp_path: Path) -> None:
    """Issue, sign-in: what is advertised leads to the model the person wants."""
    assert signing_in(tmp_path, model).ways() == ways
    assert not (tmp_path / FILE_NAME).exists()


def test_with_settings_that_cannot_be_used_there_is_no_way(tmp_path: Path) -> None:
    """Our promise: nobody is asked to sign in where only mending the file helps."""
    assert SignIn(loaded(tmp_path, toml="[agent\n"), {}).ways() == ()


async def test_a_key_is_looked_for_in_the_environment_then_the_settings_then_what_was_stored(
    tmp_path: Path,
) -> None:
    """Issue, sign-in: the order."""
    table = '[providers.openai]\napi_key = "from-settings"\n'
    with_table = loaded(tmp_path / "a", "openai/gpt-5", table)
    without = loaded(tmp_path / "b", "openai/gpt-5")
    for settings in (with_table, without):
        store_key(settings, "openai", "stored")

    keys = [
        (await SignIn(settings, environ).resolve()).api_key
        for settings, environ in [
            (with_table, {"OPENAI_API_KEY": "from-environment"}),
            (with_table, {"OPENAI_API_KEY": " "}),
            (without, {}),
        ]
    ]

    assert keys == ["from-environment", "from-settings", "stored"]


async def test_without_a_model_one_of_the_maker_is_used_whose_key_was_stored(tmp_path: Path) -> None:
    """Decision: whoever runs `login anthropic` has said which models are wanted."""
    sign_in = signing_in(tmp_path)
    with pytest.raises(ConfigError, match="No model is chosen") as caught:
        await sign_in.resolve()
    store_key(loaded(tmp_path), "anthropic", "k")

    found = await sign_in.resolve()

    assert caught.value.needs_auth
    assert (found.provider_name, found.api_key) == ("anthropic", "k")
    assert await model_to_use(loaded(tmp_path), {}) == f"anthropic/{found.model}"
    assert await model_to_use(loaded(tmp_path, "openai/x"), {}) == "openai/x"


async def test_choosing_a_way_looks_for_the_key_again(tmp_path: Path) -> None:
    """ACP, authenticate: {} when a key is there now, else what to do."""
    sign_in = signing_in(tmp_path, "openai/gpt-5")
    with pytest.raises(ConfigError, match=r"OPENAI_API_KEY.*acp-server login openai") as caught:
        await sign_in.choose("openai-key")
    store_key(loaded(tmp_path), "openai", "k")

    await sign_in.choose("openai-key")

    assert caught.value.needs_auth
    assert (await sign_in.resolve()).api_key == "k"
    with pytest.raises(NotFound, match="anthropic-key"):
        await sign_in.choose("anthropic-key")


async def test_a_chosen_key_chooses_its_makers_model_when_none_is(tmp_path: Path) -> None:
    """Issue, sign-in: the way leads to a session."""
    sign_in = signing_in(tmp_path, environ={"ANTHROPIC_API_KEY": "a", "OPENAI_API_KEY": "o"})

    await sign_in.choose("anthropic-key")

    assert (await sign_in.resolve()).provider_name == "anthropic"


async def test_an_ollama_on_this_machine_is_used_without_a_key(tmp_path: Path) -> None:
    """Issue, sign-in: a reachable local server is offered without a key."""
    async with provider_server() as server:
        environ = {"OLLAMA_HOST": server.base_url.removesuffix("/v1").removeprefix("http://")}
        sign_in = signing_in(tmp_path, "openai/gpt-5", environ)
        server.listing = Reply(body=b'{"data": null}')
        with pytest.raises(ConfigError, match="has no model yet") as caught:
            await sign_in.choose("ollama")

        server.listing = Reply(body=b'{"data": [{"id": "qwen3"}, {"id": "b"}]}')
        await sign_in.choose("ollama")

        found = await sign_in.resolve()
        assert caught.value.needs_auth
        assert (found.provider_name, found.model, found.api_key) == ("ollama", "qwen3", None)
        assert found.base_url == server.base_url
        assert "authorization" not in server.questions[-1].headers


async def test_an_ollama_that_does_not_answer_is_said(tmp_path: Path) -> None:
    """Issue, sign-in: `authenticate` says whether the server answers."""
    with pytest.raises(ConfigError, match=f"No Ollama answers at http://{NOWHERE['OLLAMA_HOST']}") as caught:
        await signing_in(tmp_path).choose("ollama")

    assert caught.value.needs_auth


async def test_after_signing_out_even_the_environments_key_waits_for_a_new_sign_in(tmp_path: Path) -> None:
    """ACP, logout: new sessions need authentication again."""
    settings = loaded(tmp_path, "openai/gpt-5")
    store_key(settings, "openai", "stored")
    sign_in = SignIn(settings, {"OPENAI_API_KEY": "k"})

    await sign_in.sign_out()
    with pytest.raises(ConfigError, match="You have signed out") as caught:
        await sign_in.resolve()
    await sign_in.choose("openai-key")

    assert caught.value.needs_auth
    assert json.loads((tmp_path / FILE_NAME).read_text())["keys"] == {}
    assert (await sign_in.resolve()).api_key == "k"


async def test_a_login_elsewhere_ends_being_signed_out(tmp_path: Path) -> None:
    """Issue: a key stored by `login` in another process is found by the next session/new."""
    settings = loaded(tmp_path, "openai/gpt-5")
    without, with_variable = SignIn(settings, {}), SignIn(settings, {"OPENAI_API_KEY": "in-environment"})
    for sign_in in (without, with_variable):
        await sign_in.sign_out()

    store_key(settings, "openai", "k")

    assert (await without.resolve()).api_key == "k"
    assert (await with_variable.resolve()).api_key == "in-environment"
    Credentials(tmp_path).forget(["openai"])
    assert (await with_variable.resolve()).api_key == "in-environment"


async def test_signing_out_of_a_keyring_that_hangs_ends_in_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Our promise: every wait is bounded, and a key that may be left is not passed over."""
    monkeypatch.setattr("agent_loop.sign_in.FORGET_S", 0.05)
    backend = WaitingKeyring()
    keys = Credentials(tmp_path, open_keyring=lambda: KeyringVault(backend))
    try:
        with anyio.fail_after(WAIT_S), pytest.raises(HarnessError, match="may still be there"):
            await SignIn(loaded(tmp_path, "openai/x"), {}, keys).sign_out()
    finally:
        backend.unlocked.set()


async def ask(handle: Any) -> str:
    """How a prompt's turn ends: its kind."""
    handle.agent.send((Text("hi"),))
    with anyio.fail_after(WAIT_S):
        await handle.agent.when_idle()
    [*_, end] = [fact.reason for fact in handle.agent.session.log if isinstance(fact, TurnEnd)]
    return str(end.kind)


def mine(server: ProviderServer) -> str:
    return (
        f'[agent]\nmodel = "mine/m"\n[providers.mine]\nkind = "openai"\nbase_url = "{server.base_url}"\n'
        'api_key_env = "MINE_KEY"\n'
    )


async def test_a_login_after_a_refused_key_helps_the_next_prompt_of_the_same_session(tmp_path: Path) -> None:
    """Issue: after an `auth` failure of a stored key, no restart and no new session is needed."""
    refused = Reply(status=401, body=b'{"error": {"message": "no"}}')
    answer = Reply(events_of([TextDelta(0, "hello"), Finish("stop")]))
    async with provider_server() as server:
        settings = loaded(tmp_path / "state", toml=mine(server))
        store_key(settings, "mine", "old")
        async with open_harness(settings, {}) as harness:
            handle = await harness.create_session(str(tmp_path))
            server.plan(refused, refused, answer)

            ends = [await ask(handle), await ask(handle)]
            store_key(settings, "mine", "new")
            ends.append(await ask(handle))
            await handle.dispose()

        keys = [request.headers["authorization"] for request in server.requests if request.body is not None]
        assert ends == ["error", "error", "completed"]
        assert keys == ["Bearer old", "Bearer old", "Bearer new"]


async def test_a_new_session_uses_the_key_that_is_stored_now(tmp_path: Path) -> None:
    """Issue: found by the next session/new of a running server."""
    answer = Reply(events_of([TextDelta(0, "hello"), Finish("stop")]))
    async with provider_server() as server:
        settings = loaded(tmp_path / "state", toml=mine(server))
        async with open_harness(settings, {}) as harness:
            first = await harness.create_session(str(tmp_path))
            store_key(settings, "mine", "k")
            second = await harness.create_session(str(tmp_path))
            server.plan(answer)

            assert await ask(second) == "completed"
            await first.dispose()
            await second.dispose()

        assert server.requests[-1].headers["authorization"] == "Bearer k"


async def test_a_stored_key_makes_its_providers_models_choosable_and_is_sent_with_the_question(
    tmp_path: Path,
) -> None:
    """Issue, choosing: whoever signed in to two providers changes between them, after a restart, too."""
    answer = Reply(events_of([TextDelta(0, "hello"), Finish("stop")]))
    async with provider_server() as server:
        server.listing = Reply(body=b'{"data": [{"id": "m"}, {"id": "n"}]}')
        settings = loaded(tmp_path / "state", toml=mine(server))
        store_key(settings, "mine", "k")
        store_key(settings, "anthropic", "a")

        async with open_harness(settings, {}) as harness:
            handle, listed = await harness.create_session(str(tmp_path)), anyio.Event()
            harness.bus.on(ModelsListed, lambda _: listed.set())
            before = harness.models.state(handle.agent).offered
            harness.warm_up()
            with anyio.fail_after(WAIT_S):
                await listed.wait()
            after = harness.models.state(handle.agent).offered
            server.plan(answer)
            assert await ask(handle) == "completed"
            harness.models.choose(handle.agent, "anthropic/claude")
            await handle.dispose()

        async with open_harness(settings, {}) as harness:
            handle = await harness.resume_session(handle.agent.session.id)
            news = harness.models.restore(handle.agent)
            model = handle.agent.options.model
            await harness.sign_in.sign_out()
            with pytest.raises(ConfigError, match="You have signed out"):
                harness.models.choose(handle.agent, "openai/x")
            harness.models.choose(handle.agent, "mine/n")
            await handle.dispose()

    assert before == ("mine/m",)
    assert after[:2] == ("mine/m", "mine/n")
    assert {name.partition("/")[0] for name in after} == {"mine", "anthropic"}
    assert (news, model) == (None, "anthropic/claude")
    assert server.questions[0].headers["authorization"] == "Bearer k"


async def test_a_model_whose_key_is_not_known_cannot_be_chosen(tmp_path: Path) -> None:
    """Issue, choosing: it is said in words."""
    settings = loaded(tmp_path / "state", "demo/tour")
    async with open_harness(settings, {}) as harness:
        handle = await harness.create_session(str(tmp_path))
        with pytest.raises(ConfigError, match="The provider openai needs a key"):
            harness.models.choose(handle.agent, "openai/x")
        with pytest.raises(ConfigError, match="There is no provider"):
            harness.models.choose(handle.agent, "nobody/x")
        await harness.sign_in.look("nobody/x")
        await handle.dispose()
