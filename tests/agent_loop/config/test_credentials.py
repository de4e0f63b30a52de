"""The look-up of stored keys: its order, its bounds, and where a key may go."""

import logging
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from agent_loop.config.credentials import Credentials, Kept
from agent_loop.config.resolve import KeyPlace
from agent_loop.config.vaults import FILE_NAME, FileVault, KeyringVault, StoredKey, VaultUnusable
from tests.doubles.keyrings import MemoryKeyring, WaitingKeyring

ORIGIN = "https://api.openai.com"
PLACE = KeyPlace("openai", "OPENAI_API_KEY", ORIGIN, wanted=True, required=True)
WAIT_S = 5.0


def with_keyring(state: Path, backend: MemoryKeyring, keyring_s: float = WAIT_S) -> Credentials:
    return Credentials(state, open_keyring=lambda: KeyringVault(backend), keyring_s=keyring_s)


@pytest.fixture
def waiting() -> Iterator[WaitingKeyring]:
    """A keyring that waits for its person, who comes at the end of the test."""
    backend = WaitingKeyring()
    yield backend
    backend.unlocked.set()


async def test_the_keyring_comes_before_the_file(tmp_path: Path) -> None:
    """Issue, sign-in: keyring, then the file that stands in for one."""
    backend = MemoryKeyring()
    FileVault(tmp_path).write("openai", StoredKey("in-file", ORIGIN))
    keys = with_keyring(tmp_path, backend)
    in_file = await keys.find(PLACE)

    KeyringVault(backend).write("openai", StoredKey("in-keyring", ORIGIN))
    in_keyring = await keys.find(PLACE)

    assert in_file == Kept("in-file", str(tmp_path / FILE_NAME), in_file=True)
    assert in_keyring is not None
    assert (in_keyring.key, in_keyring.in_file) == ("in-keyring", False)


async def test_without_a_keyring_a_key_is_kept_in_the_file(tmp_path: Path) -> None:
    """Issue, sign-in: fallback, said plainly; it is found by whoever looks next, in any process."""
    keys = Credentials(tmp_path, open_keyring=lambda: None)

    kept = keys.keep(PLACE, "sk")

    assert kept == Kept("sk", str(tmp_path / FILE_NAME), in_file=True)
    assert await Credentials(tmp_path, open_keyring=lambda: None).find(PLACE) == kept


async def test_a_key_kept_in_the_keyring_leaves_none_in_the_file(tmp_path: Path) -> None:
    """Our promise: an old key must not come back when the keyring is gone."""
    FileVault(tmp_path).write("openai", StoredKey("old", ORIGIN))
    backend = MemoryKeyring()

    kept = with_keyring(tmp_path, backend).keep(PLACE, "new")

    assert (kept.key, kept.in_file) == ("new", False)
    assert FileVault(tmp_path).read("openai") is None
    assert await with_keyring(tmp_path, backend).find(PLACE) == kept


async def test_a_key_is_not_sent_to_another_origin(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Rule 1 of the vaults: a changed base URL must not carry a key away."""
    keys = Credentials(tmp_path, open_keyring=lambda: None)
    keys.keep(PLACE, "sk-secret")

    elsewhere = KeyPlace("openai", None, "https://evil.example", wanted=True, required=True)

    assert await keys.find(elsewhere) is None
    assert f"is for {ORIGIN} and is not sent to https://evil.example" in caplog.text
    assert "sk-secret" not in caplog.text


async def test_a_keyring_that_hangs_is_waited_for_a_moment_only(
    tmp_path: Path, waiting: WaitingKeyring, caplog: pytest.LogCaptureFixture
) -> None:
    """Contracts 5: a locked keyring never hangs session/new; what the file has is still found."""
    FileVault(tmp_path).write("openai", StoredKey("in-file", ORIGIN))
    keys = with_keyring(tmp_path, waiting, keyring_s=0.05)

    with anyio.fail_after(WAIT_S):
        found = [await keys.find(PLACE) for _ in range(3)]

    assert [kept.key for kept in found if kept] == ["in-file"] * 3
    assert waiting.waiting == 1
    assert "the keyring did not answer within 0.05 s" in caplog.text


async def test_a_vault_that_cannot_be_used_is_said_in_the_log_and_is_no_key(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Our promise: the session then fails in words that help."""
    caplog.set_level(logging.WARNING)
    (tmp_path / FILE_NAME).write_text("{")

    assert await with_keyring(tmp_path, MemoryKeyring(locked=True)).find(PLACE) is None

    assert "(KeyringLocked)" in caplog.text
    assert FILE_NAME in caplog.text


async def test_forgetting_takes_the_keys_from_both_places(tmp_path: Path) -> None:
    """ACP, logout: nothing is left; what fails in the keyring leaves no file behind."""
    backend = MemoryKeyring()
    keys = with_keyring(tmp_path, backend)
    for vault in (FileVault(tmp_path), KeyringVault(backend)):
        vault.write("openai", StoredKey("sk", ORIGIN))

    backend.locked = True
    with pytest.raises(VaultUnusable):
        keys.forget(["openai"])
    assert FileVault(tmp_path).read("openai") is None

    backend.locked = False
    assert [name for name, _ in keys.forget(["openai", "mine"])] == ["openai"]
    assert keys.forget(["openai"]) == []
    assert Credentials(tmp_path, open_keyring=lambda: None).forget(["openai"]) == []


async def test_the_systems_own_keyring_is_looked_for_when_none_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the product does; here a system without one."""
    monkeypatch.setattr("agent_loop.config.vaults.open_keyring", lambda: None)

    assert await Credentials(tmp_path).find(PLACE) is None
