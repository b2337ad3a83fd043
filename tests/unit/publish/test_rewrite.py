from __future__ import annotations

import pytest

from controller.publish.rewrite import Names, printable, rewrite

NAMES = Names(users=("seth", "root"), hosts=("mybox-17",))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cc -I/home/seth/include", "cc -I<path>"),
        ("PATH=/usr/bin:/home/seth/bin", "PATH=/usr/bin:<path>"),
        ('open("/home/seth/x.py")', 'open("<path>")'),
        ("file:///home/seth/x", "<path>"),
        (">/srv/ci/out.log", "><path>"),
        ("/usr/../home/seth/x", "<path>"),
        ("/workspace/src/a.py:3", "<workspace>/src/a.py:3"),
        ("/workspaces/src/a.py", "<path>"),
        ("/home/agent/.codex", "<home>/.codex"),
        ("/var/lib/fairtrial/verify/repository/x.py", "<repository>/x.py"),
        ("/var/lib/fairtrial/verify/home", "<verifier>/home"),
        ("/tmp/build-1/x", "<tmp>/build-1/x"),
        ("/Users/seth/Library/x", "<path>"),
        ("~/notes and ~seth/notes", "<home>/notes and <home>/notes"),
        ("C:\\Users\\seth\\x.txt", "<path>"),
        ("C:\\\\Users\\\\seth", "<path>"),
        ("\\\\server\\share\\x", "<path>"),
        ("seth@mybox-17:~/x$ ls", "<email>:<home>/x$ ls"),
        ("mail anna.b+c@example.co.uk!", "mail <email>!"),
        ("by Seth on MYBOX-17", "by <user> on <host>"),
        ("10.1.2.3:80, fe80::1ff:fe23:4567:890a.", "<ip>:80, <ip>."),
        ("::ffff:10.1.2.3 and 2001:db8:0:1:1:1:1:1", "<ip> and <ip>"),
    ],
)
def test_places_and_persons_are_taken_out(text: str, expected: str) -> None:
    assert rewrite(text, NAMES) == expected


@pytest.mark.parametrize(
    "text",
    [
        "--- a/src/x.py\n+++ /dev/null",
        "#!/usr/bin/env python3",
        "https://example.com/a/b?c=/d",
        "../up and ./here and a/b/c",
        "</div><br/>",
        'href="/x"',
        "1/2 / 3 // 4",
        "a[::2], std::vector, 12:34:56, 1.2.3, 300.1.2.3",
        "127.0.0.1 ::1 0.0.0.0",
        "@property and x @ y",
        "the root of the tree, sethian",
    ],
)
def test_code_and_prose_stay(text: str) -> None:
    assert rewrite(text, NAMES) == text


def test_what_a_terminal_would_obey_is_escaped() -> None:
    assert printable("a\tb\nc\r\x1b[31m\u202e\u00e9\U0001f600\x7f\0") == (
        "a\tb\nc\\r\\x1b[31m\\u202e\\xe9\\U0001f600\\x7f\\x00"
    )
