"""Where a person's keys are kept: the system's keyring, or a private file where there is none.

1. A key is kept with the origin it was stored for, and is sent nowhere else.
2. A library's words never pass: they may hold what was to be kept.
3. Every method blocks, the keyring's perhaps until a person has unlocked it: call them in a worker thread.
"""

from dataclasses import field
from pathlib import Path
from typing import Any, Final, Protocol

import orjson

from agent_loop.errors import HarnessError
from agent_loop.private_file import claimed, replace_whole
from agent_loop.record import record

FORMAT: Final = 1
FILE_NAME: Final = "credentials.json"
SERVICE: Final = "acp-agent-server"


@record
class StoredKey:
    """A key, never shown, and the scheme, host and port it is for."""

    key: str = field(repr=False)
    origin: str


class VaultUnusable(HarnessError):
    """What keeps keys cannot be read or written; the message says why, and holds no key."""

    code = "VAULT"


class Vault(Protocol):
    """Keeps one key for each provider. Its methods block, and raise `VaultUnusable`."""

    @property
    def place(self) -> str:
        """Where that is, for a person."""

    def read(self, provider: str) -> StoredKey | None:
        """The key that is kept for a provider."""

    def write(self, provider: str, key: StoredKey) -> None:
        """Keep it, in place of an earlier one."""

    def forget(self, provider: str) -> bool:
        """Keep none for it; whether there was one."""


class KeyringVault:
    """The keyring of the system, through whichever backend the `keyring` package found."""

    def __init__(self, backend: Any) -> None:
        self._backend = backend
        self.place = f"the system's keyring ({backend.name})"

    def read(self, provider: str) -> StoredKey | None:
        """See `Vault`; what others put under our name there is no key of ours."""
        try:
            kept = self._backend.get_password(SERVICE, provider)
        except Exception as error:
            raise _unusable(error) from error
        return None if kept is None else _key_of(_parsed(kept))

    def write(self, provider: str, key: StoredKey) -> None:
        """See `Vault`."""
        try:
            self._backend.set_password(SERVICE, provider, orjson.dumps(_json_of(key)).decode())
        except Exception as error:
            raise _unusable(error) from error

    def forget(self, provider: str) -> bool:
        """See `Vault`."""
        try:
            if self._backend.get_password(SERVICE, provider) is None:
                return False
            self._backend.delete_password(SERVICE, provider)
        except Exception as error:
            raise _unusable(error) from error
        return True


class FileVault:
    """A file below the state directory that only its owner can read."""

    def __init__(self, state_dir: Path) -> None:
        self.path = state_dir / FILE_NAME
        self.place = str(self.path)

    def read(self, provider: str) -> StoredKey | None:
        """See `Vault`."""
        return _key_of(self._kept().get(provider))

    def write(self, provider: str, key: StoredKey) -> None:
        """See `Vault`."""
        self._change(provider, _json_of(key))

    def forget(self, provider: str) -> bool:
        """See `Vault`."""
        if provider not in self._kept():
            return False
        self._change(provider, None)
        return True

    def _kept(self) -> dict[str, Any]:
        try:
            value = orjson.loads(self.path.read_bytes())
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise self._trouble(f"cannot be read: {error.strerror}.") from error
        except ValueError:
            value = None

        match value:
            case {"format": 1, "keys": dict(kept)}:
                return kept
            case _:
                raise self._trouble("holds no keys this version can read; mend it or take it away.")

    def _change(self, provider: str, value: dict[str, str] | None) -> None:
        try:
            with claimed(self.path):
                kept = {name: key for name, key in self._kept().items() if name != provider}
                if value is not None:
                    kept[provider] = value
                option = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
                replace_whole(self.path, orjson.dumps({"format": FORMAT, "keys": kept}, option=option))
        except OSError as error:
            raise self._trouble(f"cannot be written: {error.strerror}.") from error

    def _trouble(self, what: str) -> VaultUnusable:
        return VaultUnusable(f"{self.path} {what}")


def open_keyring() -> KeyringVault | None:
    """The system's keyring; None where there is none, or only a stand-in that keeps nothing.

    Raises:
        VaultUnusable: There is one, and it cannot even be looked for.
    """
    try:
        # A tenth of a second, and sixty modules, for those who have no key elsewhere.
        import keyring

        backend = keyring.get_keyring()
        return KeyringVault(backend) if backend.priority > 0 else None
    except Exception as error:
        raise _unusable(error) from error


def _unusable(error: Exception) -> VaultUnusable:
    return VaultUnusable(f"The system's keyring cannot be used ({type(error).__name__}).")


def _parsed(text: str) -> Any:
    try:
        return orjson.loads(text)
    except ValueError:
        return None


def _json_of(key: StoredKey) -> dict[str, str]:
    return {"key": key.key, "origin": key.origin}


def _key_of(value: Any) -> StoredKey | None:
    match value:
        case {"key": str(key), "origin": str(origin)}:
            return StoredKey(key, origin)
        case _:
            return None
