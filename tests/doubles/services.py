"""An editor's own services, files and terminals, answered in the test: what `Calls` speaks to."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from acp_server.rpc.calls import Calls

Params = dict[str, Any]
Answer = Callable[[Params], Any]

SILENT: Answer = lambda _: NotImplemented  # noqa: E731
"""Gives no answer."""


class Refusal(Exception):
    """An error answer: its code and message."""


class Services:
    """Answers each request at once, by its method.

    Attributes:
        asked: Every request and notification, as method and parameters.
        answers: By method; one without is answered -32601.
    """

    def __init__(self, **answers: Answer) -> None:
        self.calls = Calls(self)
        self.asked: list[tuple[str, Params]] = []
        self.answers = {name.replace("__", "/"): answer for name, answer in answers.items()}

    @property
    def methods(self) -> list[str]:
        return [method for method, _ in self.asked]

    def send(self, message: Params) -> None:
        method, params = message["method"], message["params"]
        self.asked.append((method, params))
        if "id" not in message:
            return
        reply: Params = {"id": message["id"]}
        try:
            answer = self.answers[method](params) if method in self.answers else missing(params)
        except Refusal as refusal:
            code, words = refusal.args
            answer, reply["error"] = None, {"code": code, "message": words}
        if answer is not NotImplemented:
            self.calls.resolve({**reply, "result": answer})


def missing(_: Params) -> Any:
    raise Refusal(-32601, "Method not found")


class Buffers:
    """The files of an editor: unsaved buffers over a disk, and what it does to a text when it saves it.

    Attributes:
        saves: The bytes it writes for a text; None for an editor that leaves it unsaved.
    """

    def __init__(self, saves: Callable[[str], bytes] | None = str.encode) -> None:
        self.unsaved: dict[str, str] = {}
        self.saves = saves
        self.services = Services(fs__read_text_file=self._read, fs__write_text_file=self._write)

    def _read(self, params: Params) -> Params:
        path = Path(params["path"])
        if params["path"] in self.unsaved:
            return {"content": self.unsaved[params["path"]]}
        if not path.is_file():
            raise Refusal(-32002, "Resource not found")
        # As editors do: no mark, one kind of line end.
        text = path.read_bytes().decode().removeprefix("\ufeff")
        return {"content": text.replace("\r\n", "\n")}

    def _write(self, params: Params) -> None:
        path, content = params["path"], params["content"]
        if self.saves is None:
            self.unsaved[path] = content
        else:
            self.unsaved.pop(path, None)
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            Path(path).write_bytes(self.saves(content))
