"""Which model a session's agent asks: the one of the settings, until its person chooses another.

Owns what can be chosen, the change, and its return after a restart. What it takes to reach a model belongs to
`config.resolve` and `chosen_model`, what is known of it to `llm`.
"""

import logging
import re
from functools import lru_cache
from importlib.util import find_spec
from typing import Final, get_args

from agent_loop.agent.agent import AgentOptions, ReactLoopAgent
from agent_loop.chosen_model import info_of, provider_of
from agent_loop.config.resolve import ResolvedModel, providers_of
from agent_loop.config.settings import Settings
from agent_loop.errors import ConfigError, ProviderError
from agent_loop.events.bus import Bus
from agent_loop.events.facts import SessionModel, ThoughtLevel
from agent_loop.events.moments import ModelsListed
from agent_loop.llm.registry import LlmRegistry
from agent_loop.record import record, replace
from agent_loop.sign_in import SignIn

log = logging.getLogger(__name__)

# An endpoint lists all it has; these answer in no conversation.
_NO_CHAT: Final = re.compile(
    r"embed|whisper|tts|dall-e|moderation|image|audio|realtime|transcri|sora|rerank|davinci|babbage|instruct$",
    re.IGNORECASE,
)


@record
class ModelState:
    """What a session can choose, and what it has chosen.

    Attributes:
        current: `PROVIDER/NAME`, one of `offered`.
        thought: None leaves it to the settings, or the model.
        thoughts: What `thought` could be; nothing for a model that does not think, or not as it is told.
    """

    current: str
    offered: tuple[str, ...]
    thought: ThoughtLevel | None
    thoughts: tuple[ThoughtLevel, ...]


class ModelChoice:
    """The models of one harness."""

    def __init__(self, bus: Bus, llm: LlmRegistry, settings: Settings, sign_in: SignIn) -> None:
        self._bus = bus
        self._llm = llm
        self._settings = settings
        self._sign_in = sign_in
        self._listed: dict[str, tuple[str, ...]] = {}

    def options(self, resolved: ResolvedModel, system_prompt: str | None = None) -> AgentOptions:
        """How an agent works by the settings with this model, and another system prompt perhaps.

        Raises:
            ConfigError: What it takes to reach the model is not installed, or its address is none.
        """
        settings = self._settings
        if not self._llm.has(resolved.provider_name):
            self._llm.register(provider_of(resolved))
        name = _name(resolved)
        return AgentOptions(
            model=name,
            system_prompt=system_prompt or settings.agent.system_prompt or "",
            max_steps=settings.agent.max_steps,
            info=info_of(resolved, settings.models.get(name)),
        )

    def state(self, agent: ReactLoopAgent) -> ModelState:
        """What this agent's person can choose now."""
        options = agent.options
        thoughts = get_args(ThoughtLevel) if options.info.reasoning else ()
        return ModelState(options.model, self._offered(options.model), options.thought, thoughts)

    def choose(self, agent: ReactLoopAgent, model: str) -> None:
        """Ask another model from the next step on; the one that is asked already changes nothing.

        Raises:
            ConfigError: It cannot be reached; nothing is changed.
            Exception: What a log observer raised; the model is changed all the same.
        """
        if model == agent.options.model:
            return
        chosen = self.options(self._known(model))
        kept = agent.options.thought if chosen.info.reasoning else None
        self._change(agent, replace(agent.options, model=chosen.model, info=chosen.info, thought=kept))

    def think(self, agent: ReactLoopAgent, thought: ThoughtLevel | None) -> None:
        """Have the model think so long from the next step on; None leaves it to the settings, or the model.

        Raises:
            Exception: What a log observer raised; the level is changed all the same.
        """
        if thought != agent.options.thought:
            self._change(agent, replace(agent.options, thought=thought))

    def restore(self, agent: ReactLoopAgent) -> str | None:
        """Return to what the person of a stored session chose.

        Returns:
            Why that cannot be, in words for them; the settings' model answers then.
        """
        chosen = agent.session.log.model
        if chosen is None:
            return None
        try:
            options = self.options(self._known(chosen.model))
        except ConfigError as error:
            return f"This session's model {chosen.model} is not there, {agent.options.model} answers: {error}"
        thought = chosen.thought if options.info.reasoning else None
        agent.options = replace(agent.options, model=options.model, info=options.info, thought=thought)
        return None

    async def load(self, model: str) -> None:
        """Do what its first prompt would have to wait for, then ask the provider for its models.

        Raises:
            NotFound: Its provider was not reached yet.
        """
        provider = self._llm.get(model.partition("/")[0])
        await provider.load()
        try:
            listed = tuple(name for name in await provider.models() if not _NO_CHAT.search(name))
        except ProviderError as error:
            log.info("%s did not say which models it has: %s", provider.name, error)
            return
        if listed:
            self._listed[provider.name] = listed
            self._bus.emit(ModelsListed(provider.name))

    def _known(self, model: str) -> ResolvedModel:
        """Raises ConfigError when its name leads nowhere, or its key is not known."""
        reached = self._llm.has(model.partition("/")[0])
        return self._sign_in.known(model, needs_key=not reached)

    def _change(self, agent: ReactLoopAgent, options: AgentOptions) -> None:
        agent.options = options
        agent.session.log.append(SessionModel(options.model, options.thought))

    def _offered(self, current: str) -> tuple[str, ...]:
        """In one order, whatever is current: the settings' model, its provider's others, then the rest."""
        settings = self._settings
        chosen = settings.agent.model or current
        first, last = (chosen, *settings.models), (current,)
        names: dict[str, None] = {}
        mine = chosen.partition("/")[0]
        for provider in sorted(providers_of(settings), key=lambda name: name != mine):
            reached = self._reached(provider)
            if reached is None:
                continue
            listed = self._listed.get(provider) or _in_catalogue(reached)
            of_all = (*first, *(f"{provider}/{name}" for name in listed), *last)
            names.update(dict.fromkeys(name for name in of_all if name.startswith(f"{provider}/")))
        return tuple(names) or (current,)

    def _reached(self, provider: str) -> ResolvedModel | None:
        """A model of that provider, whose name does not matter; None when it cannot be asked."""
        try:
            model = self._known(f"{provider}/any")
        except ConfigError:
            return None
        if self._llm.has(provider):
            return model
        if model.kind == "scripted" and model.script is None:
            return None
        return None if model.kind == "anthropic" and not _has_anthropic() else model


def _name(model: ResolvedModel) -> str:
    return f"{model.provider_name}/{model.model}"


def _in_catalogue(model: ResolvedModel) -> tuple[str, ...]:
    """What the maker has, as far as we know; of anybody else's place nothing is known."""
    if not model.from_maker:
        return ()
    # Imported with the first session: nobody waits for the table at a start.
    from agent_loop.llm.catalogue import known_names

    return known_names(model.kind)


@lru_cache(maxsize=1)
def _has_anthropic() -> bool:
    return find_spec("anthropic") is not None
