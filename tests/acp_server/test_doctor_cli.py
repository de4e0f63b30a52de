"""`acp-server doctor`: one line for each thing a person can get wrong, and what to do about it."""

import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from acp_server import cli, doctor_cli
from agent_loop import StoreError
from agent_loop.config.credentials import Credentials
from agent_loop.config.resolve import KeyPlace
from agent_loop.config.vaults import FILE_NAME, KeyringVault, StoredKey
from tests.doubles.keyrings import MemoryKeyring
from tests.doubles.provider_server import ProviderServer, Reply, closed_port
from tests.doubles.provider_thread import provider_in_thread

Examine = Callable[..., tuple[int, dict[str, tuple[str, str]]]]


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    with provider_in_thread() as running:
        yield running


@pytest.fixture
def state(tmp_path: Path) -> Path:
    made = tmp_path / "state"
    made.mkdir(mode=0o700)
    return made


@pytest.fixture
def examine(state: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Examine:
    """Runs `acp-server doctor --json …`; the status, and each check's state and words."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "MINE_KEY", "ACP_SERVER_MODEL", "OLLAMA_HOST"):
        monkeypatch.delenv(name, raising=False)

    def run(*flags: str) -> tuple[int, dict[str, tuple[str, str]]]:
        status = cli.run(cli.parse(["--state-dir", str(state), *flags, "doctor", "--json"]))
        told = json.loads(capsys.readouterr().out)
        return status, {check["name"]: (check["state"], check["words"]) for check in told["checks"]}

    return run


def mine(state: Path, server: ProviderServer, model: str = "m") -> None:
    path = state / "config.toml"
    path.write_text(
        f'format = 1\n[agent]\nmodel = "mine/{model}"\n[providers.mine]\nkind = "openai"\n'
        f'base_url = "{server.base_url}"\napi_key_env = "MINE_KEY"\n'
    )


def listing(*names: str) -> Reply:
    return Reply(body=json.dumps({"data": [{"id": name} for name in names]}).encode())


def test_a_server_that_works_is_all_ok(
    examine: Examine, state: Path, server: ProviderServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue, doctor: key, address, model, state dir, store, settings; the key is never printed."""
    mine(state, server)
    monkeypatch.setenv("MINE_KEY", "sk-secret")
    server.listing = listing("other", "m")

    status, found = examine()

    origin = server.base_url.removesuffix("/v1")
    assert status == 0
    assert {name: state for name, (state, _) in found.items()} == dict.fromkeys(found, "ok")
    assert found["settings"][1] == str(state / "config.toml")
    assert found["model"][1] == f"mine/m, from {state / 'config.toml'}:3"
    assert found["key"][1] == "from MINE_KEY"
    assert found["endpoint"][1] == f"{origin} answers and takes the key"
    assert "sk-secret" not in str(found)
    assert server.questions[0].headers["authorization"] == "Bearer sk-secret"


@pytest.mark.parametrize(
    ("name", "listed", "verdict", "words"),
    [
        ("qwen3", ("qwen3:latest",), "ok", "the endpoint has qwen3"),
        ("gpt-6", ("gpt-5", "o3"), "FAIL", "the endpoint does not list gpt-6; it has gpt-5"),
        ("xyz", ("a", "b"), "FAIL", "the endpoint does not list xyz; it has a, b"),
        ("m", (), "FAIL", "the endpoint does not list m; it has none at all"),
    ],
)
def test_a_model_the_endpoint_does_not_have_is_said(
    name: str,
    listed: tuple[str, ...],
    verdict: str,
    words: str,
    examine: Examine,
    server: ProviderServer,
    state: Path,
) -> None:
    """Issue, doctor: model exists, an alias of a full name included."""
    mine(state, server, name)
    server.listing = listing(*listed)

    status, found = examine()

    assert found["listed"] == (verdict, words)
    assert status == (1 if verdict == "FAIL" else 0)


def test_a_stored_key_that_is_refused_is_said_with_where_it_is(
    examine: Examine, state: Path, server: ProviderServer
) -> None:
    """Issue, doctor: key present and where from, and accepted."""
    mine(state, server)
    origin = server.base_url.removesuffix("/v1")
    Credentials(state).keep(KeyPlace("mine", "MINE_KEY", origin, wanted=True, required=False), "sk-old")
    server.listing = Reply(status=401, body=b'{"error": {"message": "no such key"}}')

    status, found = examine()

    assert status == 1
    assert found["key"] == ("ok", f"from {state / FILE_NAME}, a file only you can read")
    assert found["endpoint"] == (
        "FAIL",
        "mine refused the key (401): no such key; store another: acp-server login mine",
    )


def test_an_endpoint_without_a_list_leaves_the_model_unknown(
    examine: Examine, state: Path, server: ProviderServer
) -> None:
    """Issue, doctor: no request that costs is made; say unknown."""
    mine(state, server)
    server.listing = Reply(status=404, body=b"not here")

    status, found = examine()

    assert (status, found["endpoint"][0]) == (0, "warn")
    assert "is unknown" in found["endpoint"][1]
    assert found["key"] == (
        "ok",
        f"none; {server.base_url.removesuffix('/v1')} is asked without one",
    )


def test_an_address_where_nobody_listens_is_said(examine: Examine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue, doctor: base URL reachable."""
    monkeypatch.setenv("OLLAMA_HOST", f"127.0.0.1:{closed_port()}")

    status, found = examine("--model", "ollama/qwen3")

    assert status == 1
    assert found["endpoint"][0] == "FAIL"
    assert found["endpoint"][1].endswith("; does it run, and is its address right?")


def test_an_address_that_cannot_be_one_is_said(examine: Examine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue, doctor: what a person mistyped."""
    monkeypatch.setenv("OPENAI_BASE_URL", "localhost")
    monkeypatch.setenv("OPENAI_API_KEY", "k")

    status, found = examine("--model", "openai/x")

    assert (status, found["endpoint"][0]) == (1, "FAIL")
    assert "must begin with http" in found["endpoint"][1]


def test_without_a_key_or_a_model_it_is_said_how_to_get_one(examine: Examine) -> None:
    """Contracts 5: the variable, the flag, the login."""
    no_model, no_key = examine(), examine("--model", "openai/gpt-5")

    assert (no_model[0], no_model[1]["model"][0]) == (1, "FAIL")
    assert "--model" in no_model[1]["model"][1]
    assert (no_key[0], no_key[1]["key"][0]) == (1, "FAIL")
    assert "acp-server login openai" in no_key[1]["key"][1]
    assert "endpoint" not in no_key[1]


def test_a_stored_key_alone_chooses_a_model(
    examine: Examine, state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Decision: whoever is signed in to one maker needs no --model; offline asks nobody."""
    place = KeyPlace("openai", "OPENAI_API_KEY", "https://api.openai.com", wanted=True, required=True)
    Credentials(state).keep(place, "sk")

    status = cli.run(cli.parse(["--state-dir", str(state), "doctor", "--offline"]))

    shown = capsys.readouterr().out
    assert status == 0
    assert "ok    model      openai/gpt-5, as a key for openai is stored\n" in shown
    assert "endpoint" not in shown


def test_a_key_in_the_systems_keyring_is_told_so(
    examine: Examine, state: Path, server: ProviderServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue, doctor: where the key is from."""
    vault = KeyringVault(MemoryKeyring())
    vault.write("mine", StoredKey("sk", server.base_url.removesuffix("/v1")))
    monkeypatch.setattr("agent_loop.config.vaults.open_keyring", lambda: vault)
    mine(state, server)
    server.listing = listing("m")

    status, found = examine()

    assert (status, found["key"]) == (0, ("ok", f"from {vault.place}"))
    assert server.questions[0].headers["authorization"] == "Bearer sk"


def test_settings_are_checked_with_file_and_line(examine: Examine, state: Path) -> None:
    """Issue, doctor: config syntax with file and line, unknown keys; what hangs on them is left out."""
    path = state / "config.toml"
    path.write_text('format = 1\ncolour = "red"\n[agent]\nmodel = "demo/tour"\n')
    warned = examine()
    path.write_text("format = 1\n[agent\n")
    broken = examine()

    assert warned[0] == 0
    assert warned[1]["settings"] == ("warn", f"Nothing reads the key colour ({path}, line 2).")
    assert (warned[1]["key"], warned[1]["client"]) == (
        ("ok", "none is needed"),
        ("ok", "demo needs none"),
    )
    assert broken[0] == 1
    assert broken[1]["settings"] == ("FAIL", f"Settings file {path} is not valid TOML in line 2.")
    assert "model" not in broken[1]


def test_a_key_in_settings_is_told_by_its_line(examine: Examine, state: Path) -> None:
    """Issue, doctor: where the key is from."""
    path = state / "config.toml"
    path.write_text('format = 1\n[providers.openai]\napi_key = "sk"\nbase_url = "http://localhost:1/v1"\n')
    path.chmod(0o644)

    _, found = examine("--model", "openai/x")

    assert found["key"] == ("ok", f"from {path}:3")
    assert found["settings"] == (
        "warn",
        f"Others on this machine can read the key in {path}: chmod 600 {path}",
    )


def test_the_state_dir_must_be_writable_and_should_be_private(examine: Examine, state: Path) -> None:
    """Issue, doctor: state dir writable and private."""
    state.chmod(0o755)
    open_to_all = examine("--model", "demo/tour")[1]["state dir"]
    state.rmdir()
    missing = examine("--model", "demo/tour")[1]["state dir"]
    state.touch()
    no_folder = examine("--model", "demo/tour")

    assert open_to_all == ("warn", f"others can look into {state}: chmod 700 {state}")
    assert missing == ("ok", f"{state}, which the first session makes")
    assert (no_folder[0], no_folder[1]["state dir"][0]) == (1, "FAIL")


def test_a_state_dir_that_cannot_be_made_is_said(
    examine: Examine, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue, doctor; the superuser runs this test, too, and may write anywhere."""
    state.rmdir()
    monkeypatch.setattr("acp_server.doctor_checks.os.access", lambda *_: False)

    _, found = examine("--model", "demo/tour")

    assert found["state dir"] == (
        "FAIL",
        f"{state} cannot be made: {state.parent} is not writable; choose --state-dir",
    )


class Store:
    """A store of which only the list is asked."""

    def __init__(self, error: BaseException) -> None:
        self._error = error

    async def list_sessions(self, **_: Any) -> None:
        raise self._error

    async def aclose(self) -> None:
        """Nothing to close."""


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (StoreError("io", "no"), "no"),
        (TimeoutError(), "it did not answer within 5 s; is --store right?"),
    ],
)
def test_a_store_that_does_not_open_is_said(
    error: BaseException, words: str, examine: Examine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue, doctor: store opens."""
    monkeypatch.setattr("acp_server.doctor_checks.open_store", lambda _: Store(error))

    status, found = examine("--model", "demo/tour")

    assert (status, found["store"]) == (1, ("FAIL", words))


def test_what_is_not_installed_is_said_with_how_to_install_it(
    examine: Examine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue, doctor: ripgrep and SDK extras."""
    monkeypatch.setattr("acp_server.doctor_checks.find_ripgrep", lambda: None)
    monkeypatch.setattr("acp_server.doctor_checks.find_spec", lambda _: None)

    status, found = examine("--model", "anthropic/claude")

    assert status == 1
    assert found["ripgrep"][0] == "warn"
    assert found["client"] == (
        "FAIL",
        "the package anthropic is not installed: pip install 'acp-agent-server[anthropic]'",
    )


@pytest.mark.parametrize(
    ("trouble", "check"),
    [
        (None, ("ok", "In a sandbox: writes nothing, without network.")),
        ("there is no bwrap", ("FAIL", "there is no bwrap")),
    ],
)
def test_a_sandbox_that_is_wanted_is_tried(
    trouble: str | None, check: tuple[str, str], examine: Examine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue "Acting with consent": a clear error when unavailable, before the first session, too."""
    monkeypatch.setattr("acp_server.doctor_checks.sandbox_trouble", lambda _: trouble)

    status, found = examine("--model", "demo/tour", "--sandbox", "read-only")

    assert (status, found["sandbox"]) == (int(trouble is not None), check)
    assert "sandbox" not in examine("--model", "demo/tour")[1]


def test_the_snippets_say_what_was_checked_with_the_real_command(
    state: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue, doctor: editors' snippets with the real executable path."""
    monkeypatch.chdir(state.parent)
    command = os.path.join(os.path.dirname(sys.executable), "acp-server")

    status = cli.run(cli.parse(["--state-dir", "state", "--model", "demo/tour", "doctor"]))

    shown = capsys.readouterr().out
    zed = json.loads(shown[shown.index("{") : shown.rindex("}") + 1])
    assert status == 0
    assert zed["agent_servers"]["ACP Agent Server"] == {
        "command": command,
        "args": ["--model", "demo/tour", "--state-dir", str(state)],
        "env": {},
    }
    assert shown.endswith(f"  {command} --model demo/tour --state-dir {state}\n")


def test_without_our_script_beside_it_the_path_is_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    """An installation whose scripts lie elsewhere."""
    monkeypatch.setattr("acp_server.doctor_cli.sys.executable", "/nowhere/python")
    monkeypatch.setattr("acp_server.doctor_cli.shutil.which", lambda _: None)

    assert doctor_cli._command() == "acp-server"


def test_a_doctor_who_is_interrupted_says_nothing_more(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C."""

    def interrupted(_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("acp_server.doctor_cli.anyio.run", interrupted)

    assert cli.run(cli.parse(["--state-dir", str(state), "doctor"])) == 130
