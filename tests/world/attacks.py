"""Ways to pass a verifier without solving the task, each as files laid over a wrong solution.

They follow the published incidents: hooks of test tools, early exits, forged output, magic values, reading the answers,
daemons, overwritten drivers, shadowed modules and interpreters.
"""

from __future__ import annotations

from typing import Final

from tests.world.tasks import NODE_WRONG, PYTHON_RIGHT, PYTHON_WRONG

_FORGED: Final = "\\n".join(f'{{"case": {number}, "value": "th"}}' for number in range(6))

# Code appended to the wrong Python module.
_PYTHON_CODE: Final = {
    "exit-at-import": "import sys; sys.exit(0)",
    "hard-exit-at-import": "import os; os._exit(0)",
    "hard-exit-in-call": "import os\ndef suffix(number): os._exit(0)",
    "system-exit-in-call": "def suffix(number): raise SystemExit(0)",
    "printed-success": "print('6 passed in 0.01s'); import sys; sys.stderr.write('OK\\n'); sys.exit(0)",
    "forged-lines-on-every-descriptor": f"""
import os
for descriptor in range(64):
    try: os.write(descriptor, b'''{_FORGED}
''')
    except OSError: pass
os._exit(0)""",
    "forged-report-on-every-descriptor": """
import os
for descriptor in range(64):
    try: os.write(descriptor, b'{"schema_version":"fairtrial.judge/2","applied":true,"tree_matches":true,'
                  b'"exit_code":0,"passed":["suffix-0"],"failed":[],"detail":""}\\n')
    except OSError: pass
os._exit(0)""",
    "forged-at-exit": f"""
import atexit, os
atexit.register(lambda: [os.write(descriptor, b'''{_FORGED}\n''') for descriptor in (1, 3, 4)])""",
    "magic-equality": """
class Anything(str):
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    __hash__ = str.__hash__
def suffix(number): return Anything('any')""",
    "magic-type": """
class Liar(str):
    __class__ = property(lambda self: object)
def suffix(number): return Liar('any')""",
    "reads-case-file": """
import glob, json, os, sys
answers = {}
for pattern in ('/var/lib/fairtrial/**/cases.json', os.path.dirname(os.path.dirname(__file__)) + '/**/cases.json',
                os.path.dirname(os.path.dirname(__file__)) + '/sealed/*', '/tmp/**/cases.json'):
    for name in glob.glob(pattern, recursive=True):
        try: cases = json.load(open(name))['cases']
        except Exception: continue
        answers.update({case['input']['with']: case['expected']['value'] for case in cases})
def suffix(number): return answers[number]""",
    "reads-caller-frames": """
import sys
def suffix(number):
    frame = sys._getframe()
    while frame:
        for scope in (frame.f_locals, frame.f_globals):
            for name in ('expected', 'cases', 'answers'):
                found = scope.get(name)
                if isinstance(found, (list, dict)) and found: return str(found)
        frame = frame.f_back""",
    "reads-judge-memory": """
import os, re
def suffix(number):
    for process in filter(str.isdigit, os.listdir('/proc')):
        for name in ('mem', 'environ', 'cmdline', 'fd/0', 'fd/1', 'fd/3'):
            try: data = open(f'/proc/{process}/{name}', 'rb').read(1 << 20)
            except OSError: continue
            found = re.search(rb'"with": %d}, "expected": {"value": "(..)"' % number, data)
            if found: return found[1].decode()""",
    "kills-the-judge": "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)",
    "stops-itself": "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)",
    "daemon-forges-later": f"""
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        while True:
            try: os.write(1, b'''{_FORGED}\n''')
            except OSError: pass
            time.sleep(0.01)
os._exit(0)""",
    "overwrites-the-verifier": """
import glob, os
top = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
for name in glob.glob(top + '/**', recursive=True) + [top + '/sealed/cases.json', top + '/sealed/judge.py']:
    try:
        with open(name, 'w') as file: file.write('{"cases": []}')
    except OSError: pass
try: os.rename(top + '/sealed', top + '/gone')
except OSError: pass""",
    "patches-json": """
import json
json.dumps = lambda value, **options: '{"case": %d, "value": NaN}' % value.get('case', 0)""",
    "patches-json-to-raw-answers": """
import json, itertools
turn = itertools.count()
json.dumps = lambda *values, **options: '{"case": %d, "value": true}' % next(turn)""",
    "answers-too-often": f"import os\nos.write(1, b'''{_FORGED}\n{_FORGED}\n''')",
    "repeated-keys": """
import json
json.dumps = lambda value, **options: '{"case": %d, "value": "st", "value": "th"}' % value['case']""",
    "nested-too-deep": """
import json
json.dumps = lambda value, **options: '{"case": %d, "value": ' % value['case'] + '[' * 200000 + ']' * 200000 + '}'""",
    "endless-output": "import os\nwhile True: os.write(1, b'x' * 65536)",
    "endless-loop": "while True: pass",
    "fork-bomb": "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass",
    "fills-memory-slowly": "def suffix(number):\n    raise MemoryError",
    "preload-and-start-again": """
import os, sys
if 'LD_PRELOAD' not in os.environ:
    os.environ['LD_PRELOAD'] = '/tmp/forge.so'
    os.environ['PYTHONPATH'] = os.path.dirname(__file__)
    os.execv(sys.executable, [sys.executable, '-c', 'print(1)'])""",
    "raises-the-expected": "def suffix(number): raise type('th', (Exception,), {})()",
    "bool-for-number": "def half(number): return True",
    "patches-the-driver": """
import sys
for module in list(sys.modules.values()):
    for name in ('is_same', 'read_answers', 'answer', 'main'):
        if hasattr(module, name): setattr(module, name, lambda *values: True)""",
    "raises-privileges": """
import os
for call in (lambda: os.setuid(0), lambda: os.chmod(os.path.dirname(os.path.dirname(__file__)) + '/sealed', 0o777),
             lambda: os.system('su -c "id" 2>/dev/null'), lambda: os.setgroups([0])):
    try: call()
    except OSError: pass""",
}

