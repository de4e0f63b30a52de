"""Commands in a sandbox on Linux, through bubblewrap: what they may write, and whom they may reach.

Owns what of the machine a command sees. When a sandbox is wanted belongs to the settings; that one which
cannot be had is an error, and never a command without it, to `Workspaces`.

Everything can be read but what is masked: the state directory, where people keep keys, and `/run`, whose
sockets would lead out again. `/tmp` is the command's own and gone with it.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, Literal

from agent_loop.record import record

SandboxMode = Literal["workspace-write", "read-only"]

PROBE_S: Final = 5.0
INSTALL: Final = "install bubblewrap (apt install bubblewrap, dnf install bubblewrap …)"
_HOME_SECRETS: Final = (
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker",
    ".config/gcloud",
    ".config/gh",
    ".netrc",
    ".git-credentials",
    ".pgpass",
)
# Made up anew: devices, processes, and places others put sockets in.
_FRESH: Final = ("--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp", "--tmpfs", "/run")
_APART: Final = ("--die-with-parent", "--unshare-pid", "--unshare-ipc")


@record
class Sandbox:
    """What commands of a session may do.

    Attributes:
        network: Whether they reach the network at all, this machine's included.
        masked: Real paths they do not see, whatever is in them.
        shown: A real path below a masked one that they may read all the same; None for none.
    """

    mode: SandboxMode
    network: bool = False
    masked: tuple[str, ...] = ()
    shown: str | None = None

    @property
    def words(self) -> str:
        """What holds, for whoever approves a command."""
        writes = "writes only in the project" if self.mode == "workspace-write" else "writes nothing"
        return f"In a sandbox: {writes}, {'with' if self.network else 'without'} network."

    def argv(self, roots: Sequence[str], cwd: str) -> tuple[str, ...]:
        """What to put in front of a command's own words.

        Args:
            roots: The session's directories.
            cwd: Absolute directory the command begins in.
        """
        real = [os.path.realpath(root) for root in roots]
        bind = "--bind" if self.mode == "workspace-write" else "--ro-bind"
        words = ["bwrap", "--ro-bind", "/", "/", *_FRESH]
        if self.network:
            # Where name servers are often noted.
            words += ["--ro-bind-try", "/run/systemd/resolve", "/run/systemd/resolve"]
        for root in real:
            words += [bind, root, root]
        words += self._masks(real)
        if self.shown is not None:
            words += ["--ro-bind-try", self.shown, self.shown]
        words += [*_APART, *(() if self.network else ("--unshare-net",))]
        return (*words, "--setenv", "TMPDIR", "/tmp", "--chdir", cwd, "--")

    def _masks(self, roots: Sequence[str]) -> Iterator[str]:
        for path in self.masked:
            if any(_is_below(root, path) for root in roots) or not os.path.exists(path):
                continue
            if os.path.isdir(path):
                yield from ("--tmpfs", path)
            else:
                yield from ("--ro-bind", "/dev/null", path)


def secrets_of(home: Path) -> tuple[str, ...]:
    """Where people keep keys below a home directory, by real path."""
    return tuple(os.path.realpath(home / name) for name in _HOME_SECRETS)


def trouble_with(sandbox: Sandbox) -> str | None:
    """Why commands cannot be confined here, and what to do; None when they can. Blocks, PROBE_S at most."""
    if shutil.which("bwrap") is None:
        return f"there is no bwrap on the PATH; {INSTALL}"
    try:
        done = subprocess.run(
            [*sandbox.argv((), "/"), "true"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PROBE_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bwrap cannot be run: {type(error).__name__}"
    if done.returncode == 0:
        return None
    said = done.stderr.decode(errors="replace").strip().splitlines()[-1:] or ["no words"]
    return f"bwrap fails here ({said[0][:200]}); it needs user namespaces, which this system may forbid"


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")
