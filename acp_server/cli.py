"""The command line: no subcommand serves stdio; the others are for people at a terminal."""

import os
import sys
from collections.abc import Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Final, cast

if TYPE_CHECKING:
    import argparse

    from agent_loop import Loaded

FLAGS: Final = ("model", "config", "permission_mode", "sandbox", "store", "log_level", "trace")
_SERVING: Final = {f"--{name.replace('_', '-')}": name for name in (*FLAGS, "state_dir")}


def parse(argv: Sequence[str]) -> "argparse.Namespace":
    """The arguments; exits with usage on stderr when they make no sense."""
    plain = _plain(argv)
    if plain is not None:
        return cast("argparse.Namespace", plain)

    # Editors wait for the server, and none of them asks for help: the parser is for people.
    from acp_server.cli_parser import parse_all

    return parse_all(argv)


def _plain(argv: Sequence[str]) -> SimpleNamespace | None:
    """Flags of the server with a value each, as editors start it; None for anything else."""
    given: dict[str, str | None] = dict.fromkeys(_SERVING.values())
    words = iter(argv)
    for word in words:
        flag, equals, value = word.partition("=")
        if flag not in _SERVING:
            return None
        if not equals:
            value = next(words, "-")
            if value.startswith("-"):
                return None
        given[_SERVING[flag]] = value
    return SimpleNamespace(**given, version=False, command=None)


def run(arguments: "argparse.Namespace") -> int:
    """Run a subcommand, or print the version; the exit status."""
    if arguments.version:
        from acp_server.methods.initialize import own_version

        print(f"acp-server {own_version()}")
        return 0
    if arguments.command == "trace-to-golden":
        from acp_server.trace_to_golden import trace_to_golden

        return trace_to_golden(arguments.file, arguments.folder)
    if arguments.command == "sessions":
        from acp_server.sessions_cli import sessions

        return sessions(arguments, _settings(arguments))
    if arguments.command == "permissions":
        from acp_server.permissions_cli import permissions

        return permissions(arguments, _settings(arguments))
    if arguments.command == "why":
        from acp_server.why_cli import why

        return why(arguments, _settings(arguments))
    if arguments.command in ("login", "logout"):
        from acp_server.login_cli import login, logout

        return (login if arguments.command == "login" else logout)(
            arguments, _settings(arguments), os.environ
        )
    if arguments.command == "doctor":
        from acp_server.doctor_cli import doctor

        return doctor(arguments, _settings(arguments), os.environ)
    from acp_server.demo import demo

    return demo()


def prepare() -> None:
    """Import the server."""
    import acp_server.serve  # noqa: F401


def serve(arguments: "argparse.Namespace", fd_in: int, fd_out: int) -> None:
    """Serve stdio on the guarded descriptors; never returns."""
    from acp_server.serve import serve_stdio

    serve_stdio(fd_in, fd_out, _settings(arguments), os.environ)


def refuse_platform() -> str | None:
    """Why this platform cannot run the server, in words; None when it can."""
    if sys.platform == "win32":
        return "acp-server runs on Linux and macOS; on Windows, use it inside WSL."
    return None


def _settings(arguments: "argparse.Namespace") -> "Loaded":
    from agent_loop import load_settings, state_dir

    home = state_dir(os.environ, arguments.state_dir)
    flags = {name: getattr(arguments, name) for name in FLAGS}
    return load_settings(flags=flags, environ=os.environ, state_dir=home)
