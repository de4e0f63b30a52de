"""Recording is safe: `--snapshot-update` on some goldens writes these and touches nothing else.

Each test runs pytest in a directory of its own, on a tiny test that stands for `test_goldens`.
"""

import os
import subprocess
import sys
from pathlib import Path

TINY = """
from pathlib import Path
import pytest
from tests.goldens.snapshot import check_then

FOLDERS = sorted(Path(__file__).parent.glob("goldens/*"))

@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_tiny(folder, snapshot):
    said = (folder / "says.txt").read_text()
    files = {"transcript.jsonl": said, "workspace/deep/a.txt": said + "?"}
    check_then(snapshot, folder, files)
"""
ROOT = Path(__file__).parents[2]


def make(root: Path, *names: str) -> None:
    (root / "test_tiny.py").write_text(TINY)
    for name in names:
        (root / "goldens" / name).mkdir(parents=True)
        (root / "goldens" / name / "says.txt").write_text(f"{name} speaks\n")


def run_pytest(root: Path, *arguments: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider", *arguments],
        cwd=root,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def then_of(root: Path) -> dict[str, str]:
    return {
        str(path.relative_to(root)): path.read_text() for path in root.rglob("then/**/*") if path.is_file()
    }


def test_recording_a_subset_leaves_the_other_goldens_as_they_are(tmp_path: Path) -> None:
    """Our promise: re-recording is one command; it must never delete what it did not run."""
    make(tmp_path, "one", "two")
    assert run_pytest(tmp_path, "--snapshot-update")[0] == 0
    recorded = then_of(tmp_path)
    (tmp_path / "goldens/one/says.txt").write_text("one speaks anew\n")

    code, said = run_pytest(tmp_path, "--snapshot-update", "-k", "one")

    assert code == 0, said
    changed = {"goldens/one/then/transcript.jsonl": "one speaks anew\n"}
    changed["goldens/one/then/workspace/deep/a.txt"] = "one speaks anew\n?"
    assert then_of(tmp_path) == recorded | changed
    assert run_pytest(tmp_path)[0] == 0


def test_a_golden_without_a_record_fails_and_writes_nothing(tmp_path: Path) -> None:
    """Our promise: what is not recorded is not right by itself."""
    make(tmp_path, "one")

    code, said = run_pytest(tmp_path)

    assert code == 1
    assert "transcript.jsonl, workspace/deep/a.txt differ from the record" in said
    assert then_of(tmp_path) == {}


def test_a_difference_fails_and_is_shown(tmp_path: Path) -> None:
    """Our promise: the diff is read like code."""
    make(tmp_path, "one")
    run_pytest(tmp_path, "--snapshot-update")
    (tmp_path / "goldens/one/says.txt").write_text("one sings\n")

    code, said = run_pytest(tmp_path)

    assert code == 1
    assert "one speaks" in said
    assert "one sings" in said


def test_a_file_no_run_makes_any_more_fails_and_goes_when_recording(tmp_path: Path) -> None:
    """Our promise: no orphan files."""
    make(tmp_path, "one")
    run_pytest(tmp_path, "--snapshot-update")
    (tmp_path / "goldens/one/then/session-9.jsonl").write_text("old\n")

    code, said = run_pytest(tmp_path)

    assert code == 1
    assert "holds files this run did not make: ['session-9.jsonl']" in said
    assert run_pytest(tmp_path, "--snapshot-update")[0] == 0
    assert run_pytest(tmp_path)[0] == 0
