"""What rules say of a call: looks at what it would touch, then at the rules.

It blocks, as it looks at the disk: call it in a worker thread.
"""

from collections.abc import Sequence

from agent_loop.config.settings import RuleSettings
from agent_loop.plugins.permission.look import look_at
from agent_loop.plugins.permission.rules import Rule, Ruling, rule_on
from agent_loop.tools.tool import PreparedCall


def judge(settings: Sequence[RuleSettings], call: PreparedCall) -> Ruling | None:
    """What the person's rules say; None when they leave it to the mode."""
    if not settings:
        return None
    return rule_on([Rule(**each.model_dump()) for each in settings], look_at(call))
