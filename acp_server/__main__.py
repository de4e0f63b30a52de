"""The entry point: guards stdio before anything that could print is imported. Stdlib only until then."""

import gc
import sys

from acp_server import cli


def main() -> int:
    """Run `acp-server`; the exit status of a subcommand. Serving never returns."""
    arguments = cli.parse(sys.argv[1:])
    refused = cli.refuse_platform()
    if refused is not None:
        sys.stderr.write(f"{refused}\n")
        return 1
    if arguments.version or arguments.command:
        return cli.run(arguments)

    from acp_server.transport.guard import take_stdio

    fd_in, fd_out = take_stdio()
    # Imports make no garbage worth collecting; what they made is then never looked at again.
    gc.disable()
    cli.prepare()
    gc.freeze()
    gc.enable()
    cli.serve(arguments, fd_in, fd_out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
