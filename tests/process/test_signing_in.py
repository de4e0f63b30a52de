"""Signing in while a server runs: the key comes from another process, as an editor's terminal brings it."""

import subprocess

from tests.process.server import Server

WAIT_S = 20.0


def run(server: Server, *argv: str, stdin: str = "") -> str:
    """What a subcommand says, which must succeed."""
    done = subprocess.run(
        server.argv(*argv),
        input=stdin,
        capture_output=True,
        text=True,
        cwd=server.home,
        env=server.env,
        timeout=WAIT_S,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout


def test_a_login_in_another_process_opens_the_next_session_and_a_logout_closes_the_door(
    server: Server,
) -> None:
    """Issue, sign-in: no restart; nothing but the protocol on stdout, and the key nowhere in it."""
    far = {"kind": "openai", "base_url": "https://models.invalid/v1", "api_key_env": "FAR_KEY"}
    server.settings({"format": 1, "agent": {"model": "far/m"}, "providers": {"far": far}})
    editor = server.launch()
    server.initialize()
    new = {"cwd": str(server.cwd), "mcpServers": []}

    before = editor.call("session/new", new)
    told = run(server, "login", "far", "--no-check", "--with-key-from-stdin", stdin="sk-secret\n")
    signed_in = editor.call("authenticate", {"methodId": "far-key"})
    opened = editor.call("session/new", new)
    gone = run(server, "logout")
    after = editor.call("session/new", new)

    place = server.state / "credentials.json"
    assert "FAR_KEY" in before["error"]["message"]
    assert f"is stored in {place}" in told
    assert signed_in["result"] == {}
    assert "sessionId" in opened["result"]
    assert gone == f"The key for far is gone from {place}.\n"
    assert (before["error"]["code"], after["error"]["code"]) == (-32000, -32000)
    assert server.leave() == 0
    assert "sk-secret" not in str([line.frame for line in editor.transcript])
    assert editor.stderr == ""


def test_a_keyring_that_nobody_unlocks_holds_up_neither_a_session_nor_the_doctor(server: Server) -> None:
    """Contracts 5: bounded; whoever looks for a key goes on without one, and leaves."""
    server.env["PYTHON_KEYRING_BACKEND"] = "tests.doubles.keyrings.LockedKeyring"
    editor = server.launch(flags=["--model", "openai/gpt-5"])
    server.initialize()

    told = editor.call("session/new", {"cwd": str(server.cwd), "mcpServers": []})
    doctor = subprocess.run(
        server.argv("--model", "openai/gpt-5", "doctor", "--offline"),
        capture_output=True,
        text=True,
        cwd=server.home,
        env=server.env,
        timeout=WAIT_S,
        check=False,
    )

    assert told["error"]["code"] == -32000
    assert doctor.returncode == 1
    assert "FAIL  key" in doctor.stdout
    assert server.leave() == 0
