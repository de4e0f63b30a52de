"""Guards on the folder of goldens: nothing missing, nothing left lying about, no method without a golden."""

import json
import re
from pathlib import Path

import pytest

from tests.goldens.golden import ALLOWANCES, Golden, Json, all_goldens, read_golden

FOLDERS = all_goldens()
GIVEN = re.compile(r"about\.md|when\.jsonl|given/(model\.jsonl|settings\.toml|workspace/.+)")
THEN = re.compile(r"then/(transcript\.jsonl|session(-\d+)?\.jsonl|workspace/.+)")

# An advertised method that no golden sends, and why.
WITHOUT_A_GOLDEN: dict[str, str] = {}

ALWAYS = {"initialize", "session/new", "session/prompt", "session/cancel"}
BY_SESSION_CAPABILITY = ("list", "resume", "close", "delete", "fork")


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_golden_has_its_files_and_no_others(folder: Path) -> None:
    """Our promise: the layout of a golden."""
    golden = read_golden(folder)

    assert len(golden.about) == 3, "about.md: what must hold, who demands it, note"
    assert all(line.strip() for line in golden.about)
    assert golden.allows <= ALLOWANCES.keys()
    names = [str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir()]
    assert [name for name in names if not GIVEN.fullmatch(name) and not THEN.fullmatch(name)] == []
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", folder.name), "a golden's name is a sentence-with-dashes"


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_golden_is_recorded(folder: Path) -> None:
    """Our promise: a golden without a record promises nothing."""
    assert (folder / "then" / "transcript.jsonl").is_file()


def test_every_advertised_method_has_a_golden_or_a_reason() -> None:
    """Our promise: every ACP method has a golden or a written reason."""
    goldens = [read_golden(folder) for folder in FOLDERS]
    sent = {method for golden in goldens for step in golden.steps for method in methods_of(step)}
    advertised = {method for golden in goldens for method in advertised_in(golden)}

    assert advertised - sent - WITHOUT_A_GOLDEN.keys() == set()
    assert WITHOUT_A_GOLDEN.keys() & sent == set(), "these have a golden now: take the reason away"


def methods_of(step: Json) -> set[str]:
    below = [method for item in step.get("together", []) for method in methods_of(item)]
    return {step[key] for key in ("send", "notify") if key in step} | set(below)


def advertised_in(golden: Golden) -> set[str]:
    path = golden.then / "transcript.jsonl"
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.is_file() else []
    results = [row.get("frame", {}).get("result") for row in rows if row["from"] == "agent"]
    methods = set(ALWAYS)
    for result in results:
        if isinstance(result, dict):
            methods |= advertised_by(result)
    return methods


def advertised_by(result: Json) -> set[str]:
    """Methods one result promises: initialize's capabilities, or a session's modes and options."""
    able = result.get("agentCapabilities") or {}
    ours = (able.get("_meta") or {}).get("agent_loop") or {}
    in_session = able.get("sessionCapabilities") or {}
    promised = {
        "session/load": able.get("loadSession"),
        "_agent_loop/steer": ours.get("steer"),
        "authenticate": result.get("authMethods"),
        "logout": "logout" in (able.get("auth") or {}),
        "session/set_mode": result.get("modes"),
        "session/set_config_option": result.get("configOptions"),
    }
    promised |= {f"session/{name}": in_session.get(name) is not None for name in BY_SESSION_CAPABILITY}
    return {method for method, is_promised in promised.items() if is_promised}
