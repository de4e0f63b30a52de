"""Settings from everywhere: which source wins, what is warned of, and how a mistake is worded."""

import subprocess
import sys
from pathlib import Path

import pytest

from agent_loop.config.load import Loaded, load_settings, state_dir
from agent_loop.config.settings import (
    AgentEntry,
    AgentSettings,
    FetchSettings,
    PluginSettings,
    ProviderSettings,
    RetrySettings,
    Settings,
    StoreSettings,
)

BUILT_IN = {
    "openai": ProviderSettings(kind="openai"),
    "anthropic": ProviderSettings(kind="anthropic"),
    "scripted": ProviderSettings(kind="scripted"),
    "demo": ProviderSettings(kind="demo"),
}

EVERYTHING = """\
format = 1

[agent]
model = "local/org/coder"
system_prompt = "Be brief."
permission_mode = "full-auto"
max_steps = 7

[providers.local]
kind = "openai"
base_url = "http://localhost:8080/v1"
api_key_env = "LOCAL_KEY"
idle_timeout_s = 5

[providers.scripted]
script = "answers.jsonl"
control = "127.0.0.1:9"

[[agents]]
id = "one"
model = "demo/a"
system_prompt = ""
resume_session_id = "s-1"

[store]
url = "postgresql://db/sessions"

[fetch]
allow_private = true

[plugins.retry]
attempts = 2

[plugins.any]
tries = 3
deep = { any = ["thing"] }
"""


def loaded(
    tmp_path: Path,
    text: str | None = None,
    flags: dict[str, str | None] | None = None,
    environ: dict[str, str] | None = None,
) -> Loaded:
    """Settings of a person whose settings file, if any, says `text`."""
    if text is not None:
        (tmp_path / "config.toml").write_text(text)
    return load_settings(flags=flags or {}, environ=environ or {}, state_dir=tmp_path)


def test_without_a_word_everything_has_its_default(tmp_path: Path) -> None:
    """Contract 11: a missing default file is fine; demo and scripted are never a silent default."""
    found = loaded(tmp_path)

    assert found.settings == Settings(
        format=1,
        agent=AgentSettings(model=None, system_prompt=None, permission_mode="ask", max_steps=200),
        providers=BUILT_IN,
        agents=[],
        plugins=PluginSettings(retry=RetrySettings(attempts=4, base_s=1.0, cap_s=60.0)),
        store=StoreSettings(url=None),
        fetch=FetchSettings(allow_private=False),
    )
    assert (found.log_level, found.trace, found.warnings, found.error) == ("info", None, (), None)
    assert (found.state_dir, found.path) == (tmp_path, tmp_path / "config.toml")
    assert found.origin("agent.model") == "default"


def test_the_whole_file_is_read(tmp_path: Path) -> None:
    """Contract 11: every table and key that exists now."""
    found = loaded(tmp_path, EVERYTHING)

    assert found.settings == Settings(
        agent=AgentSettings(
            model="local/org/coder",
            system_prompt="Be brief.",
            permission_mode="full-auto",
            max_steps=7,
        ),
        providers={
            **BUILT_IN,
            "local": ProviderSettings(
                kind="openai",
                base_url="http://localhost:8080/v1",
                api_key_env="LOCAL_KEY",
                idle_timeout_s=5.0,
            ),
            "scripted": ProviderSettings(kind="scripted", script="answers.jsonl", control="127.0.0.1:9"),
        },
        agents=[AgentEntry(id="one", model="demo/a", system_prompt="", resume_session_id="s-1")],
        plugins=PluginSettings.model_validate(
            {"retry": {"attempts": 2}, "any": {"tries": 3, "deep": {"any": ["thing"]}}}
        ),
        store=StoreSettings(url="postgresql://db/sessions"),
        fetch=FetchSettings(allow_private=True),
    )
    assert (found.warnings, found.error) == ((), None)


