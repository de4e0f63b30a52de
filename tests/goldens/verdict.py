"""Says what is wrong with an outcome, and what of it is recorded.

Owns which checks every golden passes: the run's own faults, the standing checks, the schema, stderr, error
codes nobody announced, live = replay, and a history that every provider takes.
"""

from __future__ import annotations

from tests.doubles.transcript import Line
from tests.goldens.faults import fact_faults, transcript_faults
from tests.goldens.golden import Golden
from tests.goldens.history import history_faults
from tests.goldens.normalise import Normaliser, as_rows
from tests.goldens.places import files_below
from tests.goldens.replay import live_updates, replay_faults
from tests.goldens.runner import Outcome
from tests.goldens.schema import schema_faults

__all__ = ["faults_of", "then_files"]


def faults_of(golden: Golden, outcome: Outcome) -> list[str]:
    """Everything that fails this golden whatever is recorded; empty when nothing does."""
    faults = list(outcome.faults)
    faults += transcript_faults(outcome.transcript)
    faults += schema_faults(outcome.transcript)
    if outcome.stderr and "stderr" not in golden.allows:
        faults.append(f"the server wrote to stderr: {outcome.stderr}")
    if "internal-error" not in golden.allows:
        faults += [
            f"an internal error was answered: {line.frame}"
            for line in outcome.transcript
            if _is_internal(line)
        ]
    for facts in outcome.facts.values():
        faults += fact_faults(facts, golden.allows)
        faults += history_faults(facts)
    for session, replayed in outcome.replays.items():
        if isinstance(replayed, str):
            faults.append(f"a second process cannot load session {session}: {replayed}")
        else:
            faults += replay_faults(live_updates(outcome.transcript, session), replayed)
    return faults


def then_files(golden: Golden, outcome: Outcome) -> dict[str, str]:
    """What is recorded of an outcome: path below `then/` → text."""
    normal = Normaliser(outcome.sessions, outcome.places.cwd, outcome.places.state)
    files = {"transcript.jsonl": as_rows(normal.transcript(outcome.transcript[: outcome.shown]))}
    for number, session in enumerate(outcome.sessions, 1):
        name = "session.jsonl" if len(outcome.sessions) == 1 else f"session-{number}.jsonl"
        if outcome.facts.get(session):
            files[name] = as_rows(normal.facts(outcome.facts[session]))
    given = files_below(golden.workspace) if golden.workspace.is_dir() else {}
    if outcome.workspace != given:
        files |= {f"workspace/{name}": normal.text(text) for name, text in outcome.workspace.items()}
    return files


def _is_internal(line: Line) -> bool:
    error = (line.frame or {}).get("error")
    if line.sender != "agent" or not isinstance(error, dict) or error.get("code") != -32603:
        return False
    data = error.get("data")
    return not isinstance(data, dict) or data.get("kind") in (None, "internal")
