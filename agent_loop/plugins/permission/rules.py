"""Rules as data: what a person wrote in their settings, held against a call. Pure.

1. Any rule that denies wins; the deeds of a call are one.
2. Between allow and ask, the rule that says more literally what it means wins; asking wins a tie.
3. A call is allowed only if each of its deeds is.
4. Denying and asking take a path by any of its names, and every word of a command for a path.
   Allowing takes it by where it really leads, and no command by its paths.
5. A command that cannot be read to its end may do what a rule denies, so it asks wherever one could.
"""

import os
import shlex
from collections.abc import Sequence

from agent_loop.globs import is_floating, literal_length, matches
from agent_loop.plugins.permission.deeds import Call, Deed, Place
from agent_loop.plugins.permission.policy import Ruling, Verdict
from agent_loop.record import record
from agent_loop.tools.tool import EffectKind

UNREADABLE = "what it does cannot be read, and a rule denies some of what it might"


@record
class Rule:
    """One rule; what is None is not looked at.

    Attributes:
        path: Gitignore glob: absolute, below the home directory (`~/`), or in any of the session's
            directories; without a slash, anywhere.
        command: The first words of a simple command.
        domain: A host, or `*.` and what it ends in.
    """

    effect: Verdict
    tool: str | None = None
    kind: EffectKind | None = None
    path: str | None = None
    command: str | None = None
    domain: str | None = None

    @property
    def text(self) -> str:
        """The rule as a person reads it: `deny path ".env"`."""
        said = {
            "tool": self.tool,
            "kind": self.kind,
            "path": self.path,
            "command": self.command,
            "domain": self.domain,
        }
        return " ".join(
            [self.effect, *(f'{name} "{value}"' for name, value in said.items() if value is not None)]
        )

    @property
    def weight(self) -> tuple[int, bool]:
        """How literally it says what it means; asking weighs more than allowing."""
        words = (self.tool or "", self.command or "", (self.domain or "").removeprefix("*."))
        return sum(map(len, words)) + literal_length(self.path or ""), self.effect == "ask"


def rule_on(rules: Sequence[Rule], call: Call) -> Ruling | None:
    """What the rules say; None when they leave it to the mode."""
    for rule in rules:
        if rule.effect == "deny" and any(_meets(rule, deed, call.roots) for deed in call.deeds):
            return Ruling("deny", rule.text)
    if any(_might_deny(rule, deed, call.whole) for rule in rules for deed in call.deeds):
        return Ruling("ask", UNREADABLE)

    chosen = [_heaviest(rules, deed, call.roots) for deed in call.deeds]
    met = [rule for rule in chosen if rule is not None]
    for rule in met:
        if rule.effect == "ask":
            return Ruling("ask", rule.text)
    if len(met) < len(chosen):
        return None
    return Ruling("allow", "; ".join(dict.fromkeys(rule.text for rule in met)))


def _heaviest(rules: Sequence[Rule], deed: Deed, roots: Sequence[str]) -> Rule | None:
    met = [rule for rule in rules if rule.effect != "deny" and _meets(rule, deed, roots)]
    return max(met, key=lambda rule: rule.weight, default=None)


def _might_deny(rule: Rule, deed: Deed, whole: bool) -> bool:
    if rule.effect != "deny" or rule.tool not in (None, deed.tool):
        return False
    if not whole:
        return rule.path is not None or rule.command is not None
    first, argv = _words(rule), (deed.argv or ())[: len(_words(rule))]
    return None in argv and all(word in (None, wanted) for word, wanted in zip(argv, first, strict=False))


def _meets(rule: Rule, deed: Deed, roots: Sequence[str]) -> bool:
    return (
        rule.tool in (None, deed.tool)
        and (rule.kind is None or rule.kind in deed.kinds or _is_any_kind(rule, deed))
        and (rule.path is None or _path_meets(rule, rule.path, deed, roots))
        and (rule.command is None or _command_meets(rule, deed))
        and (rule.domain is None or _domain_meets(rule.domain, deed.domain))
    )


def _is_any_kind(rule: Rule, deed: Deed) -> bool:
    """A command may read, write or delete what its words name."""
    return deed.argv is not None and rule.path is not None and rule.effect != "allow"


def _path_meets(rule: Rule, glob: str, deed: Deed, roots: Sequence[str]) -> bool:
    if rule.effect != "allow":
        return any(_glob_meets(glob, name, place, roots) for place in deed.places for name in place.names)
    real = (_glob_meets(glob, place.real, place, roots) for place in deed.places)
    return deed.argv is None and bool(deed.places) and all(real)


def _glob_meets(glob: str, name: str, place: Place, roots: Sequence[str]) -> bool:
    if glob.startswith("~/"):
        glob = os.path.expanduser("~") + glob[1:]
    end = "/" if place.is_folder else ""
    if glob.startswith("/"):
        return matches(glob, name.lstrip("/") + end)
    inside = [name[len(root) :].lstrip("/") for root in roots if name.startswith(root.rstrip("/") + "/")]
    if not inside and is_floating(glob):
        inside = [name.lstrip("/")]
    return any(matches(glob, relative + end) for relative in inside)


def _command_meets(rule: Rule, deed: Deed) -> bool:
    first, argv = _words(rule), deed.argv or ()
    if argv[: len(first)] == first:
        return deed.plain or rule.effect != "allow"
    if rule.effect == "allow" or not argv or argv[0] is None:
        return False
    # By whatever path the program is called.
    return (os.path.basename(argv[0]), *argv[1 : len(first)]) == first


def _words(rule: Rule) -> tuple[str, ...]:
    return () if rule.command is None else tuple(shlex.split(rule.command))


def _domain_meets(domain: str, host: str | None) -> bool:
    host, domain = (host or "").lower().rstrip("."), domain.lower()
    return host.endswith(domain[1:]) if domain.startswith("*.") else host == domain
