"""The keys a person has stored: where they are looked up, kept and forgotten.

Owns the order, the system's keyring before the private file, and how long anybody waits. What a key is kept
in belongs to `vaults`; whether one is asked for at all, to whoever resolves a model.
"""

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import field
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import TYPE_CHECKING, Final

import anyio
from anyio import to_thread

from agent_loop.config.resolve import KeyPlace
from agent_loop.record import record

if TYPE_CHECKING:
    from agent_loop.config.vaults import FileVault, StoredKey, Vault

    _Found = tuple[StoredKey, str]

KEYRING_S: Final = 3.0
"""Longest wait for a keyring. A locked one goes on asking its person, and the next look finds it open."""

log = logging.getLogger(__name__)


@record
class Kept:
    """A stored key, never shown, and what keeps it, for a person.

    Attributes:
        in_file: Whether that is only a file, for want of a keyring.
    """

    key: str = field(repr=False)
    where: str
    in_file: bool


class Credentials:
    """The stored keys of one person.

    Args:
        open_keyring: In place of looking for the system's keyring.
    """

    def __init__(
        self,
        state_dir: Path,
        *,
        open_keyring: "Callable[[], Vault | None] | None" = None,
        keyring_s: float = KEYRING_S,
    ) -> None:
        self._state_dir = state_dir
        self._open_keyring = open_keyring
        self._keyring_s = keyring_s
        # A keyring that hangs keeps one thread, not one more with every session.
        self._asking = Lock()

    async def find(self, place: KeyPlace) -> Kept | None:
        """The key stored for an endpoint; None also when what keeps it does not answer in time.

        What goes wrong is said in the log: a session then fails for want of a key, in words that help.
        """
        found = await self._in_keyring(place.provider)
        in_file = found is None
        found = found or await self._in_file(place.provider)
        if found is None:
            return None
        stored, where = found
        if stored.origin != place.origin:
            log.warning(
                "the key stored for %s is for %s and is not sent to %s",
                place.provider,
                stored.origin,
                place.origin,
            )
            return None
        return Kept(stored.key, where, in_file)

    def keep(self, place: KeyPlace, key: str) -> Kept:
        """Store a key where it is found first; blocks.

        Raises:
            VaultUnusable: It could not be stored.
        """
        from agent_loop.config.vaults import StoredKey

        keyring = self._keyring()
        vault = keyring or self._file()
        vault.write(place.provider, StoredKey(key, place.origin))
        if keyring is not None:
            # One from before there was a keyring would come back when it is gone.
            self._file().forget(place.provider)
        return Kept(key, vault.place, in_file=keyring is None)

    def forget(self, providers: Iterable[str]) -> list[tuple[str, str]]:
        """Store no key for these; blocks. Whose keys were taken from where, for a person.

        Raises:
            VaultUnusable: One could not be taken away; those before it are.
        """
        names = list(providers)
        return [(name, vault.place) for vault in self._vaults() for name in names if vault.forget(name)]

    async def _in_keyring(self, provider: str) -> "_Found | None":
        found = None
        with anyio.move_on_after(self._keyring_s) as scope:
            found = await to_thread.run_sync(self._ask_keyring, provider, abandon_on_cancel=True)
        if scope.cancelled_caught:
            log.warning("the keyring did not answer within %g s; no key was read from it", self._keyring_s)
        return found

    def _ask_keyring(self, provider: str) -> "_Found | None":
        if not self._asking.acquire(timeout=self._keyring_s):
            return None
        answer: SimpleQueue[_Found | None] = SimpleQueue()

        def ask() -> None:
            try:
                answer.put(_read(self._keyring, provider))
            finally:
                self._asking.release()

        # A process that is done does not wait for a daemon, as it would for a worker thread.
        Thread(target=ask, name="keyring", daemon=True).start()
        with suppress(Empty):
            return answer.get(timeout=self._keyring_s)
        return None

    async def _in_file(self, provider: str) -> "_Found | None":
        return await to_thread.run_sync(_read, self._file, provider)

    def _vaults(self) -> "Iterator[Vault]":
        # The file first: whatever becomes of the keyring, it is done with.
        yield self._file()
        keyring = self._keyring()
        if keyring is not None:
            yield keyring

    def _keyring(self) -> "Vault | None":
        if self._open_keyring is not None:
            return self._open_keyring()

        from agent_loop.config.vaults import open_keyring

        return open_keyring()

    def _file(self) -> "FileVault":
        from agent_loop.config.vaults import FileVault

        return FileVault(self._state_dir)


def _read(opened: "Callable[[], Vault | None]", provider: str) -> "_Found | None":
    from agent_loop.config.vaults import VaultUnusable

    try:
        vault = opened()
        stored = None if vault is None else vault.read(provider)
        return None if vault is None or stored is None else (stored, vault.place)
    except VaultUnusable as error:
        log.warning("no stored key for %s: %s", provider, error)
        return None
