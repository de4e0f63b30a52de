"""`acp-server permissions`: which answers are remembered for which project, and how to take them back.

Exit statuses: 0 done, 1 could not be done. Running servers know of a change at their next call.
"""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from typing import Any

from acp_server.demo_screen import BOLD, wants_colour
from acp_server.export_times import iso, local_in_words
from acp_server.inert import one_line
from agent_loop import HarnessError, Loaded, NotFound, open_grants


def permissions(arguments: argparse.Namespace, loaded: Loaded) -> int:
    """Run one of the commands; the exit status."""
    try:
        if arguments.permissions_command == "list":
            return _list(arguments, loaded)
        return _revoke(arguments.ids, loaded)
    except HarnessError as error:
        sys.stderr.write(f"{one_line(str(error))}\n")
        return 1


def _list(arguments: argparse.Namespace, loaded: Loaded) -> int:
    # By real path, as they are kept.
    only = None if arguments.cwd is None else os.path.realpath(arguments.cwd)
    found = [
        (project, grant)
        for project, grants in sorted(open_grants(loaded).all().items())
        for grant in grants
        if only in (None, project)
    ]
    if arguments.json:
        print(json.dumps([_to_json(project, grant) for project, grant in found], indent=2))
        return 0
    if not found:
        sys.stderr.write(
            "No answers are remembered.\n" if only is None else "No answers are remembered there.\n"
        )
        return 0

    rows = [
        (grant.id, local_in_words(grant.created_at), one_line(grant.text), one_line(project))
        for project, grant in found
    ]
    longest = max(len(row[2]) for row in rows)
    heading = f"{'ID':8}  {'SINCE':16}  {'ANSWER':{longest}}  PROJECT"
    print(f"\x1b[{BOLD}m{heading}\x1b[0m" if wants_colour(sys.stdout, os.environ) else heading)
    for grant_id, since, answer, project in rows:
        print(f"{grant_id:8}  {since}  {answer:{longest}}  {project}")
    return 0


def _revoke(ids: Sequence[str], loaded: Loaded) -> int:
    book = open_grants(loaded)
    known = {grant.id: grant for grants in book.all().values() for grant in grants}
    for grant_id in ids:
        if grant_id not in known:
            raise NotFound(f"There is no remembered answer {grant_id}; nothing was revoked.")
    book.remove(ids)
    for grant_id in dict.fromkeys(ids):
        print(f"revoked {grant_id}: {one_line(known[grant_id].text)}")
    return 0


def _to_json(project: str, grant: Any) -> dict[str, Any]:
    covered = grant.covered
    return {
        "id": grant.id,
        "effect": "allow" if grant.allows else "deny",
        "project": project,
        "createdAt": iso(grant.created_at),
        "kind": covered.kind,
        "tool": covered.tool,
        "paths": list(covered.paths),
        "command": covered.shell,
        "domain": covered.domain,
    }
