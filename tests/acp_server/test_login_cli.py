"""`acp-server login` and `logout`: a key is read unseen, tried, stored, and taken back."""

import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from acp_server import cli
from agent_loop.config.vaults import FILE_NAME, KeyringVault
from tests.doubles.keyrings import MemoryKeyring
from tests.doubles.provider_server import ProviderServer, Reply
from tests.doubles.provider_thread import provider_in_thread

LISTED = Reply(body=b'{"data": [{"id": "m"}]}')
REFUSED = Reply(status=401, body=b'{"error": {"message": "no such key"}}')


class Told(NamedTuple):
    status: int
    out: str
    err: str


Tell = Callable[..., Told]


@pytest.fixture
def server() -> Iterator[ProviderServer]:
    with provider_in_thread() as running:
        yield running


@pytest.fixture
def tell(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Tell:
    """Runs `acp-server …` on the state in tmp_path, with these lines on stdin."""
    for name in ("OPENAI_API_KEY", "MINE_KEY", "ACP_SERVER_MODEL"):
        monkeypatch.delenv(name, raising=False)

    def run(*argv: str, stdin: str = "") -> Told:
        monkeypatch.setattr("sys.stdin", io.StringIO(stdin))
        status = cli.run(cli.parse(["--state-dir", str(tmp_path), *argv]))
        return Told(status, *capsys.readouterr())

    return run


def with_provider(state: Path, server: ProviderServer) -> None:
    table = f'kind = "openai"\nbase_url = "{server.base_url}"\napi_key_env = "MINE_KEY"\n'
    (state / "config.toml").write_text(
        f'format = 1\n[agent]\nmodel = "mine/m"\n[providers.mine]\n{table}[providers.here]\nkind = "openai"\n'
        'base_url = "http://localhost:1/v1"\n'
    )


def stored(state: Path) -> dict[str, str]:
    keys = json.loads((state / FILE_NAME).read_text())["keys"]
    return {name: kept["key"] for name, kept in keys.items()}


def test_a_key_that_is_taken_is_stored_and_where_is_said(
    tell: Tell, tmp_path: Path, server: ProviderServer
) -> None:
    """Issue, sign-in: checked with one cheap request, then stored; the fallback is said plainly."""
    with_provider(tmp_path, server)
    server.listing = LISTED

    told = tell("login", "mine", "--with-key-from-stdin", stdin="sk-new\n")

    assert told == (
        0,
        f"The key for mine is stored in {tmp_path / FILE_NAME}.\n"
        "There is no system keyring here: whoever may read your files can read it.\n",
        "",
    )
    assert stored(tmp_path) == {"mine": "sk-new"}
    [request] = server.questions
    assert (request.path, request.headers["authorization"]) == ("/v1/models", "Bearer sk-new")


def test_a_refused_key_is_not_stored(tell: Tell, tmp_path: Path, server: ProviderServer) -> None:
    """Issue, sign-in: exit 0 only if stored; the key is never shown."""
    with_provider(tmp_path, server)
    server.listing = REFUSED

    told = tell("login", "mine", "--with-key-from-stdin", stdin="sk-bad\n")

    assert (told.status, told.out) == (1, "")
    assert told.err == (
        "mine refused the key (401): no such key. Nothing was stored; --no-check stores it all the same.\n"
    )
    assert not (tmp_path / FILE_NAME).exists()


def test_a_person_is_asked_for_the_provider_and_unseen_for_the_key(
    tell: Tell, tmp_path: Path, server: ProviderServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue, sign-in: interactive, without echo; Enter means the provider of the chosen model."""
    with_provider(tmp_path, server)
    asked: list[str] = []

    def answer(text: str) -> Callable[[str], str]:
        def ask(words: str) -> str:
            asked.append(words)
            return text

        return ask

    monkeypatch.setattr("builtins.input", answer(""))
    monkeypatch.setattr("acp_server.login_cli.getpass", answer(" sk-new "))
    monkeypatch.setenv("MINE_KEY", "sk-environment")

    told = tell("login", "--no-check")

    assert asked == [
        "Which provider: anthropic, mine, openai [mine]? ",
        "Key for mine (it is not shown): ",
    ]
    assert told.status == 0
    assert told.out.endswith("Where MINE_KEY is set, as it is here, that key is used instead.\n")
    assert stored(tmp_path) == {"mine": "sk-new"}
    assert server.questions == []


def test_a_keyring_is_used_where_there_is_one(
    tell: Tell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue, sign-in: the OS keyring before the file."""
    backend = MemoryKeyring()
    monkeypatch.setattr("agent_loop.config.vaults.open_keyring", lambda: KeyringVault(backend))

    told = tell("login", "openai", "--no-check", "--with-key-from-stdin", stdin="sk\n")

    assert (told.status, told.out) == (
        0,
        f"The key for openai is stored in the system's keyring ({backend.name}).\n",
    )
    assert not (tmp_path / FILE_NAME).exists()


@pytest.mark.parametrize(
    ("argv", "stdin", "words"),
    [
        (("nobody",), "k", "There is no provider 'nobody'; there are"),
        (("demo",), "k", "The provider demo takes no key."),
        (("here",), "k", "The provider here is on this machine (http://localhost:1)"),
        (("mine", "--no-check"), "\n", "No key was given; nothing was stored."),
        (("mine",), "two words\n", "the key for mine has a blank"),
    ],
)
def test_what_cannot_be_stored_is_said(
    argv: tuple[str, ...], stdin: str, words: str, tell: Tell, tmp_path: Path, server: ProviderServer
) -> None:
    """Our promise: a failure names what was wrong, and what would be right."""
    with_provider(tmp_path, server)

    told = tell("login", *argv, "--with-key-from-stdin", stdin=stdin)

    assert (told.status, told.out) == (1, "")
    assert words in told.err
    assert not (tmp_path / FILE_NAME).exists()


def test_a_person_who_leaves_has_stored_nothing(tell: Tell, monkeypatch: pytest.MonkeyPatch) -> None:
    """Our promise: Ctrl-C and Ctrl-D end it without a traceback."""

    def leave(_: str) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr("builtins.input", leave)

    assert tell("login") == (130, "", "Nothing was stored.\n")


def test_settings_that_cannot_be_used_are_said_first(tell: Tell, tmp_path: Path) -> None:
    """Contracts 11: with file and line."""
    (tmp_path / "config.toml").write_text("[agent\n")

    told = tell("login", "openai", "--with-key-from-stdin", stdin="k")

    assert (told.status, "line 1" in told.err) == (1, True)


def test_a_logout_forgets_one_key_or_all(tell: Tell, tmp_path: Path) -> None:
    """Issue, sign-in: `acp-server logout [PROVIDER]`."""
    for name in ("openai", "anthropic"):
        tell("login", name, "--no-check", "--with-key-from-stdin", stdin="k")
    place = tmp_path / FILE_NAME

    first, rest, again = tell("logout", "openai"), tell("logout"), tell("logout")

    assert first == (0, f"The key for openai is gone from {place}.\n", "")
    assert rest == (0, f"The key for anthropic is gone from {place}.\n", "")
    assert again == (0, "No key was stored.\n", "")
    assert stored(tmp_path) == {}


def test_a_logout_that_fails_says_so(tell: Tell, tmp_path: Path) -> None:
    """Our promise: exit 0 only if none is left."""
    (tmp_path / FILE_NAME).write_text("{")

    told = tell("logout")

    assert (told.status, told.out) == (1, "")
    assert str(tmp_path / FILE_NAME) in told.err
