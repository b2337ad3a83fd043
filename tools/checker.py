#!/usr/bin/env python3
"""`make checker`: pack the stand-alone checker into one file that any Python from 3.9 on runs as it is.

The same sources give the same bytes: names in order, no times, and nothing compressed, since zlib's output differs
between its versions.
"""

from __future__ import annotations

import hashlib
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "controller" / "offline"
PACKAGE = "fairtrial_check"
SHEBANG = b"#!/usr/bin/env python3\n"
BYTES_MAX = 2**20
MAIN = f"""import sys

if sys.version_info < (3, 9):
    sys.stderr.write("fairtrial-check needs Python 3.9 or later\\n")
    sys.exit(2)

from {PACKAGE}.__main__ import entry

sys.exit(entry())
"""


def pack(target: Path) -> bytes:
    """Write the archive and return its bytes. Raises ValueError when it has become larger than a megabyte."""
    members = {"__main__.py": MAIN.encode()}
    members.update({f"{PACKAGE}/{path.name}": path.read_bytes() for path in SOURCE.glob("*.py")})
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("wb") as stream:
        stream.write(SHEBANG)
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
            for name in sorted(members):
                member = zipfile.ZipInfo(name)  # of 1 January 1980, whatever the clock says
                member.create_system, member.external_attr = 3, 0o644 << 16
                archive.writestr(member, members[name])
    target.chmod(0o755)
    data = target.read_bytes()
    if len(data) > BYTES_MAX:
        raise ValueError(f"{target} has {len(data):,} bytes, more than {BYTES_MAX:,}")
    return data


def main() -> int:
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "fairtrial-check.pyz"
    data = pack(target)
    print(f"{target}: {len(data):,} bytes, sha256:{hashlib.sha256(data).hexdigest()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
