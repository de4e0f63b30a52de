"""Keyrings of the system that keep their keys in memory, refuse, or wait for a person."""

import threading

from keyring.backend import KeyringBackend
from keyring.errors import KeyringLocked


class MemoryKeyring(KeyringBackend):
    """Keeps everything for as long as it lives; locked, it refuses, and quotes what it was given."""

    # Never found by itself, only by those who are handed it.
    priority = -1.0

    def __init__(self, *, locked: bool = False) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.kept: dict[tuple[str, str], str] = {}
        self.locked = locked

    def get_password(self, service: str, username: str) -> str | None:
        self._require_open(username)
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self._require_open(password)
        self.kept[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        self._require_open(username)
        del self.kept[service, username]

    def _require_open(self, given: str) -> None:
        if self.locked:
            raise KeyringLocked(f"locked: {given}")


class WaitingKeyring(MemoryKeyring):
    """Answers once `unlocked` is set; `waiting` counts those who asked."""

    def __init__(self) -> None:
        super().__init__()
        self.unlocked = threading.Event()
        self.waiting = 0

    def get_password(self, service: str, username: str) -> str | None:
        self.waiting += 1
        self.unlocked.wait()
        return super().get_password(service, username)


class LockedKeyring(WaitingKeyring):
    """One that a server in another process uses, by its name; nobody comes to unlock it."""

    priority = 1.0
