"""The import contracts of the house, read from the source and never from running it.

Owns the tables (who stands above whom, which library lives where) and the reader. Functions, lazy imports by
name and `if TYPE_CHECKING:` count like any other import: to know a type is to know its room.
"""

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

PACKAGES = ("agent_loop", "acp_server")

FRONT_DOOR = "__init__"

# Highest first. A room imports what stands strictly below it; rooms of one layer are strangers.
LAYERS: tuple[frozenset[str], ...] = (
    frozenset({FRONT_DOOR}),
    frozenset({"harness"}),
    frozenset({"model_choice"}),
    frozenset({"sign_in"}),
    frozenset({"chosen_model", "workspaces"}),
    frozenset({"loop", "plugins"}),
    frozenset({"agent"}),
    frozenset({"llm", "tools", "prompt", "persistence", "config", "workspace"}),
    frozenset({"session"}),
    frozenset({"events"}),
    # Facts carry chunks and cards, so these stand below `events` rather than in llm and tools.
    frozenset({"cards", "chunks"}),
    frozenset({"messages"}),
    frozenset({"ids", "errors", "clock", "jsonvalue", "record", "globs", "pictures", "private_file"}),
)
NEIGHBOURS = frozenset({("tools", "workspace")})

PURE = (
    "agent_loop/session/history.py",
    "agent_loop/session/usage.py",
    "agent_loop/loop/request.py",
    "agent_loop/llm/collect.py",
    "agent_loop/prompt/assemble.py",
    "acp_server/codec/*",
    "acp_server/options/*",
    "agent_loop/plugins/permission/policy.py",
    "agent_loop/plugins/permission/rules.py",
    "agent_loop/plugins/permission/shell*.py",
    "acp_server/wire/*",
)

_HTTP = (
    "agent_loop/llm/providers/*",
    "agent_loop/llm/probe.py",
    "agent_loop/workspace/fetch.py",
    "agent_loop/plugins/mcp/*",
)

# Library → the only files that may import it.
HOMES: dict[str, tuple[str, ...]] = {
    "jsonrpcserver": ("acp_server/rpc/dispatch.py",),
    "openai": ("agent_loop/llm/providers/*",),
    "anthropic": ("agent_loop/llm/providers/*",),
    "httpx": _HTTP,
    "httpx2": _HTTP,
    "mcp": ("agent_loop/plugins/mcp/*",),
    "keyring": ("agent_loop/config/vaults.py",),
    "pathspec": ("agent_loop/globs.py",),
    "asyncpg": ("agent_loop/persistence/postgres*.py",),
    "acp": (),  # the public SDK is a test dependency
    "tests": (),
}

# stdout is the protocol: only what runs instead of it may print. Ruff's T20 exceptions are the same list.
MAY_PRINT = (
    "acp_server/cli.py",
    "acp_server/cli_*.py",
    "acp_server/cli/*",
    "acp_server/demo.py",
    "acp_server/demo_*.py",
    "acp_server/demo/*",
    "acp_server/sessions_cli.py",
    "acp_server/permissions_cli.py",
    "acp_server/why_cli.py",
    "acp_server/login_cli.py",
    "acp_server/doctor_cli.py",
)


@dataclass(frozen=True)
class Import:
    line: int
    target: str


@dataclass(frozen=True)
class Module:
    path: str
    tree: ast.Module
    imports: tuple[Import, ...]

    @property
    def package(self) -> str:
        return self.path.split("/")[0]

    @property
    def room(self) -> str:
        return self.path.removesuffix(".py").split("/")[1]


Contract = Callable[[list[Module]], Iterator[str]]


def read_packages(root: Path) -> list[Module]:
    """Parse every module of both packages under `root`; a package that isn't there has none."""
    paths = {
        path.relative_to(root).as_posix(): path
        for package in PACKAGES
        for path in sorted((root / package).rglob("*.py"))
    }
    # Folders count too: a namespace package has no __init__.py.
    known = {_dotted(path) for path in paths}
    known |= {name.rpartition(".")[0] for name in known}
    modules = []

    for path, file in paths.items():
        tree = ast.parse(file.read_text(encoding="utf-8"), filename=path)
        modules.append(Module(path, tree, tuple(dict.fromkeys(_imports(path, tree, known)))))

    return modules


def the_loop_knows_no_server(modules: list[Module]) -> Iterator[str]:
    for module, found in _imports_of(modules, "agent_loop"):
        if _head(found.target) == "acp_server":
            yield f"{module.path}:{found.line} imports {found.target}"


