"""The syrupy extension that keeps a golden's `then/` in the golden's own folder.

Owns where a recorded file lies. syrupy compares, shows the diff and writes on `--snapshot-update`; it is told
of no files but the ones a test asks about, so recording some goldens never deletes anything of the others.
Files in `then/` that a run no longer makes are `check_then`'s business: a fault, or removed when recording.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from syrupy.assertion import SnapshotAssertion
from syrupy.data import SnapshotCollection, SnapshotCollections
from syrupy.extensions.base import AbstractSyrupyExtension
from syrupy.location import PyTestLocation

__all__ = ["ThenFiles", "check_then"]

_CODEC = {"encoding": "utf-8", "errors": "surrogateescape"}


class ThenFiles(AbstractSyrupyExtension):
    """One file of `then/` per named assertion; the test's parameter `folder` is the golden's path."""

    write_immediately = True

    def serialize(self, data: Any, **_: Any) -> str:
        return str(data)

    @classmethod
    def get_location(cls, *, test_location: PyTestLocation, index: Any) -> str:
        folder: Path = test_location.item.callspec.params["folder"]  # type: ignore[attr-defined]
        return str(folder / "then" / str(index))

    @classmethod
    def matches_test_location(cls, *, test_location: PyTestLocation, snapshot_location: str) -> bool:
        return True

    def discover_snapshots(self, **_: Any) -> SnapshotCollections:
        """Nothing: what is never discovered is never found unused, and never deleted."""
        return SnapshotCollections()

    def read_snapshot_collection(self, *, snapshot_location: str) -> SnapshotCollection:
        return SnapshotCollection(location=snapshot_location)

    def read_snapshot_data_from_location(
        self, *, snapshot_location: str, snapshot_name: str, session_id: str
    ) -> str | None:
        path = Path(snapshot_location)
        return path.read_bytes().decode(**_CODEC) if path.is_file() else None

    @classmethod
    def write_snapshot_collection(
        cls, *, snapshot_collection: SnapshotCollection, name_order: dict[str, int] | None = None
    ) -> None:
        for snapshot in snapshot_collection:
            Path(snapshot_collection.location).write_bytes(str(snapshot.data).encode(**_CODEC))

    def delete_snapshots(self, *, snapshot_location: str, snapshot_names: set[str]) -> None:
        raise AssertionError("syrupy was told of no snapshot it could delete")


def check_then(snapshot: SnapshotAssertion, folder: Path, files: dict[str, str]) -> None:
    """Compare every file a run made with the one recorded, and leave no other file in `then/`.

    Args:
        files: Path below `then/` → its text.
    """
    then = folder / "then"
    stale = {str(path.relative_to(then)) for path in then.rglob("*") if not path.is_dir()} - files.keys()
    if snapshot.update_snapshots:
        for name in stale:
            (then / name).unlink()
    elif stale:
        raise AssertionError(f"{then} holds files this run did not make: {sorted(stale)}")

    recorded = snapshot.use_extension(ThenFiles)
    different = [name for name, text in files.items() if recorded(name=name) != text]
    head = f"{folder.name}: {', '.join(different)} differ from the record (--snapshot-update writes it)"
    assert not different, "\n".join([head, *_differences(recorded)])


def _differences(recorded: SnapshotAssertion) -> list[str]:
    lines: list[str] = []
    for result in recorded.executions.values():
        if not result.success:
            lines.append(f"--- {result.snapshot_location}")
            was, now = result.recalled_data or "", result.asserted_data or ""
            lines.append(str(recorded.extension.diff_snapshots(serialized_data=now, snapshot_data=was)))
    return lines