@pytest.mark.parametrize(
    ("flags", "environ", "model", "origin"),
    [
        ({"model": "a/flag"}, {"ACP_SERVER_MODEL": "a/env"}, "a/flag", "--model"),
        ({"model": None}, {"ACP_SERVER_MODEL": "a/env"}, "a/env", "ACP_SERVER_MODEL"),
        ({"model": ""}, {"ACP_SERVER_MODEL": ""}, "a/file", "<path>:2"),
        ({}, {}, "a/file", "<path>:2"),
    ],
)
def test_flags_win_over_the_environment_and_that_over_the_file(
    tmp_path: Path, flags: dict[str, str | None], environ: dict[str, str], model: str, origin: str
) -> None:
    """Contract 11: flags > environment > file > defaults; each value knows where it came from."""
    found = loaded(tmp_path, '[agent]\nmodel = "a/file"\nmax_steps = 3\n', flags, environ)

    assert found.settings.agent == AgentSettings(model=model, max_steps=3)
    assert found.origin("agent.model") == origin.replace("<path>", str(found.path))
    assert found.origin("agent.max_steps") == f"{found.path}:3"
    assert found.origin("agent.permission_mode") == "default"


def test_every_flag_has_its_variable(tmp_path: Path) -> None:
    """Contract 11: `ACP_SERVER_<FLAG>`."""
    other = tmp_path / "other.toml"
    other.write_text("[agent]\nmax_steps = 9\n")
    values = {
        "model": "a/b",
        "permission_mode": "full-auto",
        "sandbox": "read-only",
        "store": "postgresql:///team",
        "config": str(other),
        "log_level": "DEBUG",
        "trace": "~/trace.jsonl",
    }
    variables = {f"ACP_SERVER_{flag.upper()}": value for flag, value in values.items()}

    by_flag = loaded(tmp_path, flags=dict(values), environ={"HOME": "/home/somebody"})
    by_variable = loaded(tmp_path, environ={**variables, "HOME": "/home/somebody"})

    for found in (by_flag, by_variable):
        assert found.settings.agent == AgentSettings(
            model="a/b", permission_mode="full-auto", sandbox="read-only", max_steps=9
        )
        assert found.settings.store == StoreSettings(url="postgresql:///team")
        assert (found.path, found.log_level) == (other, "debug")
        assert found.trace == Path("/home/somebody/trace.jsonl")
    names = (
        "agent.model",
        "agent.permission_mode",
        "agent.sandbox",
        "store.url",
        "config",
        "log_level",
        "trace",
    )
    assert [by_flag.origin(name) for name in names] == [
        "--model",
        "--permission-mode",
        "--sandbox",
        "--store",
        "--config",
        "--log-level",
        "--trace",
    ]
    assert [by_variable.origin(name) for name in names] == list(variables)


def test_a_key_nobody_reads_is_warned_of_by_file_and_name(tmp_path: Path) -> None:
    """Contract 11: an unknown key warns with file and key, and is no error."""
    found = loaded(
        tmp_path,
        """\
colour = "red"
[agent]
modle = "a/b"
[providers.openai]
key = "secret"
[[agents]]
id = "a"
[[agents]]
id = "b"
role = "tester"
[store]
uri = "somewhere"
[permission]
rulez = []
[plugins.any]
thing = "goes"
[plugins.retry]
patience = 3
[models."openai/gpt-5"]
window = 3
[models.gpt-5]
context_window = 3
""",
    )

    assert found.error is None
    assert found.warnings == tuple(
        f"Nothing reads the key {key} ({found.path}, line {line})."
        for key, line in [
            ("models.gpt-5", 21),
            ("colour", 1),
            ("agent.modle", 3),
            ("store.uri", 12),
            ("permission.rulez", 14),
            ("plugins.retry.patience", 18),
            ("providers.openai.key", 5),
            ("models.openai/gpt-5.window", 20),
            ("agents[1].role", 10),
        ]
    )
    assert "secret" not in repr(found.settings)


