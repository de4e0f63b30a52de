"""Commands that run, as the editor shows them: as text, as terminals it draws, or in terminals of its own.

Owns what each open card of a command shows by now. Which cards are open belongs to the record.
"""

from acp_server.codec.card_out import content_out
from acp_server.codec.terminal_out import printed, terminal_item
from acp_server.codec.update_out import Update, output_of, output_update, updates_of
from agent_loop import Card, CardOutput, LoggedFact, ToolCall, ToolOutput, ToolResult, ToolTerminal


class CommandCards:
    """Those of one session.

    Args:
        draws: Whether the editor draws a terminal of what it is told.
    """

    def __init__(self, *, draws: bool) -> None:
        self.drawn: dict[str, str] | None = {} if draws else None
        """What each drawn terminal shows; None when none is drawn."""
        self._cards: dict[str, Card] = {}
        self._editors: dict[str, str] = {}

    def updates(self, fact: LoggedFact) -> list[Update]:
        """A fact's updates, as `updates_of` has them, with what is live beside them."""
        match fact:
            case ToolCall(call_id=call_id, card=card) if card is not None and card.terminal is not None:
                self._cards[call_id] = card
            case ToolResult(call_id=call_id, card=card) if call_id in self._cards:
                return self._finished(fact, call_id, card)
            case _:
                pass
        return updates_of(fact, drawn=self.drawn)

    def output(self, moment: ToolOutput) -> list[Update]:
        """What a running call has printed since."""
        if self.drawn is None or moment.call_id not in self._cards:
            return [output_update(moment)]
        shown = self.drawn.get(moment.call_id, "")
        if not moment.text.startswith(shown):
            # Its middle is left out by now; a terminal only goes on, so the rest follows at the end.
            return []
        self.drawn[moment.call_id] = moment.text
        call = {"sessionUpdate": "tool_call_update", "toolCallId": moment.call_id}
        return [{**call, **fields} for fields in printed(moment.call_id, moment.text[len(shown) :])]

    def terminal(self, moment: ToolTerminal) -> list[Update]:
        """The editor's own terminal takes the place of whatever the card would show of the output."""
        card = self._cards.get(moment.call_id)
        if card is None:
            return []
        self._editors[moment.call_id] = moment.terminal_id
        return [
            {
                "sessionUpdate": "tool_call_update",
                "toolCallId": moment.call_id,
                "content": [*content_out(card.body), terminal_item(moment.terminal_id)],
            }
        ]

    def clear(self) -> None:
        """No card is open any more."""
        self._cards.clear()
        self._editors.clear()
        if self.drawn is not None:
            self.drawn.clear()

    def _finished(self, fact: ToolResult, call_id: str, card: Card | None) -> list[Update]:
        del self._cards[call_id]
        terminal = self._editors.pop(call_id, None)
        updates = updates_of(fact, drawn=None if terminal is not None else self.drawn)
        if self.drawn is not None:
            self.drawn.pop(call_id, None)
        if terminal is not None and card is not None and output_of(card) is not None:
            body = tuple(item for item in card.body if not isinstance(item, CardOutput))
            updates[-1]["content"] = [*content_out(body), terminal_item(terminal)]
        return updates
