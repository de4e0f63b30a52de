"""One test per golden folder: play it against the real server, then compare with what is recorded.

`pytest tests/goldens/test_goldens.py -k NAME --snapshot-update` records; read the diff like code.
"""

from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from tests.goldens.golden import all_goldens, read_golden
from tests.goldens.runner import run_golden
from tests.goldens.snapshot import check_then
from tests.goldens.verdict import faults_of, then_files


@pytest.mark.parametrize("folder", all_goldens(), ids=lambda folder: folder.name)
def test_golden(folder: Path, tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    """Our promise: goldens drive the real subprocess over real stdio."""
    golden = read_golden(folder)

    outcome = run_golden(golden, tmp_path / "run")

    faults = faults_of(golden, outcome)
    assert not faults, f"{golden.about[0]}\n- " + "\n- ".join(faults)
    check_then(snapshot, folder, then_files(golden, outcome))