@pytest.mark.parametrize(
    ("text", "words", "line"),
    [
        ("format = 2", "format must be 1, the only format this version reads, not 2", 1),
        ('format = "1"', "format must be 1, the only format this version reads, not '1'", 1),
        ("agent = 3", "agent must be a table", 1),
        ("[agent]\nmodel = 3", "agent.model must be text like PROVIDER/NAME, not 3", 2),
        ("[agent]\nsystem_prompt = []", "agent.system_prompt must be text, not []", 2),
        (
            f'[agent]\nsystem_prompt = ["{"long" * 20}"]',
            "agent.system_prompt must be text",
            2,
        ),
        (
            '[agent]\n\npermission_mode = "yolo"',
            'agent.permission_mode must be "ask", "accept-edits", "plan" or "full-auto", not \'yolo\'',
            3,
        ),
        ("[agent]\nmax_steps = 0", "agent.max_steps must be a whole number of at least 1, not 0", 2),
        ("[agent]\nmax_steps = 1.5", "agent.max_steps must be a whole number of at least 1, not 1.5", 2),
        ('[agent]\nmax_steps = "9"', "agent.max_steps must be a whole number of at least 1, not '9'", 2),
        ("[agent]\nmax_steps = true", "agent.max_steps must be a whole number of at least 1, not True", 2),
        ("permission = 3", "permission must be a table", 1),
        ("[permission]\nrules = 3", "permission.rules must be an array of tables", 2),
        ("[permission]\nrules = [3]", "permission.rules[0] must be a table", 2),
        (
            '[permission]\nrules = [{effect = "deny"}]',
            "permission.rules[0] must be a table that says of what, too: tool, kind, path, command, domain, "
            "not {'effect': 'deny'}",
            2,
        ),
        (
            '[[permission.rules]]\neffect = "deny"\npaht = ".env"',
            "permission.rules[0].paht must be one of effect, tool, kind, path, command, domain",
            3,
        ),
        (
            '[[permission.rules]]\npath = ".env"',
            'permission.rules[0].effect must be "allow", "ask" or "deny", and is missing',
            1,
        ),
        (
            '[[permission.rules]]\neffect = "never"',
            'permission.rules[0].effect must be "allow", "ask" or "deny", not \'never\'',
            2,
        ),
        (
            '[[permission.rules]]\neffect = "deny"\npath = "!.env"',
            "permission.rules[0].path must be a gitignore pattern, neither a comment nor a negation, "
            "not '!.env'",
            3,
        ),
        (
            '[[permission.rules]]\neffect = "allow"\ncommand = "ls | wc"',
            "permission.rules[0].command must be the first words of one command, nothing to expand, "
            "not 'ls | wc'",
            3,
        ),
        (
            '[[permission.rules]]\neffect = "allow"\ncommand = "\'ls"',
            "permission.rules[0].command must be the first words of one command, nothing to expand, "
            'not "\'ls"',
            3,
        ),
        (
            '[[permission.rules]]\neffect = "allow"\ndomain = "https://x.org"',
            "permission.rules[0].domain must be a host name, or *. and what it ends in, not 'https://x.org'",
            3,
        ),
        ("providers = []", "providers must be a table", 1),
        ("[providers]\nopenai = 3", "providers.openai must be a table", 2),
        (
            "[providers.mine]\nbase_url = 'http://x'",
            'providers.mine.kind must be "openai", "anthropic", "scripted" or "demo", and is missing',
            1,
        ),
        (
            "[providers.mine]\nkind = 'other'",
            'providers.mine.kind must be "openai", "anthropic", "scripted" or "demo"',
            2,
        ),
        (
            "[providers.openai]\nbase_url = 'localhost:80'",
            "providers.openai.base_url must be an address that begins with http:// or https://",
            2,
        ),
        (
            "[providers.anthropic]\nmax_tokens = 0",
            "providers.anthropic.max_tokens must be a whole number of tokens of at least 1",
            2,
        ),
        (
            "[providers.anthropic]\nthinking = 1023",
            'providers.anthropic.thinking must be "adaptive", or a whole number of tokens of at least 1024',
            2,
        ),
        (
            "[providers.openai]\nidle_timeout_s = inf",
            "providers.openai.idle_timeout_s must be a number of seconds greater than 0",
            2,
        ),
        (
            "[providers.openai]\nidle_timeout_s = 0",
            "providers.openai.idle_timeout_s must be a number of seconds greater than 0",
            2,
        ),
        ("[agents]\nid = 'a'", "agents must be an array of tables", 1),
        ("agents = [3]", "agents[0] must be a table", 1),
        (
            "[[agents]]\nmodel = 'a/b'",
            "agents[0].id must be 1 to 64 letters, digits, dots, dashes or underscores, and is missing",
            1,
        ),
        (
            "[[agents]]\nid = ''",
            "agents[0].id must be 1 to 64 letters, digits, dots, dashes or underscores, not ''",
            2,
        ),
        (
            "[[agents]]\nid = 'a/b'",
            "agents[0].id must be 1 to 64 letters, digits, dots, dashes or underscores, not 'a/b'",
            2,
        ),
        ("store = 3", "store must be a table", 1),
        (
            "[store]\nurl = 'mysql://me:pw@db'",
            "store.url must be an address that begins with postgresql://",
            2,
        ),
        ("plugins = 3", "plugins must be a table", 1),
        ("[plugins]\nretry = 3", "plugins.retry must be a table", 2),
        ("[plugins]\nany = 3", "plugins.any must be a table", 2),
        (
            "[plugins.retry]\nattempts = 0",
            "plugins.retry.attempts must be a whole number from 1 to 100, not 0",
            2,
        ),
        ('models."a/b" = 3', "models.a/b must be a table", 1),
        (
            '[models."a/b"]\ncontext_window = 0',
            "models.a/b.context_window must be a whole number of tokens of at least 1, not 0",
            2,
        ),
        ('[models."a/b"]\ntools = "no"', "models.a/b.tools must be true or false, not 'no'", 2),
        (
            '[models."a/b"]\noutput_price = 2.0\ncache_read_price = 1.0',
            "models.a/b must be a table with both input_price and output_price, or without any price",
            1,
        ),
        (
            '[models."a/b"]\ninput_price = -1.0\noutput_price = 2.0',
            "models.a/b.input_price must be a price of at least 0, not -1.0",
            2,
        ),
    ],
    ids=lambda it: ascii(it)[:32],
)
def test_a_wrong_value_is_named_with_its_place_and_what_would_be_right(
    tmp_path: Path, text: str, words: str, line: int
) -> None:
    """Contract 11: initialize works and session/new fails with the path and line; contract 5: our words."""
    found = loaded(tmp_path, text)

    assert found.error is not None
    assert str(found.error) == f"{words} ({found.path}, line {line})."
    assert (found.error.path, found.error.line) == (str(found.path), line)
    assert not found.error.needs_auth
    assert found.settings == Settings()