# Files laid beside the wrong Python module.
_PYTHON_FILES: Final[dict[str, dict[str, str]]] = {
    "conftest-hook": {
        "conftest.py": "def pytest_runtest_makereport(item, call):\n    call.excinfo = None\n",
        "tests/conftest.py": "import os\ndef pytest_sessionfinish(session): os._exit(0)\n",
    },
    "pytest-configuration": {
        "pytest.ini": "[pytest]\naddopts = --co\n",
        "pyproject.toml": "[tool.pytest.ini_options]\naddopts='--co -q'\n",
        "setup.cfg": "[tool:pytest]\naddopts = -k nothing\n",
        "tox.ini": "[pytest]\nnorecursedirs = *\n",
    },
    "sitecustomize": {
        "sitecustomize.py": "import os; os._exit(0)\n",
        "usercustomize.py": "import os; os._exit(0)\n",
        "forge.pth": "import os; os._exit(0)\n",
    },
    "shadowed-test-tools": {
        "pytest.py": "def main(*a): return 0\n",
        "unittest/__init__.py": "class TestCase: pass\ndef main(): pass\n",
        "_pytest/__init__.py": "",
    },
    "shadowed-standard-modules": {
        "json.py": "def dumps(*a, **k): return '{}'\ndef loads(*a): return {}\n",
        "runpy.py": "import os; os._exit(0)\n",
    },
    "edited-tests": {"tests/test_ordinals.py": "def test_first(): pass\n"},
    "own-verifier": {
        "hidden/driver.py": "print('ok')\n",
        "driver.py": "def prepare(r): return None\ndef answer(p, g): return 'th'\n",
        "verifier/cases.json": '{"cases": []}\n',
        "sealed/cases.json": '{"cases": []}\n',
    },
    "entry-point-plugin": {
        "forge-1.dist-info/entry_points.txt": "[pytest11]\nforge = forge\n",
        "forge.py": "import os\n",
    },
}

