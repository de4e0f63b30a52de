"""Exports: a person likes to read them, and nothing in a transcript can act on whoever does."""

import base64
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_server.conversation import STILL_OPEN, UNTITLED, Conversation, Said, conversation, diff_lines, ending
from acp_server.export_html import to_html
from acp_server.export_markdown import to_markdown
from acp_server.export_prose import prose
from acp_server.export_times import iso, lasted, utc_in_words
from acp_server.inert import inert, one_line
from agent_loop import cards, chunks, messages
from agent_loop.events import facts as f
from agent_loop.session.log import SessionLog
from tests.doubles.conversations import (
    HOSTILE,
    NEW,
    OLD,
    PATH,
    asks,
    begin,
    call,
    deltas,
    end,
    header,
    hostile,
    ordinary,
)
from tests.doubles.facts import any_fact, placed_facts, runs, unhurried

CHROMIUM = "/usr/bin/chromium"
QUIET = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
TAGS = (
    *("html", "head", "meta", "title", "style", "body", "header", "main", "footer", "nav", "section"),
    *("h1", "dl", "div", "dt", "dd", "time", "code", "details", "summary", "ol", "ul", "li", "a", "article"),
    *("p", "span", "pre", "b", "strong", "em", "del", "blockquote", "hr", "table", "tr", "th", "td", "tbody"),
)
ATTRIBUTES = (
    "class",
    "id",
    "lang",
    "charset",
    "http-equiv",
    "content",
    "name",
    "datetime",
    "open",
    "href",
    "start",
)


