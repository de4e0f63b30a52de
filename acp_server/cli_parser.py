"""The command line's grammar, for whoever asks for more than to be served: help, a command, or by mistake."""

import argparse
import os
from collections.abc import Sequence
from functools import partial
from typing import Final

AN_ID: Final = "a session's id, or enough of its beginning"


def parse_all(argv: Sequence[str]) -> argparse.Namespace:
    """The arguments; exits with usage on stderr when they make no sense."""
    parser = argparse.ArgumentParser(
        prog="acp-server",
        description="A coding agent that editors drive over the Agent Client Protocol on stdin and stdout.",
        # A flag added later must not change what an abbreviation in somebody's settings means.
        allow_abbrev=False,
    )
    parser.add_argument("--model", metavar="PROVIDER/NAME", help="the model to use, e.g. openai/gpt-5")
    parser.add_argument(
        "--state-dir", metavar="DIR", help="sessions, settings and logs (env ACP_SERVER_HOME)"
    )
    parser.add_argument(
        "--config", metavar="FILE", help="settings file, instead of config.toml in the state dir"
    )
    parser.add_argument(
        "--sandbox",
        metavar="MODE",
        help="of commands, on Linux: off (default), workspace-write or read-only",
    )
    parser.add_argument(
        "--permission-mode", metavar="MODE", help="ask (default), accept-edits, plan or full-auto"
    )
    parser.add_argument(
        "--store", metavar="URL", help="a PostgreSQL database for sessions, instead of files in the state dir"
    )
    parser.add_argument("--log-level", metavar="LEVEL", help="debug, info, warning (default) or error")
    parser.add_argument("--trace", metavar="FILE", help="record both directions and the model's chunks")
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    commands.add_parser("demo", help="run one prompt with the offline demo model in a temporary workspace")
    to_golden = commands.add_parser("trace-to-golden", help="make a golden folder of a recorded trace")
    to_golden.add_argument("file", metavar="FILE")
    to_golden.add_argument("folder", metavar="DIR")
    _add_sessions(commands.add_parser("sessions", help="list, show, check, export or delete stored sessions"))
    _add_permissions(commands.add_parser("permissions", help="list or revoke remembered answers"))
    why = commands.add_parser("why", help="say who allowed a call, by which rule, and what ran")
    why.add_argument("session", metavar="SESSION", help=AN_ID)
    why.add_argument("call", metavar="CALL", help="the id of one of its tool calls")
    why.add_argument("--json", action="store_true", help="for programs")
    _add_signing_in(commands)
    return parser.parse_args(argv)


def _add_sessions(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(dest="sessions_command", metavar="COMMAND", required=True)
    add = partial(commands.add_parser, allow_abbrev=False)

    listed = add("list", help="a table of all sessions, newest first")
    # Made absolute here: a relative directory is the person's, not the store's.
    listed.add_argument("--cwd", metavar="DIR", type=os.path.abspath, help="only those that work in DIR")
    shown = add("show", help="print a conversation")
    shown.add_argument("id", metavar="ID", help=AN_ID)
    checked = add("check", help="say of one session, or of all, whether its log is sound")
    checked.add_argument("id", metavar="ID", nargs="?", help=AN_ID)
    for command in (listed, shown, checked):
        command.add_argument("--json", action="store_true", help="for programs")

    exported = add("export", help="write a conversation as a document")
    exported.add_argument("id", metavar="ID", help=AN_ID)
    exported.add_argument(
        "--format", choices=("markdown", "html"), help="markdown, unless FILE ends in .html"
    )
    exported.add_argument("--output", metavar="FILE", help="instead of stdout")
    deleted = add("delete", help="forget sessions for good")
    deleted.add_argument("ids", metavar="ID", nargs="+", help=AN_ID)
    deleted.add_argument("--yes", action="store_true", help="do not ask")


def _add_permissions(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(dest="permissions_command", metavar="COMMAND", required=True)
    listed = commands.add_parser("list", allow_abbrev=False, help="a table of all remembered answers")
    listed.add_argument("--cwd", metavar="DIR", help="only those for the project in DIR")
    listed.add_argument("--json", action="store_true", help="for programs")
    revoked = commands.add_parser("revoke", allow_abbrev=False, help="forget answers; they are asked again")
    revoked.add_argument("ids", metavar="ID", nargs="+", help="as `list` shows it")


def _add_signing_in(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    add = partial(commands.add_parser, allow_abbrev=False)
    login = add("login", help="store a key for a provider, in the system's keyring where there is one")
    login.add_argument("provider", metavar="PROVIDER", nargs="?", help="e.g. openai; asked for without one")
    login.add_argument(
        "--with-key-from-stdin", action="store_true", help="read the key from stdin, for scripts"
    )
    login.add_argument("--no-check", action="store_true", help="store it without asking the provider")
    logout = add("logout", help="forget stored keys")
    logout.add_argument("provider", metavar="PROVIDER", nargs="?", help="only this provider's")
    doctor = add("doctor", help="check all that has to be right, and say what to do")
    doctor.add_argument("--offline", action="store_true", help="ask nobody on the network")
    doctor.add_argument("--json", action="store_true", help="for programs")
