"""Incoming parameters, checked once at the edge. Unknown members are ignored everywhere.

Source: https://agentclientprotocol.com/protocol/v1/schema
"""

from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from acp_server.errors import RpcError, invalid_params

P = TypeVar("P", bound="Params")


class Params(BaseModel):
    """Base of all: strict types, extra members ignored."""

    # Deferred: a method's first request pays for its checks, not the start, which needs two of the seven.
    model_config = ConfigDict(strict=True, extra="ignore", frozen=True, defer_build=True)


class InitializeParams(Params):
    protocolVersion: int = Field(ge=0, le=65535)
    clientCapabilities: Any = None


class AuthenticateParams(Params):
    methodId: str


class SessionParams(Params):
    sessionId: str


class NewSessionParams(Params):
    cwd: str
    mcpServers: list[Any] = []
    additionalDirectories: list[Any] = []

    @field_validator("mcpServers", "additionalDirectories", mode="before")
    @classmethod
    def _null_is_empty(cls, value: Any) -> Any:
        return [] if value is None else value


class LoadSessionParams(NewSessionParams):
    sessionId: str


class ListSessionsParams(Params):
    cwd: str | None = None
    cursor: str | None = None


class RenameParams(SessionParams):
    title: str


class PromptParams(SessionParams):
    prompt: list[Any]


class SetModeParams(SessionParams):
    modeId: str


class SetConfigOptionParams(SessionParams):
    configId: str
    value: str


class SetModelParams(SessionParams):
    modelId: str


class CancelRequestParams(Params):
    requestId: int | str | None


_WORDS = {
    "missing": "is required",
    "string_type": "must be a string",
    "int_type": "must be an integer",
    "list_type": "must be an array",
    "greater_than_equal": "is too small",
    "less_than_equal": "is too large",
}


def read(model: type[P], params: dict[str, Any]) -> P:
    """The checked parameters.

    Raises:
        RpcError: -32602 naming the first parameter at fault, in our words.
    """
    try:
        return model.model_validate(params)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        raise _invalid(first) from None


def _invalid(error: Any) -> RpcError:
    return invalid_params(_path(error["loc"]), _WORDS.get(error["type"], "is not valid here"))


def _path(loc: tuple[int | str, ...]) -> str:
    path = ""
    for part in loc:
        path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else str(part)
    return path
