"""`macaron chat`, once and as a conversation."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from macaron.cli.chat import printable
from tests.cli.terminal import Terminal
from tests.harness import write_profile
from tests.processes import Home, Service, serving

Start = Callable[..., Terminal]
KEYS = f"ann:{'a' * 20}:chat\n"


def test_one_question_prints_the_specialist_and_the_answer(service: Service) -> None:
    done = service.home.run("chat", "@L1 @n=3 hello", "--url", service.url)
    assert (done.returncode, done.stdout, done.stderr) == (0, "L1 plain sugar shell\n", "")


def test_a_specialist_can_be_insisted_on(service: Service) -> None:
    done = service.home.run("chat", "--pin", "L3", "@L1 @n=2 hello", "--url", service.url)
    assert done.stdout == "L3 plain sugar\n"


def test_an_error_of_the_service_is_one_line(service: Service) -> None:
    done = service.home.run("chat", "--pin", "L9", "hello", "--url", service.url)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr == "macaron: `x-macaron-adapter` names 'L9'; the labels are L0, L1, L2, L3.\n"


def test_where_nothing_listens_the_remedy_is_told(service: Service) -> None:
    done = service.home.run("chat", "hello", "--url", "http://127.0.0.1:1")
    assert done.returncode == 1
    assert "Nothing answers at http://127.0.0.1:1; start the service with `macaron serve`" in done.stderr
    assert done.stderr.count("\n") == 1


def test_questions_are_read_from_a_pipe_too(service: Service) -> None:
    done = service.home.run("chat", "--url", service.url, typed="@n=1 one\n\n@n=2 two\n")
    assert [line for line in done.stdout.splitlines() if line] == ["L2 plain", "L2 plain sugar"]


def test_a_conversation_goes_on_until_ctrl_d(terminal: Start) -> None:
    chat = terminal("chat")
    chat.sees("you> ")
    chat.type("@L1 @n=2 hello\r")
    chat.sees("L1 plain sugar\n")
    chat.sees("you> ", times=2)
    chat.type("@L3 @n=1 again\r")
    chat.sees("L3 plain\n")
    chat.sees("you> ", times=3)
    chat.type("\x04")
    assert chat.ended() == 0


def test_ctrl_c_stops_an_answer_and_keeps_the_conversation(terminal: Start) -> None:
    chat = terminal("chat")
    chat.sees("you> ")
    chat.type("@n=900 @every=50 a long one\r")
    chat.sees("L2 plain sugar")
    chat.type("\x03")
    chat.sees("^C\n(stopped)\n")
    chat.sees("you> ", times=2)
    chat.type("@L1 @n=1 @every=0 short\r")
    chat.sees("L1 plain\n")
    chat.sees("you> ", times=3)
    chat.type("\x04")
    assert chat.ended() == 0


def test_ctrl_c_at_the_prompt_leaves(terminal: Start) -> None:
    chat = terminal("chat")
    chat.sees("you> ")
    assert chat.ended(press="\x03") == 0
    assert "Traceback" not in chat.shown


def test_an_error_does_not_end_the_conversation(terminal: Start) -> None:
    chat = terminal("chat", "--pin", "L9")
    chat.sees("you> ")
    chat.type("hello\r")
    chat.sees("the labels are L0, L1, L2, L3.\n")
    chat.sees("you> ", times=2)


def test_a_key_that_may_only_chat_is_enough(tmp_path: Path, service: Service) -> None:
    keys = tmp_path / "keys"
    keys.write_text(KEYS)
    keys.chmod(0o600)
    home = Home(tmp_path, MOL_API_KEY_FILE=str(keys))
    with serving(home, "--profile", str(write_profile(tmp_path, engine_of(service)))) as guarded:
        assert home.run("chat", "@n=2 hello", "--url", guarded.url).stdout == "plain sugar\n"
        wrong = home.run("chat", "hello", "--url", guarded.url, MACARON_API_KEY="b" * 20)
        assert "The key is not known" in wrong.stderr
        assert "MACARON_API_KEY" in wrong.stderr


def engine_of(service: Service) -> str:
    text = (service.home.folder / "profile.toml").read_text()
    return next(line.split('"')[1] for line in text.splitlines() if line.startswith("address"))


def test_control_characters_of_an_answer_do_not_reach_the_terminal() -> None:
    assert printable("a\x1b[2Jb\x07\x9b1mc\r\n\td é 你 👩\u200d🍳") == "a[2Jb1mc\n\td é 你 👩\u200d🍳"