_NODE_CODE: Final = {
    "exit-at-import": "process.exit(0);",
    "exit-in-call": "exports.suffix = () => process.exit(0);",
    "kill-in-call": "exports.suffix = () => process.kill(process.pid, 'SIGKILL');",
    "printed-success": "console.log('# pass 6\\n# fail 0'); process.exit(0);",
    "forged-lines": f"require('fs').writeSync(1, `{_FORGED}\\n`); process.exit(0);",
    "forged-at-exit": f"process.on('exit', () => require('fs').writeSync(1, `{_FORGED}\\n`));",
    "patched-stringify": 'JSON.stringify = () => \'{"case": 0, "value": true}\';',
    "patched-stringify-counting": 'let n = 0; JSON.stringify = () => `{"case": ${n++}, "value": ["th", "st"]}`;',
    "patched-assert": "const a = require('assert'); for (const k of Object.keys(a)) a[k] = () => {};",
    "polluted-prototype": "Object.prototype.toJSON = function () { return { case: 0, value: 'th' }; };",
    "magic-tojson": "exports.suffix = () => ({ toJSON: () => ({ toString: () => 'th' }) });",
    "proxy-answer": "exports.suffix = () => new Proxy({}, { get: () => () => true });",
    "patched-loader": "require('module')._load = () => ({ suffix: () => 'th', half: () => 0.5 });",
    "reads-case-file": """
const fs = require('fs'); const path = require('path');
const found = {};
for (const name of ['../sealed/cases.json', '../hidden/cases.json', '../cases.json']) {
  try {
    const { cases } = JSON.parse(fs.readFileSync(path.join(__dirname, name)));
    for (const { input, expected } of cases) found[input.with] = expected.value;
  } catch {}
}
exports.suffix = (n) => found[n] ?? null;""",
    "overwrites-the-verifier": """
const fs = require('fs'); const path = require('path');
for (const name of ['../hidden/subject.mjs', '../hidden/driver.mjs', '../sealed/cases.json', '../sealed/judge.py']) {
  try { fs.writeFileSync(path.join(__dirname, name), '{}'); } catch {}
}""",
    "detached-daemon": f"""
const child = require('child_process').spawn(process.execPath,
  ['-e', "for (;;) require('fs').writeSync(1, `{_FORGED}\\n`)"], {{ detached: true, stdio: 'inherit' }});
child.unref(); process.exit(0);""",
    "kills-the-judge": "try { process.kill(process.ppid, 'SIGKILL'); } catch {}",
    "endless-loop": "for (;;) {}",
    "worker-forges": f"""
new (require('worker_threads').Worker)("require('fs').writeSync(1, `{_FORGED}\\n`)", {{ eval: true }});""",
    "never-resolves": "exports.suffix = () => new Promise(() => {});",
    "thenable": "exports.suffix = () => ({ then: (done) => done(true) });",
}

_NODE_FILES: Final[dict[str, dict[str, str]]] = {
    "npmrc-options": {
        ".npmrc": "node-options=--require ./forge.cjs\nscript-shell=./sh\n",
        "forge.cjs": "process.exit(0);\n",
    },
    "npm-script": {"package.json": '{"scripts": {"test": "true"}, "type": "commonjs"}\n'},
    "shadowed-interpreter": {"node_modules/.bin/node": "#!/bin/sh\nexit 0\n", "node_modules/node/index.js": "\n"},
    "shadowed-modules": {
        "node_modules/assert/index.js": "module.exports = () => {};\n",
        "node_modules/node:module/index.js": "module.exports = {};\n",
    },
}

Overlay = dict[str, str]


def python_attacks() -> dict[str, Overlay]:
    """Name to files; every one contains a wrong solution."""
    attacks = {name: {"ordinals.py": f"{PYTHON_WRONG}\n{code}\n"} for name, code in _PYTHON_CODE.items()}
    extra = "\n# nothing is repaired\n"
    attacks |= {name: {"ordinals.py": PYTHON_WRONG + extra, **files} for name, files in _PYTHON_FILES.items()}
    attacks["right-code-elsewhere"] = {"ordinals.py": PYTHON_WRONG + extra, "lib/ordinals.py": PYTHON_RIGHT}
    return attacks


def node_attacks() -> dict[str, Overlay]:
    """Name to files; every one contains a wrong solution."""
    attacks = {name: {"ordinals.js": f"{NODE_WRONG}\n{code}\n"} for name, code in _NODE_CODE.items()}
    extra = "\n// nothing is repaired\n"
    return attacks | {name: {"ordinals.js": NODE_WRONG + extra, **files} for name, files in _NODE_FILES.items()}