class Page(HTMLParser):
    """What a page is made of: tags, attributes, and the words between them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.open: list[str] = []
        self.words = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in ("meta", "hr"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words += data

    def faults(self) -> list[str]:
        """What an export must not hold."""
        wrong = [tag for tag in self.tags if tag not in TAGS]
        wrong += [name for name, _ in self.attributes if name not in ATTRIBUTES]
        wrong += [value for name, value in self.attributes if name == "href" and value[:6] != "#turn-"]
        return wrong + self.open


def told(facts: Sequence[f.LogRow], **head: Any) -> Conversation:
    return conversation(header(**head), facts)


def test_a_conversation_is_what_was_said_and_done_in_order() -> None:
    """Issue 3: messages, thoughts, cards with their newest state, and stop reasons."""
    found = told(ordinary(), parent="before")

    [turn] = found.turns
    assert (found.title, found.parent, turn.number, turn.ending) == ("Mend hello.py", "before", 1, "end_turn")
    said, done = turn.entries[:3], turn.entries[3:]
    assert [(each.speaker, each.text) for each in said if isinstance(each, Said)] == [
        ("you", "Mend hello.py"),
        ("thought", "I should look."),
        ("agent", "Let me **mend** it."),
    ]
    assert [
        (each.card.title, each.card.status, each.notes) for each in done if not isinstance(each, Said)
    ] == [
        ("hello.py", "done", ("allowed by user",)),
        ("python hello.py", "done", ("allowed by user", "exit 0")),
    ]


def test_runs_read_like_the_deltas_they_stand_for() -> None:
    """Store seam: runs may come packed or not."""
    facts = ordinary()
    packed = list(SessionLog(facts).rows_since(0))

    assert len(packed) < len(facts)
    assert told(packed) == told(facts)


def test_messages_that_are_not_one_are_not_joined() -> None:
    """A retried answer is another message; so are two prompts in one turn."""
    facts = [
        *begin(1, "one"),
        f.SteeringMessage(1, "m2", (messages.Text("two"),), messages.USER),
        *deltas(1, chunks.TextDelta, "first"),
        f.AssistantChunk(1, 1, 2, chunks.TextDelta(0, "second")),
        f.AssistantChunk(1, 1, 2, chunks.TextDelta(1, " still")),
        f.AssistantChunk(1, 1, 2, chunks.TextDelta(2, "  \n")),
        *end(1),
    ]

    [turn] = told(placed_facts(facts)).turns

    assert [each.text for each in turn.entries if isinstance(each, Said)] == [
        "one",
        "two",
        "first",
        "second still  ",
    ]


def test_a_log_that_stops_is_told_up_to_there() -> None:
    """Issue 3: what was kept of a crash can be read before it is repaired, and beside a running turn."""
    found = told(placed_facts([*begin(1, "go"), *begin(2, "again"), *deltas(2, chunks.TextDelta, "half")]))

    assert [(turn.ending, turn.ended_at, len(turn.entries)) for turn in found.turns] == [
        (STILL_OPEN, None, 1),
        (STILL_OPEN, None, 2),
    ]
    assert told([]).title == UNTITLED
    assert "Nothing was said yet." in to_html(told([]))


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        (f.EndReason("completed"), "end_turn"),
        (f.EndReason("max-tokens"), "max_tokens"),
        (f.EndReason("max-steps"), "max_turn_requests"),
        (f.EndReason("refusal"), "refusal"),
        (f.EndReason("interrupted"), "interrupted: the server went down"),
        (f.EndReason("disposed"), "the session was closed"),
        (f.EndReason("aborted", "client"), "cancelled"),
        (f.EndReason("aborted", "plugin", "Enough\nnow."), "aborted by plugin: Enough now."),
        (f.EndReason("error", error_kind="quota", message="No money."), "error, quota: No money."),
        (f.EndReason("error", message="Odd."), "error, unknown: Odd."),
    ],
)
def test_a_turns_end_is_told_by_its_stop_reason_or_in_words(reason: f.EndReason, words: str) -> None:
    """ACP, prompt turn, stop reasons; it has none for a crash and for a failure."""
    assert ending(reason) == words


def test_a_call_that_was_cut_off_and_one_nobody_was_shown() -> None:
    """A cancelled call says so as it did live; a call without a card is no card here either."""
    card = cards.Card("fetch", "a page")
    facts = [
        *begin(1, "go"),
        asks(1, "c1", "c2", "c3", "c4"),
        f.ToolCall(1, 1, "c1", "work", "{}", card),
        f.ToolResult(1, 1, "c1", (), True, "interrupted", None, f.Exit(timed_out=True), card),
        f.ToolCall(1, 1, "c2", "work", "{}", None),
        f.ToolResult(1, 1, "c2", (), True, "ran"),
        f.ToolCall(1, 1, "c3", "work", "{}", card),
        f.PermissionDecided(1, 1, "c3", False, "rule"),
        f.ToolResult(1, 1, "c3", (), True, "denied", None, f.Exit(signal="SIGTERM")),
        *end(1),
    ]

    [turn] = told(placed_facts(facts)).turns

    done = [each for each in turn.entries if not isinstance(each, Said)]
    assert [(each.card.status, each.notes) for each in done] == [
        ("cancelled", ("timed out",)),
        ("pending", ("denied by rule", "killed by SIGTERM")),
    ]
    assert done[0].card.body == (cards.CardText("Stopped before it finished."),)
    page = to_html(told(placed_facts(facts)))
    assert ">cancelled</span>" in page


def test_a_change_is_told_line_by_line() -> None:
    """Issue 3: diffs; of a new file everything is new."""
    assert diff_lines(cards.CardDiff(PATH, OLD, NEW)) == [
        "@@ -1,3 +1,3 @@",
        " import sys",
        " ",
        "-print(sys.argv[1])",
        "+print(sys.argv[1:])",
    ]
    assert diff_lines(cards.CardDiff(PATH, None, "a\nb\n")) == ["+a", "+b"]
    assert diff_lines(cards.CardDiff(PATH, "", "a")) == ["+a"]
    assert diff_lines(cards.CardDiff(PATH, OLD, OLD)) == []
    assert diff_lines(cards.CardDiff(PATH, "a\n", "a")) == ["@@ -1,2 +1 @@", " a", "-"]


def test_text_cannot_act_on_a_terminal_and_stays_readable() -> None:
    """ECMA-48: escape sequences; Unicode: bidirectional controls."""
    assert inert("\x1b[1;31mred\x1b[0m \x1b]0;t\x07\x1b]8;;u\x1b\\link\x1b(B") == "red link"
    assert inert("a\r\nb\rc\td") == "a\nb\nc\td"
    assert inert("\x1b\x00\x7f\x9b\u202e") == "␛␀␡\ufffd\ufffd"
    assert one_line(" a\nb\x1b[2J ") == "a b"


def test_markdown_tells_all_of_it() -> None:
    """Issue 3: export as Markdown."""
    facts = ordinary()

    assert to_markdown(told(facts, parent="be`fore")) == (
        "# Mend hello.py\n\n"
        "- Session: `4f2a9c1e-0000-4000-8000-000000000001`\n"
        "- Directory: `/home/me/project`\n"
        "- Forked from: ``be`fore``\n"
        "- Started: 2023-11-14 22:13 UTC\n"
        "- Updated: 2023-11-14 22:13 UTC\n\n"
        "## Turn 1 · 2023-11-14 22:13 UTC\n\n"
        "**You**\n\n> Mend hello.py\n\n"
        "<details><summary>Thought</summary>\n\nI should look.\n\n</details>\n\n"
        "**Agent**\n\nLet me **mend** it.\n\n"
        "**edit** `hello.py` · completed · allowed by user\n\n"
        "`hello.py`\n\n"
        "```diff\n@@ -1,3 +1,3 @@\n import sys\n \n-print(sys.argv[1])\n+print(sys.argv[1:])\n```\n\n"
        "**execute** `python hello.py` · completed · allowed by user · exit 0\n\n"
        "```console\nhello\n```\n\n*part of the output is left out*\n\n"
        "*Turn 1 ended: end\\_turn (0.0 s)*\n"
    )


def test_markdown_keeps_code_and_escapes_raw_html() -> None:
    """Our promise: what a model wrote as code reads as code, and its open fence swallows nothing."""
    text = "a <b> `<c>` d\n~~~\n<e>\n~~~\n<f>\n````py\n```\n<g>"
    facts = placed_facts([*begin(1, "<h>"), *deltas(1, chunks.TextDelta, text), *end(1)])

    page = to_markdown(told(facts, cwd=None))

    assert "> &lt;h>" in page
    assert "a &lt;b> `<c>` d\n~~~\n<e>\n~~~\n&lt;f>\n````py\n```\n<g>\n````\n" in page


def test_markdown_shows_every_kind_of_card_in_fences_its_text_cannot_close() -> None:
    """Our promise: an export is one document, whatever a tool printed."""
    body = (
        cards.CardText("words <x>"),
        cards.CardCode("```\nin", "sh"),
        cards.CardCode("x", "</odd>"),
        cards.CardDiff("/else/new.py", None, "a\n"),
        cards.CardDiff(PATH, OLD, OLD),
        cards.CardOutput("out"),
    )
    facts = [
        *begin(1, "go"),
        asks(1, "c1", "c2"),
        *call(1, "c1", cards.Card("other", "`t`", body)),
        *call(1, "c2", cards.Card("other", "t", input={"k": [1]})),
        *end(1),
    ]

    page = to_markdown(told(placed_facts(facts)))

    assert "**other** `` `t` `` · completed" in page
    assert "\n\nwords &lt;x>\n\n````sh\n```\nin\n````\n\n```\nx\n```\n\n" in page
    assert (
        "`/else/new.py` (new file)\n\n```diff\n+a\n```\n\n`hello.py`\n\n```diff\nnothing changed\n```" in page
    )
    assert '```json\n{\n  "k": [\n    1\n  ]\n}\n```' in page


def test_the_page_tells_all_of_it() -> None:
    """Issue 3: messages, thoughts folded, cards with diffs and output, stop reasons, titles and times."""
    page = to_html(told(ordinary(), parent="before"))

    seen = Page(page)
    assert seen.faults() == []
    for part in (
        "<title>Mend hello.py</title>",
        '<time datetime="2023-11-14T22:13:20Z">2023-11-14 22:13 UTC</time>',
        "<code>before</code>",
        '<details class="thought"><summary>Thought · ',
        "Let me <strong>mend</strong> it.",
        '<span class="kind">edit</span><span class="title">hello.py</span>',
        '<span class="status">completed</span>',
        '<span class="cut">-print(sys.argv[1])</span><span class="add">+print(sys.argv[1:])</span>',
        "<pre>hello</pre>",
        "part of the output is left out",
        "allowed by user · exit 0",
        "Turn 1 ended: end_turn · 0.0 s",
        "prefers-color-scheme: dark",
    ):
        assert part in page


def test_cards_are_shown_as_far_as_a_reader_wants_them() -> None:
    """Our promise: long output is folded, and what the title says already is not said again."""
    place = cards.Location
    shown = {
        "long": cards.Card("execute", "make", (cards.CardOutput("x\n" * 100),)),
        "bare": cards.Card("read", "a.py", (), (place("/home/me/project/a.py", 1),)),
        "part": cards.Card("read", "b.py", (), (place("/home/me/project/b.py", 7), place("/etc/c"))),
        "new": cards.Card("edit", "d.py", (cards.CardDiff("/home/me/project/d.py", None, "x"),)),
        "same": cards.Card("edit", "e.py", (cards.CardDiff("/home/me/project/e.py", "x", "x"),)),
    }
    for card in shown.values():
        facts = [*begin(1, "go"), asks(1, "c"), f.ToolCall(1, 1, "c", "w", "{}", card)]
        page = to_html(told(placed_facts(facts)))
        assert Page(page).faults() == []
        match card.title:
            case "make":
                assert '<details class="card pending"><summary>' in page
            case "a.py":
                assert '<details class="card pending bare"><summary>' in page
            case "b.py":
                assert '<div class="path">b.py:7</div><div class="path">/etc/c</div>' in page
            case "d.py":
                assert '<div class="path">d.py (new file)</div><pre class="diff">' in page
            case _:
                assert "nothing changed" in page


def test_a_long_session_has_a_table_of_contents() -> None:
    """Our promise: a page of a hundred turns can be found one's way in, without a script."""
    facts: list[f.LoggedFact] = []
    for turn, words in enumerate(("question 1", "a" * 200, "", "question 4"), 1):
        facts += [*begin(turn, words), *end(turn)]

    page = to_html(told(placed_facts(facts), cwd=None))

    seen = Page(page)
    assert seen.faults() == []
    assert [value for name, value in seen.attributes if name == "href"] == [f"#turn-{n}" for n in range(1, 5)]
    assert '<a href="#turn-1">question 1</a>' in page
    assert '<a href="#turn-3">Turn 3</a>' in page
    assert f"{'a' * 90}…</a>" in page


