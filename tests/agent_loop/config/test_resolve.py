"""Which model settings name, what it needs, and what a person is told when it cannot be reached."""

from typing import Any

import pytest

from agent_loop.config.resolve import KeyPlace, ResolvedModel, key_missing, origin_of, resolve_model
from agent_loop.config.settings import Settings
from agent_loop.errors import ConfigError


def settings_with(model: str | None = None, **providers: Any) -> Settings:
    built_in = {name: {"kind": name} for name in ("openai", "anthropic", "scripted", "demo")}
    return Settings.model_validate({"agent": {"model": model}, "providers": {**built_in, **providers}})


def test_the_built_in_provider_takes_its_key_and_place_from_the_environment() -> None:
    """Contract 11: it exists without a settings file, by the names everybody's tools use."""
    settings = settings_with("openai/some-model")

    usual = resolve_model(settings, {"OPENAI_API_KEY": "k"})
    moved = resolve_model(settings, {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "https://other.example/v1"})

    assert usual == ResolvedModel(
        provider_name="openai",
        kind="openai",
        model="some-model",
        base_url="https://api.openai.com/v1",
        api_key="k",
        idle_timeout_s=120.0,
        script=None,
        control=None,
        from_maker=True,
        key_place=KeyPlace("openai", "OPENAI_API_KEY", "https://api.openai.com", wanted=True, required=True),
    )
    assert (moved.base_url, moved.from_maker) == ("https://other.example/v1", False)
    assert "'k'" not in repr(usual)


def test_a_model_name_may_hold_slashes() -> None:
    """Our promise: PROVIDER ends at the first slash; many names after it are paths."""
    resolved = resolve_model(settings_with("demo/org/model:7b"), {})

    assert (resolved.provider_name, resolved.model) == ("demo", "org/model:7b")


def test_another_model_than_the_settings_name_may_be_asked_for() -> None:
    """Contract 11: an entry of [[agents]] may have its own model."""
    assert resolve_model(settings_with("openai/x"), {}, model="demo/mine").model == "mine"


def test_a_scripted_model_has_its_script_and_control_and_no_endpoint() -> None:
    """Contract 9: `[providers.scripted] script, control`."""
    settings = settings_with(
        "play/any",
        play={"kind": "scripted", "script": "a.jsonl", "control": "127.0.0.1:9", "idle_timeout_s": 3},
    )

    assert resolve_model(settings, {"OPENAI_API_KEY": "k"}) == ResolvedModel(
        provider_name="play",
        kind="scripted",
        model="any",
        base_url="",
        api_key=None,
        idle_timeout_s=3.0,
        script="a.jsonl",
        control="127.0.0.1:9",
    )


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost:11434/v1",
        "http://LOCALHOST/v1",
        "http://models.localhost/v1",
        "http://127.0.0.1:8080/v1",
        "http://127.3.2.1/v1",
        "http://[::1]:8080/v1",
    ],
)
def test_a_model_on_this_machine_needs_no_key(url: str) -> None:
    """Contract 5: only an endpoint that needs a key and has none is refused."""
    in_file = settings_with("openai/m", openai={"kind": "openai", "base_url": url})

    assert resolve_model(in_file, {}).api_key is None
    assert resolve_model(settings_with("openai/m"), {"OPENAI_BASE_URL": url}).base_url == url
    assert resolve_model(in_file, {"OPENAI_API_KEY": "k"}).api_key == "k"


@pytest.mark.parametrize(
    "url",
    ["https://api.example/v1", "http://localhost.example/v1", "http://10.0.0.1", "http://[broken", "nothing"],
)
@pytest.mark.parametrize("environ", [{}, {"OPENAI_API_KEY": ""}, {"OPENAI_API_KEY": " \n"}])
def test_a_missing_key_is_named_by_its_variable(url: str, environ: dict[str, str]) -> None:
    """Contract 5: session/new answers -32000 naming the variable."""
    with pytest.raises(ConfigError) as raised:
        resolve_model(settings_with("openai/m"), {**environ, "OPENAI_BASE_URL": url})

    assert (
        str(raised.value)
        == "The provider openai needs a key: set OPENAI_API_KEY in the environment of the server, "
        "or store one with: acp-server login openai"
    )
    assert (raised.value.needs_auth, raised.value.path) == (True, "OPENAI_API_KEY")


def test_a_provider_somebody_named_uses_its_own_variable() -> None:
    """Contract 11: `[providers.NAME] api_key_env`."""
    settings = settings_with(
        "work/m", work={"kind": "openai", "base_url": "https://w.example", "api_key_env": "WORK_KEY"}
    )

    assert resolve_model(settings, {"WORK_KEY": " k\n", "OPENAI_API_KEY": "other"}).api_key == "k"
    with pytest.raises(ConfigError, match="The provider work needs a key: set WORK_KEY"):
        resolve_model(settings, {"OPENAI_API_KEY": "other"})


def test_openais_key_goes_to_no_other_provider() -> None:
    """Our promise: a key is only sent where the person sent it."""
    elsewhere = settings_with("lan/m", lan={"kind": "openai", "base_url": "http://10.0.0.1/v1"})
    at_openai = settings_with("mine/m", mine={"kind": "openai"})
    environ = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "https://other.example/v1"}

    assert resolve_model(elsewhere, environ).api_key is None
    assert resolve_model(at_openai, environ).api_key == "k"
    assert resolve_model(at_openai, environ).base_url == "https://api.openai.com/v1"


