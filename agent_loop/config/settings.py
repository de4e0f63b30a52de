"""What can be set, and what a right value is, in words.

Owns the shape of `config.toml`, format 1. Where values come from belongs to `load`; which model they
name, to `resolve`.
"""

from collections.abc import Callable
from typing import Annotated, Any, Final, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from agent_loop.events.facts import PermissionMode

FORMAT: Final = 1

ProviderKind = Literal["openai", "scripted", "demo"]

BUILT_IN_PROVIDERS: Final[tuple[ProviderKind, ...]] = ("openai", "scripted", "demo")
"""Providers there are without a table in the file; each is named for its kind."""

TABLE_WORDS: Final = "a table"
TABLES_WORDS: Final = "an array of tables"
REQUIRED_WORDS: Final = {
    "kind": '"openai", "scripted" or "demo"',
    "id": "1 to 64 letters, digits, dots, dashes or underscores",
    "effect": '"allow", "ask" or "deny"',
}
"""What a value without a default must be, by its key."""


def _must_be(words: str) -> WrapValidator:
    """Says what would be right, in place of the library's text, which changes by version."""

    def check(value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
        try:
            return handler(value)
        except ValidationError as error:
            raise PydanticCustomError("must_be", "{words}", {"words": words}) from error

    return WrapValidator(check)


def _checked(is_right: Callable[[str], bool]) -> Callable[[str], str]:
    def check(value: str) -> str:
        if not is_right(value):
            raise ValueError
        return value

    return check


# What only rules need is imported by whoever has one: everybody waits for the start.
def _is_glob(text: str) -> bool:
    from agent_loop.globs import is_glob

    return is_glob(text)


def _is_plain_command(text: str) -> bool:
    import shlex

    try:
        return bool(shlex.split(text)) and not set(text) & set("\n;&|<>()$`")
    except ValueError:
        return False


_Text = Annotated[str, _must_be("text")]
# It becomes part of session ids, and those are file names.
_AgentId = Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,64}$"), _must_be(REQUIRED_WORDS["id"])]
_Model = Annotated[str, _must_be("text like PROVIDER/NAME")]
_Url = Annotated[
    str, Field(pattern=r"^https?://[^\s/]"), _must_be("an address that begins with http:// or https://")
]
_StoreUrl = Annotated[
    str,
    Field(pattern=r"^postgres(ql)?://"),
    _must_be("an address that begins with postgresql://"),
]
_Variable = Annotated[
    str,
    Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$"),
    _must_be("the name of an environment variable, never the key itself"),
]
_Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False), _must_be("a number of seconds greater than 0")]
_Steps = Annotated[int, Field(ge=1), _must_be("a whole number of at least 1")]
_Mode = Annotated[PermissionMode, _must_be('"ask", "accept-edits", "plan" or "full-auto"')]
_Kind = Annotated[ProviderKind, _must_be(REQUIRED_WORDS["kind"])]
_Effect = Annotated[Literal["allow", "ask", "deny"], _must_be(REQUIRED_WORDS["effect"])]
_EffectKind = Annotated[
    Literal["read", "write", "delete", "move", "execute", "fetch", "other"],
    _must_be('"read", "write", "delete", "move", "execute", "fetch" or "other"'),
]
_ToolName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$"), _must_be("the name of a tool")]
_Glob = Annotated[
    str, AfterValidator(_checked(_is_glob)), _must_be("a gitignore pattern, neither a comment nor a negation")
]
_CommandWords = Annotated[
    str,
    AfterValidator(_checked(_is_plain_command)),
    _must_be("the first words of one command, nothing to expand"),
]
_Domain = Annotated[
    str, Field(pattern=r"^(\*\.)?[A-Za-z0-9.-]+$"), _must_be("a host name, or *. and what it ends in")
]
_Format = Annotated[Literal[1], _must_be("1, the only format this version reads")]


class _Table(BaseModel):
    # Strict: the text "5" is no number. Unknown keys are warned of by `load`, and kept out of here.
    model_config = ConfigDict(strict=True, frozen=True, extra="ignore")


class AgentSettings(_Table):
    """How an agent works unless told otherwise.

    Attributes:
        model: `PROVIDER/NAME`; None until somebody chooses.
        max_steps: Most model calls in one turn.
    """

    model: _Model | None = None
    system_prompt: _Text | None = None
    permission_mode: _Mode = "ask"
    max_steps: _Steps = 200


class ProviderSettings(_Table):
    """Where models live.

    Attributes:
        base_url: Up to and without `/chat/completions`; None for the usual place of its kind.
        api_key_env: Variable that holds the key; None for the usual one, if any.
        idle_timeout_s: Longest silence of a running answer.
        script: For `scripted`, the file with its answers.
        control: For `scripted`, `host:port` of whoever releases held answers.
    """

    kind: _Kind
    base_url: _Url | None = None
    api_key_env: _Variable | None = None
    idle_timeout_s: _Seconds = 120.0
    script: _Text | None = None
    control: _Text | None = None


class StoreSettings(_Table):
    """Where sessions are kept.

    Attributes:
        url: Address of a PostgreSQL database; None for files in the state directory.
    """

    url: _StoreUrl | None = None


class RuleSettings(_Table):
    """One rule on what tools may do; what is None is not looked at.

    Strict in its keys, too: a rule with a misspelled one would allow, or deny, more than was meant.
    """

    model_config = ConfigDict(extra="forbid")

    effect: _Effect
    tool: _ToolName | None = None
    kind: _EffectKind | None = None
    path: _Glob | None = None
    command: _CommandWords | None = None
    domain: _Domain | None = None

    @model_validator(mode="after")
    def _says_of_what(self) -> "RuleSettings":
        if self.model_fields_set <= {"effect"}:
            words = f"a table that says of what, too: {', '.join(list(RuleSettings.model_fields)[1:])}"
            raise PydanticCustomError("must_be", "{words}", {"words": words})
        return self


class PermissionSettings(_Table):
    """What tools may do, beyond what the mode says."""

    rules: list[RuleSettings] = []


class AgentEntry(_Table):
    """An agent that is there when the server starts."""

    id: _AgentId
    model: _Model | None = None
    system_prompt: _Text | None = None
    resume_session_id: _Text | None = None


def _built_in_providers() -> dict[str, ProviderSettings]:
    return {name: ProviderSettings(kind=name) for name in BUILT_IN_PROVIDERS}


class Settings(_Table):
    """The whole file. `plugins` holds a table for each plugin, read by the plugin itself."""

    format: _Format = FORMAT
    agent: AgentSettings = AgentSettings()
    providers: dict[str, ProviderSettings] = Field(default_factory=_built_in_providers)
    agents: list[AgentEntry] = []
    store: StoreSettings = StoreSettings()
    permission: PermissionSettings = PermissionSettings()
    plugins: dict[str, dict[str, Any]] = {}