def rooms_import_only_what_stands_below(modules: list[Module]) -> Iterator[str]:
    for module in modules:
        if module.package == "agent_loop" and _layer(module.room) is None:
            yield f"{module.path}:1 stands in no layer: give {module.room} a place in LAYERS"

    for module, found in _imports_of(modules, "agent_loop"):
        if _head(found.target) != "agent_loop":
            continue

        here, there = module.room, _room(found.target)
        above, below = _layer(here), _layer(there)

        if here == there or (here, there) in NEIGHBOURS or above is None:
            continue

        if below is None or below <= above:
            yield f"{module.path}:{found.line} imports {found.target}"


def plugins_are_strangers(modules: list[Module]) -> Iterator[str]:
    folders = {_plugin(module.path.split("/")) for module in modules} - {None}

    for module, found in _imports_of(modules, "agent_loop"):
        here = _plugin(module.path.split("/"))
        there = _plugin([*found.target.split("."), ""])

        if here and there in folders and here != there:
            yield f"{module.path}:{found.line} imports {found.target}"


def pure_modules_know_no_event_loop(modules: list[Module]) -> Iterator[str]:
    for module in modules:
        if not _listed(module.path, PURE):
            continue

        for found in module.imports:
            if _head(found.target) in {"anyio", "asyncio"}:
                yield f"{module.path}:{found.line} imports {found.target}"


def libraries_stay_in_their_homes(modules: list[Module]) -> Iterator[str]:
    for module in modules:
        for found in module.imports:
            homes = HOMES.get(_head(found.target))
            if homes is not None and not _listed(module.path, homes):
                yield f"{module.path}:{found.line} imports {found.target}"


def the_server_uses_the_front_door(modules: list[Module]) -> Iterator[str]:
    for module, found in _imports_of(modules, "acp_server"):
        if _head(found.target) == "agent_loop" and found.target != "agent_loop":
            yield f"{module.path}:{found.line} imports {found.target}"


def modules_open_with_a_sentence(modules: list[Module]) -> Iterator[str]:
    for module in modules:
        opening = (ast.get_docstring(module.tree) or "").split("\n\n")[0].strip()
        if len(opening.split()) < 3 or not opening.endswith((".", "!", "?")):
            yield f"{module.path}:1 opens with {opening!r}"


def nobody_prints(modules: list[Module]) -> Iterator[str]:
    for module in modules:
        if _listed(module.path, MAY_PRINT):
            continue

        for node in ast.walk(module.tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print":
                yield f"{module.path}:{node.lineno} prints"


def the_server_init_is_only_a_sign(modules: list[Module]) -> Iterator[str]:
    """The entry point guards stdout before any other import, and importing it runs this file first."""
    for module in modules:
        if module.path == "acp_server/__init__.py":
            for node in module.tree.body[1:]:
                yield f"{module.path}:{node.lineno} holds more than its docstring"


CONTRACTS: tuple[Contract, ...] = (
    the_loop_knows_no_server,
    rooms_import_only_what_stands_below,
    plugins_are_strangers,
    pure_modules_know_no_event_loop,
    libraries_stay_in_their_homes,
    the_server_uses_the_front_door,
    modules_open_with_a_sentence,
    nobody_prints,
    the_server_init_is_only_a_sign,
)


def _imports(path: str, tree: ast.Module, known: set[str]) -> Iterator[Import]:
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                for alias in names:
                    yield Import(node.lineno, alias.name)

            case ast.ImportFrom(names=names):
                base = _base(path, node)
                for alias in names:
                    submodule = f"{base}.{alias.name}"
                    yield Import(node.lineno, submodule if submodule in known else base)

            case ast.Call(
                func=ast.Name(id="import_module" | "__import__") | ast.Attribute(attr="import_module"),
                args=[ast.Constant(value=str(name)), *_],
            ):
                yield Import(node.lineno, name)


def _base(path: str, node: ast.ImportFrom) -> str:
    """Name the module after `from`, with leading dots resolved."""
    if not node.level:
        return node.module or ""

    folder = path.split("/")[: -node.level]
    return ".".join([*folder, *([node.module] if node.module else [])])


def _imports_of(modules: list[Module], package: str) -> Iterator[tuple[Module, Import]]:
    for module in modules:
        if module.package == package:
            for found in module.imports:
                yield module, found


def _layer(room: str) -> int | None:
    return next((depth for depth, rooms in enumerate(LAYERS) if room in rooms), None)


def _room(target: str) -> str:
    names = target.split(".")
    return names[1] if len(names) > 1 else FRONT_DOOR


def _plugin(parts: list[str]) -> str | None:
    """Name the plugin folder a path lies in; the plugin room's own modules lie in none."""
    return parts[2] if parts[:2] == ["agent_loop", "plugins"] and len(parts) > 3 else None


def _dotted(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _head(target: str) -> str:
    return target.split(".")[0]


def _listed(path: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatch(path, pattern) for pattern in patterns)
