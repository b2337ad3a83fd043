"""Judge one patch inside the verifier machine. Runs as its root; standard library only, 3.9+.

Usage: judge.py ORDER.json. One line of JSON on standard output is the report (`fairtrial.judge/2`); the exit code is 0
whenever there is a report.

1. Apply the patch to a fresh copy of the base with a git directory of our own, and walk the result without git.
2. Start the subject (the patched code under the hidden driver) as a user who owns nothing here. It gets the inputs on
   standard input and answers on a pipe. The expected values stay in this process: nothing that the subject can read,
   patch, raise, print or overwrite tells it what the answers should be.
3. When the subject ends, by itself or by the clock, kill every process of its user, and only then compare.
"""

from __future__ import annotations

import hashlib
import json
import os
import resource
import selectors
import signal
import stat
import subprocess
import sys
import time
from typing import Any, Dict, List, NoReturn, Optional, Tuple

Fields = Dict[str, Any]

REPORT_SCHEMA = "fairtrial.judge/2"
OUTPUT_BYTES_MAX = 4 * 2**20
FILE_BYTES_MAX = 64 * 2**20  # what the subject may write into one file
PROCESSES_MAX = 256
DESCRIPTORS_MAX = 512
KILL_ROUNDS_MAX = 100
POLL_SECONDS = 0.02
CGROUPS = "/sys/fs/cgroup"
GROUP = CGROUPS + "/fairtrial-subject"

GIT_ENV = {
    "PATH": "/usr/bin:/bin",
    "HOME": "/nonexistent",
    "LC_ALL": "C",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
}
GIT_SETTINGS = ("core.fsmonitor=false", "core.hooksPath=/dev/null", "core.autocrlf=false", "core.fileMode=true")


def git(order: Fields, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    """Run git on our own git directory with the repository as its work tree."""
    settings = [part for setting in GIT_SETTINGS for part in ("-c", setting)]
    place = ["--git-dir=" + order["git_dir"], "--work-tree=" + order["repository"]]
    return subprocess.run(
        ["/usr/bin/git", *settings, *place, *arguments],
        cwd=order["repository"], env=GIT_ENV, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, timeout=order["seconds"], check=False,
    )  # fmt: skip


def apply_patch(order: Fields) -> Tuple[bool, str]:
    """Apply the patch; returns (applied, detail)."""
    if order["patch"] is None:
        return True, "no patch"
    applied = git(order, "apply", "--whitespace=nowarn", order["patch"])
    return applied.returncode == 0, applied.stdout.decode(errors="replace")[-300:]


def tree_digest(root: str) -> Optional[str]:
    """The digest that controller.domain.tree.tree_digest gives, from a walk of the files; None if something is odd."""
    found = []
    for directory, names, files in os.walk(os.fsencode(root), followlinks=False):
        for name in names + files:
            path = os.path.join(directory, name)
            status = os.lstat(path)
            if stat.S_ISDIR(status.st_mode):
                continue
            if stat.S_ISLNK(status.st_mode):
                mode, data = b"120000", os.readlink(path)
            elif stat.S_ISREG(status.st_mode):
                mode = b"100755" if status.st_mode & 0o100 else b"100644"
                with open(path, "rb") as source:
                    data = source.read()
            else:
                return None
            found.append((os.path.relpath(path, os.fsencode(root)), mode, hashlib.sha256(data).hexdigest().encode()))
    total = hashlib.sha256()
    for path, mode, digest in sorted(found):
        total.update(mode + b" " + digest + b" " + path + b"\0")
    return "sha256:" + total.hexdigest()


def make_group(memory_bytes: int) -> None:
    """Bound what all processes of the subject hold together, by a control group. Raises OSError when it fails."""
    os.makedirs(GROUP, exist_ok=True)
    for name, value in (
        ("memory.max", memory_bytes),
        ("memory.oom.group", 1),
        ("pids.max", PROCESSES_MAX),
    ):
        with open(os.path.join(GROUP, name), "w") as limit:
            limit.write(str(value))
    with open(os.path.join(GROUP, "memory.max")) as limit:
        if int(limit.read()) > memory_bytes:
            raise OSError("the memory limit was not taken")


def become(uid: int, gid: int, memory_bytes: Optional[int]) -> None:
    """In the child: take the limits while still root, then become the unprivileged user for good."""
    if memory_bytes is not None:
        with open(os.path.join(GROUP, "cgroup.procs"), "w") as members:
            members.write("0")  # this process
    os.umask(0o077)
    for limit, value in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, FILE_BYTES_MAX),
        (resource.RLIMIT_NPROC, PROCESSES_MAX),
        (resource.RLIMIT_NOFILE, DESCRIPTORS_MAX),
    ):
        resource.setrlimit(limit, (value, value))
    with open("/proc/self/oom_score_adj", "w") as score:
        score.write("1000")  # when memory runs out the subject dies, never the judge
    drop_to(uid, gid)


def drop_to(uid: int, gid: int) -> None:
    """Become the user, with no way back and no other group."""
    os.setgroups([])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)


