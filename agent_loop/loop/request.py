"""What the model is asked. Pure: everything it needs is handed in."""

from collections.abc import Sequence

from agent_loop.agent.agent import AgentOptions
from agent_loop.errors import HarnessError
from agent_loop.llm.provider import ModelRequest, ToolSchema
from agent_loop.messages import Message


def build_request(
    options: AgentOptions,
    *,
    system: str,
    messages: Sequence[Message],
    tools: Sequence[ToolSchema],
    session_id: str,
) -> ModelRequest:
    """One model request; the model of `options` is empty when a middleware will fill it in."""
    provider, _, name = options.model.partition("/")
    return ModelRequest(provider, name, messages, system, tools, session_id, options.info, options.thought)


def require_model(request: ModelRequest) -> None:
    """Raises HarnessError (code NO_MODEL) when nobody said which model to ask."""
    if not request.provider or not request.model:
        raise HarnessError(
            "no model is set: give the agent a `model` option (PROVIDER/NAME) or let an"
            " `agent/request` middleware choose one",
            code="NO_MODEL",
        )
