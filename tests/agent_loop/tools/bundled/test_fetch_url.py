"""fetch_url: a page's text, and words for whatever else comes."""

import pytest

from agent_loop.cards import Card, CardText
from agent_loop.tools.bundled.fetch_url import TEXT_CHARS, FetchUrl
from agent_loop.tools.bundled.page_text import page_text
from agent_loop.tools.tool import Effect, ToolRefused
from agent_loop.workspace.fetch import Page
from tests.doubles.workshop import Workshop, said

FETCH = FetchUrl()
URL = "https://example.test/a/b"


class OnePage:
    """A fetcher that has this page."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.asked: list[str] = []

    async def get(self, url: str) -> Page:
        self.asked.append(url)
        return self.page


async def test_the_card_and_the_effect_name_where_it_goes(workshop: Workshop) -> None:
    """Contracts 12: fetch asks, and a rule may name the domain."""
    workshop.fetcher = OnePage(Page(URL, 200, b"<h1>Hi</h1><p>there", "text/html"))
    prepared = await workshop.prepare(FETCH, url=URL)

    assert prepared.card == Card(kind="fetch", title=URL, input={"url": URL})
    assert prepared.effect == Effect("fetch", domain="example.test")
    assert not FETCH.parallel_safe(FETCH.arguments(url=URL))

    outcome = await FETCH.run(prepared, workshop.context())

    assert said(outcome) == f"[200 from {URL}, 19 bytes]\n# Hi\n\nthere"
    assert outcome.card is not None
    assert outcome.card.body == (CardText(f"200 from {URL}, 19 bytes"),)


@pytest.mark.parametrize(
    ("page", "text"),
    [
        (Page(URL, 200, b"a\x1b[31mb", "text/plain"), "ab"),
        (Page(URL, 200, b'{"a": 1}', "application/vnd.x+json"), '{"a": 1}'),
        (Page(URL, 200, "Grün".encode("latin-1"), "text/plain", "latin-1"), "Grün"),
        (Page(URL, 200, "Grün".encode(), "", "no-such-charset"), "Grün"),
        (Page(URL, 200, b'<meta charset="latin-1">Gr\xfcn', "text/html"), "Grün"),
    ],
)
async def test_text_is_text_in_whatever_it_comes(workshop: Workshop, page: Page, text: str) -> None:
    """Issue: text extracted; control sequences neutralised."""
    workshop.fetcher = OnePage(page)

    assert said(await workshop.run(FETCH, url=URL)).partition("\n")[2] == text


@pytest.mark.parametrize(
    ("page", "words", "code"),
    [
        (Page(URL, 200, b"x", "image/png"), f"Error: {URL} is image/png, not text.", "NOT_FETCHED"),
        (Page(URL, 200, b"a\0", "text/plain"), f"Error: {URL} is binary, not text.", "NOT_FETCHED"),
        (Page(URL, 404, b"gone", "text/plain"), f"[404 from {URL}, 4 bytes]\ngone", "HTTP"),
        (
            Page(URL, 302, redirect="https://c.test/"),
            "Error: it redirects to https://c.test/; to get that, call again with it.",
            "REDIRECT",
        ),
    ],
)
async def test_what_is_no_text_to_read_is_told(workshop: Workshop, page: Page, words: str, code: str) -> None:
    """Style: a result the model can read and mend."""
    workshop.fetcher = OnePage(page)

    outcome = await workshop.run(FETCH, url=URL)

    assert (said(outcome), outcome.error_code, outcome.is_error) == (words, code, True)


async def test_a_long_page_is_cut_and_says_so(workshop: Workshop) -> None:
    """Issue: bounded."""
    workshop.fetcher = OnePage(Page(URL, 200, b"x" * (TEXT_CHARS + 1), "text/plain"))

    told = said(await workshop.run(FETCH, url=URL))

    assert told.endswith("x\n[50,000 characters; the rest of the page is left out]")


async def test_no_address_is_refused_and_a_fired_token_gets_nothing(workshop: Workshop) -> None:
    """Contracts 6: ask the token right before every effect."""
    workshop.fetcher = fetcher = OnePage(Page(URL, 200))
    with pytest.raises(ToolRefused, match="is no address"):
        await workshop.prepare(FETCH, url="example.test")
    prepared = await workshop.prepare(FETCH, url=URL)
    workshop.turn.fired = True

    outcome = await FETCH.run(prepared, workshop.context())

    assert (outcome.outcome, fetcher.asked) == ("interrupted", [])


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<head><title>T</title><body>a<br>b", "T\n\na\nb"),
        ("<head><style>x</style></head>a <b>b</b>\n  c", "a b c"),
        ("<script>if (a < b) {}</script>a<svg><p>x</svg>b", "ab"),
        ("<ul><li>one</li><li>two</li></ul>after", "- one\n- two\n\nafter"),
        ("<pre>a\n  b</pre> c", "a\n  b\n\n c"),
        ("<tr><td>a</td><td>b</td></tr>", "| a | b"),
        ('<a href="../c?d"> to <i>c</i></a>!', "[to c](https://example.test/c?d)!"),
        ('<a href="#x">x</a><a href="mailto:a@b">m</a><a>n</a><a href="//[">o</a></a></pre>', "xmno"),
        ("&lt;b&gt; &eacute;", "<b> é"),
        ("", ""),
    ],
)
def test_html_is_read_as_a_person_would(html: str, text: str) -> None:
    """Issue: text extracted from HTML."""
    assert page_text(html, URL).strip(" ") == text
