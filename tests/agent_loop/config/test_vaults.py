"""What keeps a person's keys: the keyring, and the private file in its place."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

import keyring
import pytest
from keyring.backends.fail import Keyring as NoKeyring

from agent_loop.config.vaults import (
    FILE_NAME,
    SERVICE,
    FileVault,
    KeyringVault,
    StoredKey,
    Vault,
    VaultUnusable,
    open_keyring,
)
from agent_loop.private_file import readable_by_others
from tests.doubles.keyrings import MemoryKeyring

KEY = StoredKey("sk-secret", "https://api.openai.com")
OTHER = StoredKey("sk-other", "https://api.anthropic.com")

Make = Callable[[Path], Vault]


@pytest.mark.parametrize("make", [FileVault, lambda _: KeyringVault(MemoryKeyring())])
def test_a_vault_keeps_one_key_for_each_provider(make: Make, tmp_path: Path) -> None:
    """Issue, sign-in: kept, replaced, forgotten; one provider's key is no business of another's."""
    vault = make(tmp_path / "state")
    assert vault.read("openai") is None
    assert vault.forget("openai") is False

    vault.write("openai", OTHER)
    vault.write("anthropic", OTHER)
    vault.write("openai", KEY)

    assert (vault.read("openai"), vault.read("anthropic")) == (KEY, OTHER)
    assert (vault.forget("openai"), vault.forget("openai")) == (True, False)
    assert (vault.read("openai"), vault.read("anthropic")) == (None, OTHER)
    assert "sk-" not in repr(KEY)


def test_the_file_and_its_folder_are_their_owners_alone(tmp_path: Path) -> None:
    """Issue, sign-in: a 0600 file, whatever the umask says."""
    before = os.umask(0)
    try:
        FileVault(tmp_path / "state").write("openai", KEY)
    finally:
        os.umask(before)

    path = tmp_path / "state" / FILE_NAME
    modes = [stat.S_IMODE(place.stat().st_mode) for place in (path, path.parent)]
    assert modes == [0o600, 0o700]
    assert sorted(os.listdir(path.parent)) == ["credentials.json", "credentials.lock"]
    assert not readable_by_others(path)
    path.chmod(0o640)
    assert readable_by_others(path)
    assert not readable_by_others(tmp_path / "missing")


@pytest.mark.parametrize("text", ["{", "[]", '{"format": 2, "keys": {}}'])
def test_a_file_of_another_kind_is_named_and_left_alone(text: str, tmp_path: Path) -> None:
    """Our promise: a file we cannot read is never written over."""
    path = tmp_path / FILE_NAME
    path.write_text(text)
    vault = FileVault(tmp_path)

    with pytest.raises(VaultUnusable, match=str(path)):
        vault.read("openai")
    with pytest.raises(VaultUnusable, match=str(path)):
        vault.write("openai", KEY)

    assert path.read_text() == text


def test_a_file_that_cannot_be_read_or_written_says_so_without_the_key(tmp_path: Path) -> None:
    """Rule 2 of the vaults."""
    (tmp_path / FILE_NAME).mkdir()
    (tmp_path / "file").touch()

    with pytest.raises(VaultUnusable, match="cannot be read"):
        FileVault(tmp_path).read("openai")
    with pytest.raises(VaultUnusable, match="cannot be written") as caught:
        FileVault(tmp_path / "file").write("openai", KEY)

    assert "sk-" not in str(caught.value)


def test_a_locked_keyring_is_said_without_what_it_was_given() -> None:
    """Rule 2 of the vaults: a library's words never pass."""
    vault = KeyringVault(MemoryKeyring(locked=True))

    for use in (
        lambda: vault.read("openai"),
        lambda: vault.write("openai", KEY),
        lambda: vault.forget("openai"),
    ):
        with pytest.raises(VaultUnusable) as caught:
            use()
        assert str(caught.value) == "The system's keyring cannot be used (KeyringLocked)."


@pytest.mark.parametrize("text", ["no json", "[]", '{"key": 1, "origin": "o"}'])
def test_what_others_put_under_our_name_is_no_key(text: str) -> None:
    """Our promise: nothing that has no origin is sent anywhere."""
    backend = MemoryKeyring()
    backend.kept[SERVICE, "openai"] = text

    assert KeyringVault(backend).read("openai") is None


def test_the_systems_keyring_is_used_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue, sign-in: the keyring through the `keyring` package, else the file."""
    backend = MemoryKeyring()
    monkeypatch.setattr(keyring, "get_keyring", NoKeyring)
    assert open_keyring() is None

    monkeypatch.setattr(backend, "priority", 5.0)
    monkeypatch.setattr(keyring, "get_keyring", lambda: backend)
    found = open_keyring()
    assert found is not None
    assert "MemoryKeyring" in found.place

    def broken() -> None:
        raise RuntimeError("sk-secret")

    monkeypatch.setattr(keyring, "get_keyring", broken)
    with pytest.raises(VaultUnusable) as caught:
        open_keyring()
    assert str(caught.value) == "The system's keyring cannot be used (RuntimeError)."