def test_a_hostile_transcript_is_inert() -> None:
    """OWASP, cross-site scripting: text in HTML is text; and no link can be followed unseen."""
    page = to_html(told(hostile(), session_id="a<b>", cwd=HOSTILE, parent=HOSTILE))

    seen = Page(page)
    assert seen.faults() == []
    assert "<script>alert(1)</script>" in seen.words
    assert "src=" not in re.sub(r"&lt;.*?&gt;", "", page.replace(HOSTILE, ""))
    assert "url(" not in page
    assert [char for char in page if not char.isprintable() and char not in "\n\t"] == []


@unhurried
@given(st.lists(any_fact | runs, max_size=12), st.text(alphabet="<>&\"'/`*_~[]()|-#> \nax\x1b", max_size=60))
def test_whatever_a_log_holds_becomes_a_sound_page(rows: list[f.LogRow], text: str) -> None:
    """Our promise: an export never fails on what the store can read, and its tags are always ours."""
    rows = [*placed_facts([*begin(1, text), *deltas(1, chunks.TextDelta, text)]), *placed_rows(rows)]

    found = told(rows)

    assert Page(to_html(found)).faults() == []
    assert to_markdown(found).startswith("# ")


def placed_rows(rows: Sequence[f.LogRow]) -> list[f.LogRow]:
    return [row if isinstance(row, f.AssistantRun) else placed_facts([row])[0] for row in rows]


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("a\nb\n\nc", "<p>a\nb</p>\n<p>c</p>"),
        ("# A *b*\n###### f ##", '<p class="h h1">A <em>b</em></p>\n<p class="h h6">f</p>'),
        (
            "- a\n  b\n    * c\n2) d",
            '<ul class="i0"><li>a\nb</li></ul>\n<ul class="i2"><li>c</li></ul>\n'
            '<ol class="i0" start="2"><li>d</li></ol>',
        ),
        ("a\n---\nb", "<p>a</p>\n<hr>\n<p>b</p>"),
        ("> a\n>\n> > b", "<blockquote><p>a</p>\n<blockquote><p>b</p></blockquote></blockquote>"),
        ("``a ` b`` `c`", "<p><code>a ` b</code> <code>c</code></p>"),
        ("**a** _b_ ~~c~~ a_b_c 2*3*4", "<p><strong>a</strong> <em>b</em> <del>c</del> a_b_c 2*3*4</p>"),
        ("[a](b:c)", '<p>a <span class="url">(b:c)</span></p>'),
        ("```\n<x>\n", '<div class="code"><pre>&lt;x&gt;\n</pre></div>'),
        (
            "~~~py\n```\n~~~\nb",
            '<div class="code"><span class="language">py</span><pre>```</pre></div>\n<p>b</p>',
        ),
        (
            "t\n|a|`b`|\n|-|:-:|\n|1|2|\nx",
            '<p>t</p>\n<div class="table"><table><tr><th>a</th><th><code>b</code></th></tr>'
            "<tr><td>1</td><td>2</td></tr></table></div>\n<p>x</p>",
        ),
        ("|a|\nb", "<p>|a|\nb</p>"),
    ],
)
def test_the_common_part_of_markdown_is_set_as_it_is_meant(text: str, made: str) -> None:
    """CommonMark and GitHub's tables, as far as models use them."""
    assert prose(text) == made