@pytest.mark.parametrize(
    ("flags", "environ", "path", "words"),
    [
        (
            {"permission_mode": "yolo"},
            {},
            "--permission-mode",
            '--permission-mode must be "ask", "accept-edits", "plan" or "full-auto", not \'yolo\'.',
        ),
        (
            {},
            {"ACP_SERVER_PERMISSION_MODE": "yolo"},
            "ACP_SERVER_PERMISSION_MODE",
            'ACP_SERVER_PERMISSION_MODE must be "ask", "accept-edits", "plan" or "full-auto", not \'yolo\'.',
        ),
        (
            {},
            {"ACP_SERVER_LOG_LEVEL": "loud"},
            "ACP_SERVER_LOG_LEVEL",
            "ACP_SERVER_LOG_LEVEL must be one of debug, info, warning, error, not 'loud'.",
        ),
    ],
)
def test_a_wrong_flag_or_variable_is_named_as_it_was_spelled(
    tmp_path: Path, flags: dict[str, str | None], environ: dict[str, str], path: str, words: str
) -> None:
    """Our promise: the person is sent to what she wrote, not to a file that is fine."""
    found = loaded(tmp_path, "[agent]\nmax_steps = 1\n", flags, environ)

    assert found.error is not None
    assert (str(found.error), found.error.path, found.error.line) == (words, path, None)


