"""One turn's cancel token: who stopped the turn, and the scopes that must be left because of it.

The token is the truth, never a scope's `cancelled_caught`: anyio may never deliver a cancel made
from the turn's own task when no await follows. Ask `fired` before each effect.
"""

from types import TracebackType
from typing import Self

import anyio

from agent_loop.events.facts import CancelCause


class TurnCancelled(Exception):
    """The turn's token fired; raised where a scope of it ends."""


class CancelToken:
    """Made before a turn is announced; dropped when its `turn/end` is logged.

    Attributes:
        cause: Who fired it, None before; the first cause wins.
        text: Their words, for the log.
    """

    def __init__(self) -> None:
        self.cause: CancelCause | None = None
        self.text = ""
        self._scopes: list[anyio.CancelScope] = []

    @property
    def fired(self) -> bool:
        """True once the turn is cancelled."""
        return self.cause is not None

    def cancel(self, cause: CancelCause, text: str) -> None:
        """Fire: synchronous, idempotent, legal from inside the turn itself."""
        if self.cause is not None:
            return
        self.cause, self.text = cause, text
        for scope in tuple(self._scopes):
            scope.cancel()

    def raise_if_fired(self) -> None:
        """Raises TurnCancelled once the token has fired."""
        if self.cause is not None:
            raise TurnCancelled(self.text)

    def scope(self) -> "TokenScope":
        """A cancel scope that ends early when the token fires, and then raises TurnCancelled at its exit.

        It raises whenever the token has fired by then, whether or not the cancellation was delivered.
        """
        return TokenScope(self, self._scopes)

    def quiet_scope(self) -> "QuietScope":
        """The same without the raise, for work whose outcome is looked at either way."""
        return QuietScope(self, self._scopes)


class _Scope:
    """A cancel scope the token knows; enter and leave it in one task."""

    __slots__ = ("_open", "_scope", "_token")

    def __init__(self, token: CancelToken, open_scopes: list[anyio.CancelScope]) -> None:
        self._token = token
        self._open = open_scopes
        self._scope = anyio.CancelScope()

    def __enter__(self) -> Self:
        self._scope.__enter__()
        self._open.append(self._scope)
        if self._token.fired:
            self._scope.cancel()
        return self

    def _leave(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        self._open.remove(self._scope)
        return bool(self._scope.__exit__(kind, error, traceback))


class TokenScope(_Scope):
    """What `CancelToken.scope` gives."""

    __slots__ = ()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        swallowed = self._leave(kind, error, traceback)
        # A genuine cancellation from further out is no Exception, and passes.
        if self._token.fired and (swallowed or error is None or isinstance(error, Exception)):
            raise TurnCancelled(self._token.text) from error


class QuietScope(_Scope):
    """What `CancelToken.quiet_scope` gives."""

    __slots__ = ()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        return self._leave(kind, error, traceback)
