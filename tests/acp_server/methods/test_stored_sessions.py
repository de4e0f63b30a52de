"""`session/list`, `resume`, `close`, `delete`, `fork` and our rename: what they promise, in one process."""

from pathlib import Path
from typing import Any

import pytest

from tests.doubles.memory_editor import OPENED, MemoryEditor, connected
from tests.doubles.memory_model import HANG, MemoryModel, says


async def listed(editor: MemoryEditor, **params: Any) -> dict[str, str | None]:
    """Titles of the stored sessions by id."""
    page = await editor.result(editor.send("session/list", **params))
    return {it["sessionId"]: it.get("title") for it in page["sessions"]}


async def spoken(editor: MemoryEditor, text: str) -> str:
    """A session in which this was said and answered, and named for it."""
    session = await editor.new_session()
    await editor.result(editor.prompt(session, text))
    return session


def sessions_on_disk(state: Path) -> set[str]:
    return {path.stem for path in state.rglob("*.jsonl")}


async def test_a_list_is_of_sessions_somebody_spoke_in(tmp_path: Path) -> None:
    """ACP, session list: id, cwd, title and time; one that was only opened is not shown."""
    async with connected(tmp_path, MemoryModel(says("Done."), says("Done."))) as editor:
        await editor.new_session()
        named = await spoken(editor, "Mend the roof.")
        silent = await spoken(editor, "\x00")

        assert await listed(editor) == {named: "Mend the roof.", silent: None}
        assert await listed(editor, cwd=editor.cwd) == await listed(editor)
        assert await listed(editor, cwd="/") == {}


@pytest.mark.parametrize(("params", "path"), [({"cwd": "here"}, "cwd"), ({"cursor": "x"}, "cursor")])
async def test_a_list_nobody_can_make_is_refused_by_name(
    params: dict[str, str], path: str, tmp_path: Path
) -> None:
    """ACP, session list: an invalid cursor or directory is an error of the asker."""
    async with connected(tmp_path, MemoryModel()) as editor:
        error = await editor.error(editor.send("session/list", **params))

        assert (error["code"], error["data"]) == (-32602, {"path": path})


async def test_long_lists_come_in_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ACP, session list: `nextCursor` leads on, and is absent at the end."""
    monkeypatch.setattr("acp_server.methods.session_list.PAGE", 2)
    async with connected(tmp_path, MemoryModel(*[says("Done.")] * 3)) as editor:
        made = {await spoken(editor, f"Number {n}.") for n in range(3)}

        first = await editor.result(editor.send("session/list"))
        rest = await editor.result(editor.send("session/list", cursor=first["nextCursor"]))

        pages = [[it["sessionId"] for it in page["sessions"]] for page in (first, rest)]
        assert [len(page) for page in pages] == [2, 1]
        assert {*pages[0], *pages[1]} == made
        assert "nextCursor" not in rest


async def test_a_name_the_person_gave_stays(tmp_path: Path) -> None:
    """Our extension: a rename is shown at once, kept, and never replaced by a title of ours."""
    async with connected(tmp_path, MemoryModel(says("Done."))) as editor:
        session = await editor.new_session()

        renamed = editor.send("_agent_loop/rename", sessionId=session, title="  The \n roof ")
        assert await editor.result(renamed) == {}
        await editor.result(editor.prompt(session, "Mend the roof."))

        titles = [it["title"] for it in editor.updates() if it["sessionUpdate"] == "session_info_update"]
        assert titles == ["The roof"]
        assert await listed(editor) == {session: "The roof"}


@pytest.mark.parametrize("title", ["", " \n\t", "\x00\x1b"])
async def test_a_name_that_says_nothing_is_refused(title: str, tmp_path: Path) -> None:
    """Our extension: an empty name would leave a list with nothing to click on."""
    async with connected(tmp_path, MemoryModel()) as editor:
        session = await editor.new_session()

        error = await editor.error(editor.send("_agent_loop/rename", sessionId=session, title=title))

        assert (error["code"], error["data"]) == (-32602, {"path": "title"})


@pytest.mark.parametrize("method", ["session/close", "session/delete"])
async def test_a_session_that_is_being_loaded_is_neither_closed_nor_deleted(
    method: str, tmp_path: Path
) -> None:
    """Contracts 4: busy is -32600; the load goes on and is answered."""
    async with connected(tmp_path, MemoryModel(says(*["word "] * 140))) as editor:
        session = await spoken(editor, "Talk.")
        editor.has_room = False
        load = editor.load(session)

        error = await editor.error(editor.send(method, sessionId=session))
        editor.has_room = True
        editor.bell.ring()

        assert (error["code"], error["data"]["kind"]) == (-32600, "busy")
        assert await editor.result(load) == OPENED
        assert await editor.result(editor.send(method, sessionId=session)) == {}


async def test_a_deleted_session_is_gone_whatever_it_was_doing(tmp_path: Path) -> None:
    """ACP, session delete: its prompt is answered, its log is gone, and twice is fine."""
    async with connected(tmp_path, MemoryModel([{"text": "Work"}, HANG])) as editor:
        session = await editor.new_session()
        prompt = editor.prompt(session)
        await editor.update(sessionUpdate="agent_message_chunk")

        deleted = editor.send("session/delete", sessionId=session)

        assert await editor.result(deleted) == {}
        assert await editor.result(prompt) == {"stopReason": "cancelled"}
        assert sessions_on_disk(tmp_path) == set()
        assert await editor.result(editor.send("session/delete", sessionId=session)) == {}
        assert (await editor.error(editor.prompt(session)))["code"] == -32002


async def test_a_fork_that_cannot_be_made_leaves_nothing(tmp_path: Path) -> None:
    """Our promise: a parent of another directory is refused, and no child is stored."""
    async with connected(tmp_path, MemoryModel(says("Done."))) as editor:
        parent = await spoken(editor, "Begin.")

        fork = editor.send("session/fork", sessionId=parent, cwd="/", mcpServers=[])

        assert (await editor.error(fork))["data"] == {"path": "cwd"}
        assert sessions_on_disk(tmp_path) == {parent}


@pytest.mark.parametrize("session_id", ["", "unknown", "../../etc/passwd", "x" * 10_240])
@pytest.mark.parametrize("method", ["load", "resume", "fork", "close", "prompt", "delete"])
async def test_an_id_that_is_none_creates_nothing(method: str, session_id: str, tmp_path: Path) -> None:
    """Contracts 5: -32002 naming the id, cut short; deleting what never was succeeds."""
    params: dict[str, Any] = {"sessionId": session_id, "cwd": str(tmp_path), "mcpServers": []}
    async with connected(tmp_path, MemoryModel()) as editor:
        params["cwd"] = editor.cwd
        params["prompt"] = [{"type": "text", "text": "Hello."}]
        request = editor.send(f"session/{method}", **params)

        if method == "delete":
            assert await editor.result(request) == {}
        else:
            error = await editor.error(request)
            assert error["code"] == -32002
            assert error["data"]["sessionId"] == session_id[:200]
        assert sessions_on_disk(tmp_path) == set()
