"""The command line: no subcommand serves stdio; the others are for people at a terminal."""

import argparse
import os
import sys
from collections.abc import Sequence

FLAGS = ("model", "config", "permission_mode", "log_level", "trace")


def parse(argv: Sequence[str]) -> argparse.Namespace:
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
    parser.add_argument("--permission-mode", metavar="MODE", help="ask (default) or full-auto")
    parser.add_argument("--log-level", metavar="LEVEL", help="debug, info, warning (default) or error")
    parser.add_argument("--trace", metavar="FILE", help="record both directions and the model's chunks")
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    commands.add_parser("demo", help="run one prompt with the offline demo model in a temporary workspace")
    to_golden = commands.add_parser("trace-to-golden", help="make a golden folder of a recorded trace")
    to_golden.add_argument("file", metavar="FILE")
    to_golden.add_argument("folder", metavar="DIR")
    return parser.parse_args(argv)


def run(arguments: argparse.Namespace) -> int:
    """Run a subcommand, or print the version; the exit status."""
    if arguments.version:
        from acp_server.methods.initialize import own_version

        print(f"acp-server {own_version()}")
        return 0
    if arguments.command == "trace-to-golden":
        from acp_server.trace_to_golden import trace_to_golden

        return trace_to_golden(arguments.file, arguments.folder)
    from acp_server.demo import demo

    return demo()


def prepare() -> None:
    """Import the server."""
    import acp_server.serve  # noqa: F401


def serve(arguments: argparse.Namespace, fd_in: int, fd_out: int) -> None:
    """Serve stdio on the guarded descriptors; never returns."""
    from acp_server.serve import serve_stdio
    from agent_loop import load_settings, state_dir

    home = state_dir(os.environ, arguments.state_dir)
    flags = {name: getattr(arguments, name) for name in FLAGS}
    serve_stdio(fd_in, fd_out, load_settings(flags=flags, environ=os.environ, state_dir=home), os.environ)


def refuse_platform() -> str | None:
    """Why this platform cannot run the server, in words; None when it can."""
    if sys.platform == "win32":
        return "acp-server runs on Linux and macOS; on Windows, use it inside WSL."
    return None