def test_a_key_pasted_into_the_file_is_never_shown(tmp_path: Path) -> None:
    """Our promise: no secret in a log, an error or a transcript."""
    found = loaded(tmp_path, "[providers.openai]\napi_key_env = 'sk-secret'\n")

    assert found.error is not None
    assert str(found.error).startswith(
        "providers.openai.api_key_env must be the name of an environment variable, never the key itself ("
    )
    assert "sk-secret" not in repr(found.error)


def test_a_broken_file_still_gives_settings_to_begin_with(tmp_path: Path) -> None:
    """Contract 11: bad syntax lets initialize work."""
    found = loaded(tmp_path, "[agent\n", {"model": "a/b", "log_level": "error"})

    assert found.error is not None
    assert (found.error.path, found.error.line) == (str(found.path), 1)
    assert (found.settings, found.log_level, found.warnings) == (Settings(), "error", ())
    assert found.origin("agent.max_steps") == "default"


def test_a_named_file_that_is_missing_is_an_error(tmp_path: Path) -> None:
    """Our promise: a mistyped --config is never taken for defaults."""
    found = loaded(tmp_path, flags={"config": str(tmp_path / "none.toml")})

    assert found.error is not None
    assert found.error.path == str(tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("flag", "environ", "expected"),
    [
        ("/flag", {"ACP_SERVER_HOME": "/env"}, "/flag"),
        (None, {"ACP_SERVER_HOME": "/env", "XDG_STATE_HOME": "/xdg"}, "/env"),
        ("", {"ACP_SERVER_HOME": "", "XDG_STATE_HOME": "/xdg"}, "/xdg/acp-server"),
        (None, {"XDG_STATE_HOME": "relative", "HOME": "/home/a"}, "/home/a/.local/state/acp-server"),
        (None, {"HOME": "/home/a"}, "/home/a/.local/state/acp-server"),
        ("~", {"HOME": "/home/a"}, "/home/a"),
        (None, {"ACP_SERVER_HOME": "~/there/../here", "HOME": "/home/a"}, "/home/a/here"),
        ("~other", {"HOME": "/home/a"}, str(Path("~other").absolute())),
    ],
)
def test_the_state_dir_is_where_the_person_or_the_system_says(
    flag: str | None, environ: dict[str, str], expected: str
) -> None:
    """Contract 11: flag, ACP_SERVER_HOME, then the XDG rules, which ignore relative paths."""
    assert state_dir(environ, flag) == Path(expected)


def test_a_home_the_environment_does_not_name_is_the_systems() -> None:
    """Our promise: an editor may start us with hardly any environment."""
    assert state_dir({}) == Path("~/.local/state/acp-server").expanduser()


def test_importing_config_reads_no_file_of_the_person_and_no_heavy_library() -> None:
    """Our promise: import costs little and touches nothing."""
    code = """
import sys
opened = []
sys.addaudithook(lambda event, args: event == "open" and opened.append(str(args[0])))
import agent_loop.config.load, agent_loop.config.resolve
print([it for it in opened if it.endswith((".toml", ".env"))])
print(sorted({"openai", "httpx", "httpx2", "jsonschema"} & set(sys.modules)))
"""
    root = Path(__file__).parents[3]

    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, timeout=30)

    assert (done.stdout, done.stderr, done.returncode) == ("[]\n[]\n", "", 0)


def test_a_key_that_others_can_read_is_warned_of(tmp_path: Path) -> None:
    """Issue, sign-in: a key in the settings; the warning says what to do and not the key."""
    path = tmp_path / "config.toml"
    path.write_text('format = 1\n[providers.openai]\napi_key = "sk-secret"\n')
    path.chmod(0o640)
    exposed = load_settings(flags={}, environ={}, state_dir=tmp_path)
    path.chmod(0o600)
    private = load_settings(flags={}, environ={}, state_dir=tmp_path)

    assert exposed.warnings == (f"Others on this machine can read the key in {path}: chmod 600 {path}",)
    assert private.warnings == ()
    assert "sk-secret" not in repr(private)
