"""What a person said beforehand: rules in their settings, and answers they wanted remembered.

Rules that deny come first, then answers that reject, then other rules, then answers that allow.
"""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from agent_loop.clock import wall_clock
from agent_loop.config.settings import RuleSettings
from agent_loop.ids import new_id
from agent_loop.messages import Json
from agent_loop.plugins.permission.approver import Option
from agent_loop.plugins.permission.grant_book import GrantBook, GrantsUnreadable
from agent_loop.plugins.permission.grants import (
    Grant,
    covered_by,
    grant_from_json,
    grant_to_json,
    options_for,
)
from agent_loop.plugins.permission.policy import Ruling
from agent_loop.record import replace
from agent_loop.tools.tool import Effect, PreparedCall

_ID_CHARS = 8


class Memory:
    """One harness's."""

    def __init__(self, rules: Sequence[RuleSettings], state_dir: Path) -> None:
        self._rules = rules
        self._book = GrantBook(state_dir)

    def judge(self, call: PreparedCall, in_session: Iterable[Any]) -> Ruling | None:
        """What was said of a call; None when it was left to the mode. Blocks: it looks at the disk.

        Args:
            in_session: Grants that hold in its session, as they are logged.
        """
        said = self._by_rule(call)
        if said is not None and said.verdict == "deny":
            return said
        try:
            in_project = self._book.of(_project(call))
        except GrantsUnreadable as error:
            # One of them might reject it.
            return Ruling("ask", str(error))

        covered = covered_by(call)
        same = [
            grant for grant in (*map(grant_from_json, in_session), *in_project) if grant.covered == covered
        ]
        for grant in same:
            if not grant.allows:
                return Ruling("deny", f"{grant.text}, always in this project")
        if said is not None or not same:
            return said
        where = "always in this project" if same[-1] in in_project else "for this session"
        return Ruling("allow", f"{same[-1].text}, {where}")

    def hides(self, call: PreparedCall, real: str) -> bool:
        """Whether a rule denies the tool of a call the file at a real path. Blocks: it looks at the disk."""
        prepared = replace(call.prepared, effect=Effect("read", (real,)))
        said = self._by_rule(replace(call, arguments={}, prepared=prepared))
        return said is not None and said.verdict == "deny"

    def options(self, call: PreparedCall) -> tuple[Option, ...]:
        """What the person can answer, those for longer included where it can be said what they cover."""
        shown = tuple(map(call.ctx.workspace.roots.shown, call.prepared.effect.paths))
        return options_for(covered_by(call), shown)

    def logged_grant(self, call: PreparedCall) -> Json:
        """A yes to this call, for the log of its session."""
        return grant_to_json(_grant(call, allows=True))

    def keep(self, call: PreparedCall, allows: bool) -> None:
        """Remember an answer to this call for its project. Blocks.

        Raises:
            GrantsUnreadable: It could not be written; nothing is changed.
        """
        self._book.add(_project(call), _grant(call, allows=allows))

    def _by_rule(self, call: PreparedCall) -> Ruling | None:
        if not self._rules:
            return None

        # With the library that matches globs; most people have no rules.
        from agent_loop.plugins.permission.look import look_at
        from agent_loop.plugins.permission.rules import Rule, rule_on

        return rule_on([Rule(**each.model_dump()) for each in self._rules], look_at(call))


def _project(call: PreparedCall) -> str:
    return os.path.realpath(call.ctx.workspace.roots.cwd)


def _grant(call: PreparedCall, *, allows: bool) -> Grant:
    covered = covered_by(call)
    assert covered is not None, "the options offered say that it can be remembered"
    return Grant(new_id()[:_ID_CHARS], allows, covered, wall_clock())
