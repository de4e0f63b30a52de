"""A place to hold rules against calls: a real folder, and the calls a tool would make in it."""

from agent_loop.cards import Card
from agent_loop.plugins.permission.deeds import Call
from agent_loop.plugins.permission.look import look_at
from agent_loop.plugins.permission.policy import Ruling
from agent_loop.plugins.permission.rules import Rule, rule_on
from agent_loop.tools.tool import Effect, EffectKind, Prepared, PreparedCall
from tests.doubles.workshop import Workshop


def command(shop: Workshop, line: str) -> PreparedCall:
    """A call of run_command."""
    effect = Effect("execute", shell=line, cwd=str(shop.root))
    return PreparedCall(
        "run_command", {"command": line}, Prepared(Card("execute", line), effect), shop.context()
    )


def touching(shop: Workshop, kind: EffectKind, *paths: str, tool: str = "a_tool") -> PreparedCall:
    """A call that touches files, given as a model spells them."""
    ctx = shop.context()
    real = tuple(ctx.workspace.roots.resolve(path) for path in paths)
    arguments = {f"path{number}": path for number, path in enumerate(paths)}
    return PreparedCall(tool, arguments, Prepared(Card("other", tool), Effect(kind, real)), ctx)


def fetching(shop: Workshop, domain: str) -> PreparedCall:
    """A call that fetches."""
    effect = Effect("fetch", domain=domain)
    return PreparedCall("fetch_url", {}, Prepared(Card("fetch", domain), effect), shop.context())


def judged(call: PreparedCall, *rules: Rule) -> str | None:
    """The verdict of these rules; None where they leave it to the mode."""
    ruling = ruled(call, *rules)
    return None if ruling is None else ruling.verdict


def ruled(call: PreparedCall, *rules: Rule) -> Ruling | None:
    return rule_on(rules, looked(call))


def looked(call: PreparedCall) -> Call:
    return look_at(call)