@pytest.mark.parametrize(
    "text", ["**a " * 20_000, "`a" * 20_000, "[a](" * 20_000, "> " * 20_000, "_a " * 20_000, "|-" * 40_000]
)
def test_hostile_markdown_costs_no_more_than_its_length_allows(text: str) -> None:
    """OWASP, regular expression denial of service."""
    began = time.process_time()

    prose(text)

    assert time.process_time() - began < 10


def test_times_are_told_for_people_and_for_machines() -> None:
    """ISO 8601; a damaged log may hold any number."""
    assert iso(1_700_000_000_999) == "2023-11-14T22:13:20Z"
    assert utc_in_words(-5) == "1970-01-01 00:00 UTC"
    assert utc_in_words(2**62) == "9999-12-31 23:59 UTC"
    assert [lasted(ms) for ms in (-1, 9_900, 59_400, 200_000, 7_500_000)] == [
        "0.0 s",
        "9.9 s",
        "59 s",
        "3 min 20 s",
        "2 h 5 min",
    ]


@pytest.fixture
def browse(tmp_path: Path) -> Callable[..., "subprocess.CompletedProcess[str]"]:
    """Runs Chromium, with no network to speak of, on a page."""
    if not shutil.which(CHROMIUM):
        pytest.skip("Chromium is not installed: apt-get install chromium")

    def run(page: str, *argv: str) -> "subprocess.CompletedProcess[str]":
        path = tmp_path / "page.html"
        path.write_text(page, "utf-8")
        own = f"--user-data-dir={tmp_path / 'profile'}"
        return subprocess.run(
            [CHROMIUM, *QUIET, own, *argv, path.as_uri()],
            cwd=tmp_path,
            capture_output=True,
            encoding="utf-8",
            timeout=50,
            check=True,
        )

    return run


def test_chromium_draws_a_page_and_finds_nothing_to_run(
    browse: Callable[..., "subprocess.CompletedProcess[str]"], tmp_path: Path
) -> None:
    """Issue 3: the page is checked in headless Chromium; a hostile transcript changes nothing in it."""
    page = to_html(told(hostile()))
    picture = tmp_path / "page.png"

    built = browse(page, "--dump-dom").stdout
    browse(page, f"--screenshot={picture}", "--window-size=900,1200")

    assert [tag for tag in ("<script", "<img", "<iframe", "<link") if tag in built] == []
    assert Page(built).faults() == []
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.stat().st_size > 20_000


def test_a_browser_would_tell_if_something_did_run(
    browse: Callable[..., "subprocess.CompletedProcess[str]"],
) -> None:
    """The check above can fail: the page's own policy stops even a script that got in."""
    mark = base64.b64encode(b"ran").decode()
    script = f"<script>document.body.append(atob('{mark}'))</script>"

    unguarded = browse(f"<body>{script}</body>", "--dump-dom").stdout
    guarded = browse(to_html(told(ordinary())).replace("</main>", f"{script}</main>"), "--dump-dom").stdout

    assert "</script>ran" in unguarded
    assert "ran</body>" not in guarded.replace("\n", "")
