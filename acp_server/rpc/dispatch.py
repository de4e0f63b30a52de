"""Incoming calls, through jsonrpcserver's synchronous dispatch, in arrival order.

Its coroutine dispatch puts task hops between settling and writing, which lets the next turn's updates
overtake the previous answer. So a method does its synchronous part at once and returns its result, or
a `Pending` that is settled later. Only this module imports jsonrpcserver, and only the wrapper here
makes its results: the library would send `str(exception)` to the peer.
"""

import logging
from collections.abc import Callable, Mapping
from typing import Any

from jsonrpcserver import Error, Success, dispatch_to_response
from jsonrpcserver.result import Result

from acp_server.errors import INTERNAL_ERROR, RpcError, to_rpc_error
from acp_server.rpc.pending import Pending

log = logging.getLogger(__name__)

# It logs parameters, which hold prompts and secrets.
logging.getLogger("jsonrpcserver").disabled = True
for _name in ("dispatcher", "async_dispatcher"):
    logging.getLogger(f"jsonrpcserver.{_name}").disabled = True

Method = Callable[..., Any]
"""`(context, /, **params)`: returns a result or a `Pending`, or raises."""


class Dispatcher:
    """A table of methods and the context their first argument is."""

    def __init__(self, methods: Mapping[str, Method], context: Any) -> None:
        self._methods = {name: _wrapped(method) for name, method in methods.items()}
        self._context = context

    def __call__(self, message: Mapping[str, Any]) -> Pending | None:
        """Call the method a request or notification names; None for a notification.

        `message` is a checked envelope: `method` is text and `params`, if there, an object.
        """
        # Given the parsed message, its parser and validator have nothing to do.
        response: Any = dispatch_to_response(
            message,  # type: ignore[arg-type]
            self._methods,
            context=self._context,
            deserializer=_same,
            validator=_same,
        )
        if response is None:
            return None
        pending = Pending()
        answer = response._value if hasattr(response, "_value") else response._error
        if hasattr(answer, "result"):
            if isinstance(answer.result, Pending):
                return answer.result
            pending.settle(answer.result)
        else:
            data = answer.data if isinstance(answer.data, Mapping) else None
            pending.fail(RpcError(answer.code, answer.message, data))
        return pending


def _same(message: Any) -> Any:
    return message


def _wrapped(method: Method) -> Callable[..., Result]:
    def call(context: Any, /, **params: Any) -> Result:
        try:
            return Success(method(context, **params))
        except Exception as error:
            known = to_rpc_error(error)
            if known.code == INTERNAL_ERROR:
                log.exception("a method failed")
            return Error(known.code, known.message, known.data)

    return call