def run_subject(order: Fields, inputs: bytes) -> Tuple[bytes, Optional[int], str]:
    """Run the subject on the inputs. Returns its output, its exit code (None when it was killed) and a fault or ""."""
    home, memory_bytes = order["home"], order["memory_bytes"]
    if memory_bytes is not None:
        make_group(memory_bytes)
    os.makedirs(home, mode=0o700)
    os.chown(home, order["uid"], order["gid"])
    sheet = os.open(order["inputs"], os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    os.write(sheet, inputs)
    os.close(sheet)
    with open(order["inputs"], "rb") as stdin:
        subject = subprocess.Popen(
            ["/usr/bin/setpriv", "--no-new-privs", "--", *order["subject"]],
            stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, close_fds=True, cwd=home,
            env={"PATH": "/usr/bin:/bin", "HOME": home, "TMPDIR": home, "LANG": "C.UTF-8"},
            start_new_session=True, preexec_fn=lambda: become(order["uid"], order["gid"], memory_bytes),
        )  # fmt: skip
    output, fault = read_output(subject, time.monotonic() + order["seconds"])
    ended = subject.poll()
    if not kill_user(order["uid"], order["gid"]):
        fault = "its processes can't be killed"
    return output, ended, fault


def read_output(subject: subprocess.Popen[bytes], deadline: float) -> Tuple[bytes, str]:
    """What the subject's own process printed until it ended; a descendant that keeps the pipe open is not awaited."""
    assert subject.stdout is not None
    output = bytearray()
    is_open = True
    with selectors.DefaultSelector() as selector:
        selector.register(subject.stdout, selectors.EVENT_READ)
        while True:
            has_ended = subject.poll() is not None
            is_ready = is_open and bool(selector.select(0 if has_ended else POLL_SECONDS))
            if is_ready:
                chunk = os.read(subject.stdout.fileno(), 65536)
                is_open = chunk != b""
                output += chunk
            if has_ended and not (is_ready and is_open):
                return bytes(output), ""
            if len(output) > OUTPUT_BYTES_MAX:
                return bytes(output), "it printed more than %d bytes" % OUTPUT_BYTES_MAX
            if time.monotonic() >= deadline:
                return bytes(output), "it did not end in time"
            if not is_open:
                time.sleep(POLL_SECONDS)


def kill_user(uid: int, gid: int) -> bool:
    """Kill every process of the user. False when some can't be killed."""
    for _ in range(KILL_ROUNDS_MAX):
        child = os.fork()
        if child == 0:
            try:
                drop_to(uid, gid)
                os.kill(-1, signal.SIGKILL)  # all processes of this user except this one, at once
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        if not living(uid):
            return True
        time.sleep(POLL_SECONDS)
    return False


def living(uid: int) -> bool:
    """True while a process of the user is neither gone nor a zombie."""
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open("/proc/%s/status" % name) as status:
                fields = dict(line.rstrip("\n").split(":", 1) for line in status if ":" in line)
        except OSError:
            continue
        if fields.get("Uid", "").split()[:1] == [str(uid)] and fields.get("State", "").strip()[:1] not in ("Z", "X"):
            return True
    return False


def unique(pairs: List[Tuple[str, Any]]) -> Fields:
    """Refuse an object that names a field twice."""
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ValueError("repeated key")
    return fields


def refuse(text: str) -> NoReturn:
    """Refuse NaN and the infinities."""
    raise ValueError(text)


def read_answers(output: bytes, count: int) -> List[Fields]:
    """Answers by case number. Raises ValueError when the output is not one strict answer for each case, in order."""
    lines = output.split(b"\n")
    if lines.pop() != b"":
        raise ValueError("the last answer is cut off")
    if len(lines) > count:
        raise ValueError("there are more answers than cases")
    answers: List[Fields] = []
    for number, line in enumerate(lines):
        answer = json.loads(line.decode(), object_pairs_hook=unique, parse_constant=refuse)
        if not isinstance(answer, dict) or answer.pop("case", None) != number or len(answer) != 1:
            raise ValueError("answer %d is not for its case" % number)
        if answer.keys() - {"value", "raised"}:
            raise ValueError("answer %d is neither a value nor an error" % number)
        answers.append(answer)
    return answers


def is_same(expected: Any, actual: Any) -> bool:
    """Equal in type and value at every depth: 1, 1.0 and true differ, and so do 0.0 and -0.0."""
    if type(expected) is not type(actual):
        return False
    if isinstance(expected, dict):
        return expected.keys() == actual.keys() and all(is_same(expected[key], actual[key]) for key in expected)
    if isinstance(expected, list):
        return len(expected) == len(actual) and all(map(is_same, expected, actual))
    if isinstance(expected, float):
        return repr(expected) == repr(actual)
    return bool(expected == actual)


def judge(order: Fields) -> Fields:
    """The report of one order."""
    report: Fields = {"schema_version": REPORT_SCHEMA, "passed": [], "failed": [], "exit_code": None}
    report["applied"], report["detail"] = apply_patch(order)
    report["tree_matches"] = report["applied"] and tree_digest(order["repository"]) == order["tree_digest"]
    if not report["tree_matches"]:
        return report
    with open(order["cases"], "rb") as source:
        cases = json.load(source)["cases"]
    sheet = "".join(json.dumps({"case": number, "input": case["input"]}) + "\n" for number, case in enumerate(cases))
    output, ended, fault = run_subject(order, sheet.encode())
    report["exit_code"] = ended
    try:
        answers = read_answers(output, len(cases))
    except (ValueError, RecursionError) as error:
        answers, fault = [], fault or "its output is not a list of answers: %s" % str(error)[:100]
    if not fault and (ended != 0 or len(answers) < len(cases)):
        fault = "it ended with code %s after %d of %d answers" % (ended, len(answers), len(cases))
    for number, case in enumerate(cases):
        is_right = number < len(answers) and is_same(case["expected"], answers[number])
        report["passed" if is_right and not fault else "failed"].append(case["id"])
    report["detail"] = fault
    return report


def main(order_path: str) -> None:
    """Read the order, print the report."""
    os.umask(0o022)
    with open(order_path, "rb") as source:
        order = json.load(source)
    line = json.dumps(judge(order)) + "\n"
    sys.stdout.write(line)
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1])