def test_anthropic_is_found_by_its_own_variables() -> None:
    """Issue "Real models": ANTHROPIC_API_KEY, ANTHROPIC_BASE_URL and --model are enough."""
    settings = settings_with("anthropic/m")
    environ = {"OPENAI_API_KEY": "other", "OPENAI_BASE_URL": "https://other.example/v1"}

    with pytest.raises(
        ConfigError, match="The provider anthropic needs a key: set ANTHROPIC_API_KEY"
    ) as raised:
        resolve_model(settings, environ)
    usual = resolve_model(settings, {**environ, "ANTHROPIC_API_KEY": "k"})
    moved = resolve_model(settings, {**environ, "ANTHROPIC_BASE_URL": "http://127.0.0.1:8080"})

    assert raised.value.needs_auth
    assert (usual.kind, usual.base_url, usual.api_key) == ("anthropic", "https://api.anthropic.com", "k")
    assert (usual.max_tokens, usual.thinking) == (None, None)
    assert (moved.base_url, moved.api_key) == ("http://127.0.0.1:8080", None)


def test_anthropic_is_told_how_long_to_answer_and_to_think() -> None:
    """Anthropic, Messages: `max_tokens` must be said, and thinking is part of it."""
    table = {"kind": "anthropic", "max_tokens": 64_000, "thinking": 16_000}

    resolved = resolve_model(settings_with("deep/m", deep=table), {"ANTHROPIC_API_KEY": "k"})

    assert (resolved.max_tokens, resolved.thinking, resolved.api_key) == (64_000, 16_000, "k")


@pytest.mark.parametrize("model", [None, ""])
def test_without_a_model_the_person_is_told_how_to_choose_one(model: str | None) -> None:
    """Contract 5: session/new answers -32000 naming `--model` and the variable."""
    with pytest.raises(ConfigError) as raised:
        resolve_model(settings_with(model), {"OPENAI_API_KEY": "k"})

    assert raised.value.needs_auth
    assert "--model PROVIDER/NAME" in str(raised.value)
    assert "OPENAI_API_KEY for openai and ANTHROPIC_API_KEY for anthropic" in str(raised.value)


@pytest.mark.parametrize("model", ["gpt", "/gpt", "openai/", "/"])
def test_a_model_that_is_not_provider_and_name_is_refused(model: str) -> None:
    """Our promise: nothing is guessed from half a name."""
    with pytest.raises(ConfigError) as raised:
        resolve_model(settings_with(model), {"OPENAI_API_KEY": "k"})

    assert str(raised.value) == f"A model is named PROVIDER/NAME, not {model!r}."
    assert not raised.value.needs_auth


def test_an_unknown_provider_is_answered_with_the_known_ones() -> None:
    """Our promise: the message says what would be right."""
    with pytest.raises(ConfigError) as raised:
        resolve_model(settings_with("opnai/gpt", mine={"kind": "demo"}), {"OPENAI_API_KEY": "k"})

    assert str(raised.value) == (
        "There is no provider 'opnai' for the model 'opnai/gpt'; "
        "there are anthropic, demo, mine, ollama, openai, scripted."
    )
    assert not raised.value.needs_auth


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("", "http://127.0.0.1:11434/v1"),
        ("0.0.0.0", "http://127.0.0.1:11434/v1"),
        ("[::]:8080", "http://127.0.0.1:8080/v1"),
        ("[::1]", "http://[::1]:11434/v1"),
        ("box.lan", "http://box.lan:11434/v1"),
        ("http://box.lan", "http://box.lan:80/v1"),
        ("https://box.lan", "https://box.lan:443/v1"),
        (":8080", "http://127.0.0.1:8080/v1"),
        ("box:port", "http://127.0.0.1:11434/v1"),
    ],
)
def test_ollama_is_where_its_own_variable_says(host: str, url: str) -> None:
    """Ollama, FAQ: OLLAMA_HOST is read by its server and its clients alike."""
    resolved = resolve_model(settings_with("ollama/qwen3"), {"OLLAMA_HOST": host})

    assert (resolved.base_url, resolved.api_key) == (url, None)


def test_a_key_in_the_settings_serves_where_the_variable_is_empty() -> None:
    """Issue, sign-in: environment before config."""
    settings = settings_with("openai/m", openai={"kind": "openai", "api_key": " in-settings "})

    keys = [resolve_model(settings, {"OPENAI_API_KEY": key}).api_key for key in ("k", " ")]

    assert keys == ["k", "in-settings"]


def test_a_provider_for_which_no_variable_is_known_is_told_to_log_in() -> None:
    """Our promise: words that help."""
    place = KeyPlace("far", None, "https://far.example", wanted=True, required=True)

    assert str(key_missing(place)) == "The provider far needs a key: acp-server login far"


def test_an_origin_is_scheme_host_and_port_alone() -> None:
    """Rule 1 of the vaults; a password in an address is no part of where a key may go."""
    assert origin_of("https://User:pass@Host.example:8443/v1?x") == "https://host.example:8443"
    assert origin_of("http://[broken") == "http://[broken"
