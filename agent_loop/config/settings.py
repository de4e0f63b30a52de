"""What can be set, and what a right value is, in words.

Owns the shape of `config.toml`, format 1. Where values come from belongs to `load`; which model they
name, to `resolve`.
"""

from collections.abc import Callable
from typing import Annotated, Any, Final, Literal, Self

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

ProviderKind = Literal["openai", "anthropic", "scripted", "demo"]

BUILT_IN_PROVIDERS: Final[tuple[ProviderKind, ...]] = ("openai", "anthropic", "scripted", "demo")
"""Providers there are without a table in the file; each is named for its kind."""

TABLE_WORDS: Final = "a table"
TABLES_WORDS: Final = "an array of tables"
REQUIRED_WORDS: Final = {
    "kind": '"openai", "anthropic", "scripted" or "demo"',
    "id": "1 to 64 letters, digits, dots, dashes or underscores",
    "effect": '"allow", "ask" or "deny"',
}
"""What a value without a default must be, by its key."""
WHOLE_PRICE_WORDS: Final = "a table with both input_price and output_price, or without any price"
_PRICE_KEYS: Final = frozenset(
    ("input_price", "output_price", "cache_read_price", "cache_write_price", "currency")
)


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
_Key = Annotated[str, _must_be("text, the key itself")]
_Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False), _must_be("a number of seconds greater than 0")]
_Tokens = Annotated[int, Field(ge=1), _must_be("a whole number of tokens of at least 1")]
_Flag = Annotated[bool, _must_be("true or false")]
_Price = Annotated[float, Field(ge=0, allow_inf_nan=False), _must_be("a price of at least 0")]
_Thinking = Annotated[
    Literal["adaptive"] | Annotated[int, Field(ge=1024)],
    _must_be('"adaptive", or a whole number of tokens of at least 1024'),
]
_Steps = Annotated[int, Field(ge=1), _must_be("a whole number of at least 1")]
_Attempts = Annotated[int, Field(ge=1, le=100), _must_be("a whole number from 1 to 100")]
_Sandbox = Annotated[
    Literal["off", "workspace-write", "read-only"], _must_be('"off", "workspace-write" or "read-only"')
]
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
        sandbox: What confines commands.
        max_steps: Most model calls in one turn.
    """

    model: _Model | None = None
    system_prompt: _Text | None = None
    permission_mode: _Mode = "ask"
    sandbox: _Sandbox = "off"
    max_steps: _Steps = 200


class ProviderSettings(_Table):
    """Where models live.

    Attributes:
        base_url: Up to and without `/chat/completions` or `/v1/messages`; None for its usual place.
        api_key_env: Variable that holds the key; None for the usual one, if any.
        api_key: The key itself, where the variable holds none.
        idle_timeout_s: Longest silence of a running answer.
        max_tokens: For `anthropic`, the longest answer, thoughts included; None for the default.
        thinking: For `anthropic`, `adaptive` or the most tokens for thoughts; None for the default.
        script: For `scripted`, the file with its answers.
        control: For `scripted`, `host:port` of whoever releases held answers.
    """

    kind: _Kind
    base_url: _Url | None = None
    api_key_env: _Variable | None = None
    api_key: _Key | None = Field(default=None, repr=False)
    idle_timeout_s: _Seconds = 120.0
    max_tokens: _Tokens | None = None
    thinking: _Thinking | None = None
    script: _Text | None = None
    control: _Text | None = None


class StoreSettings(_Table):
    """Where sessions are kept.

    Attributes:
        url: Address of a PostgreSQL database; None for files in the state directory.
    """

    url: _StoreUrl | None = None


class ModelSettings(_Table):
    """What a person knows of a model better than we do; None leaves what is known.

    Attributes:
        context_window, max_output: Tokens.
        images, reasoning, tools: What it can; without `tools` it is told of none.
        input_price, output_price: Of a million tokens; both or none.
        cache_read_price, cache_write_price: The same for cached input; None costs what input does.
        currency: By its ISO 4217 code.
    """

    context_window: _Tokens | None = None
    max_output: _Tokens | None = None
    images: _Flag | None = None
    reasoning: _Flag | None = None
    tools: _Flag | None = None
    input_price: _Price | None = None
    output_price: _Price | None = None
    cache_read_price: _Price | None = None
    cache_write_price: _Price | None = None
    currency: _Text = "USD"

    @model_validator(mode="after")
    def _whole_price(self) -> Self:
        given = _PRICE_KEYS & self.model_fields_set
        if given and (self.input_price is None or self.output_price is None):
            raise PydanticCustomError("must_be", "{words}", {"words": WHOLE_PRICE_WORDS})
        return self


class RetrySettings(_Table):
    """How often, and how patiently, a failed model call is made again.

    Attributes:
        attempts: Calls in all; 1 never tries again.
        base_s: Longest wait before the second call; it doubles with each further one.
        cap_s: Longest wait of all. A provider that asks for more fails the turn at once.
    """

    attempts: _Attempts = 4
    base_s: _Seconds = 1.0
    cap_s: _Seconds = 60.0


class PluginSettings(BaseModel):
    """A table for each plugin: those that come with us are known, others read their own."""

    model_config = ConfigDict(strict=True, frozen=True, extra="allow")
    __pydantic_extra__: dict[str, dict[str, Any]]

    retry: RetrySettings = RetrySettings()

    def names(self, plugin: str) -> bool:
        """Whether there is a table of that name."""
        return plugin in self.model_fields_set


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


class FetchSettings(_Table):
    """What `fetch_url` may reach.

    Attributes:
        allow_private: This machine and its private networks as well as the internet.
    """

    allow_private: _Flag = False


class SandboxSettings(_Table):
    """What commands in a sandbox may do besides.

    Attributes:
        network: Reach the network.
    """

    network: _Flag = False


class AgentEntry(_Table):
    """An agent that is there when the server starts."""

    id: _AgentId
    model: _Model | None = None
    system_prompt: _Text | None = None
    resume_session_id: _Text | None = None


def _built_in_providers() -> dict[str, ProviderSettings]:
    return {name: ProviderSettings(kind=name) for name in BUILT_IN_PROVIDERS}


class Settings(_Table):
    """The whole file."""

    format: _Format = FORMAT
    agent: AgentSettings = AgentSettings()
    providers: dict[str, ProviderSettings] = Field(default_factory=_built_in_providers)
    agents: list[AgentEntry] = []
    store: StoreSettings = StoreSettings()
    permission: PermissionSettings = PermissionSettings()
    fetch: FetchSettings = FetchSettings()
    sandbox: SandboxSettings = SandboxSettings()
    plugins: PluginSettings = PluginSettings()
    models: dict[str, ModelSettings] = {}
