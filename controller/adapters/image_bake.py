"""The steps of a bake: root file system, initrd, disk images. Each is one function that leaves files in a directory."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import tarfile
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from pydantic import Field

from controller.adapters.image_initrd import build_initrd, kernel_version
from controller.domain.record import Record
from controller.errors import ImageRecipeFailed, MachineUnsupported, MissingProgram

PROGRAMS: Final = ("mmdebstrap", "mke2fs", "qemu-img", "podman")
STEP_SECONDS_MAX: Final = 600  # the whole bake has ten minutes; a step that hangs must not wait for ever
RUNNER_UID: Final = 1000
SUBUID_FIRST: Final = 100_000
ROOTFS, KERNEL, INITRD, CA_KEY, HOST_KEY = "rootfs.qcow2", "vmlinuz", "initrd", "ssh_ca", "ssh_host_key.pub"
PACKAGES, HARNESSES, PROBE = "packages.txt", "harnesses.qcow2", "probe.tar"
GUEST_PROGRAMS: Final = ("serial_ssh.py", "read_regular.py")  # of controller/guest; the others travel with each attempt
PROBE_APPLETS: Final = ("cat", "dd", "echo", "env", "head", "id", "ls", "mount", "sh", "sleep", "stat", "true")


class BaseRecipe(Record):
    """`images/vm/recipe.toml`."""

    packages: list[str] = Field(min_length=1)
    rootfs_bytes: int = Field(ge=2**30)
    initrd_modules: list[str]


def read_recipe(path: Path) -> BaseRecipe:
    """Parse the recipe. Raises ImageRecipeFailed naming the file and the fault."""
    try:
        return BaseRecipe.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise ImageRecipeFailed(f"{path}: {error}") from error


def check_machine() -> None:
    """Raises MissingProgram or MachineUnsupported when this machine can't bake."""
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    if missing:
        raise MissingProgram(f"not installed: {', '.join(missing)}")
    if os.geteuid() != 0:
        raise MachineUnsupported(
            "baking images needs root, to own the files of the root file system",
            remedy="Run `fairtrial images build` as root; everything else runs as any user.",
        )


def bake_base(work: Path, out: Path, *, recipes: Path, guest: Sequence[Path], log: Path) -> None:
    """Root file system, kernel, initrd, SSH authority and host key into `out`. `work` is scratch space."""
    recipe = read_recipe(recipes / "recipe.toml")
    root = work / "root"
    files = work / "files"
    shutil.copytree(recipes / "files", files)
    authority = _write_authority(out / CA_KEY)
    (files / "etc/ssh/fairtrial_ca.pub").write_bytes(authority)
    (files / "usr/lib/fairtrial").mkdir(parents=True, exist_ok=True)
    for source in guest:
        shutil.copy(source, files / "usr/lib/fairtrial" / source.name)
    _bootstrap(root, files, recipe, customize=recipes / "customize.sh", log=log)
    shutil.copy(root / "boot" / f"vmlinuz-{kernel_version(root)}", out / KERNEL)
    init = (recipes / "init.sh").read_bytes()
    (out / INITRD).write_bytes(build_initrd(root, init=init, modules=recipe.initrd_modules))
    shutil.copy(root / "etc/ssh/ssh_host_ed25519_key.pub", out / HOST_KEY)
    (out / PACKAGES).write_text(_package_list(root / "var/lib/dpkg/status"), encoding="utf-8")
    _probe_rootfs(root / "usr/bin/busybox", out / PROBE)
    ext4_image(root, out / ROOTFS, size_bytes=recipe.rootfs_bytes, label="root", log=log)


def bake_harness_store(work: Path, out: Path, rootfs_tars: Mapping[str, Path], *, log: Path) -> None:
    """A read-only image store with one image `localhost/<name>` per root file system, into `out / harnesses.qcow2`.

    Ownership is shifted by the runner's subordinate ids, so that the rootless engine sees root where root was.
    """
    store = work / "store"
    with tempfile.TemporaryDirectory(
        prefix="fairtrial-"
    ) as run:  # podman refuses a run root of more than 50 characters
        podman = ("podman", "--root", str(store), "--runroot", run, "--storage-driver", "overlay")
        for name, tar in sorted(rootfs_tars.items()):
            run_step([*podman, "import", str(tar), f"localhost/{name}:latest"], log=log)
    # What this host's engine left for itself; the last says how it mounted, and the guest's would do the same.
    for leftover in (
        "libpod",
        "mounts",
        "tmp",
        "secrets",
        "userns.lock",
        "defaultNetworkBackend",
        "overlay/.has-mount-program",
    ):
        path = store / leftover
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    total = shift_ownership(store)
    size = max(2**28, total * 5 // 4 + 2**27)
    ext4_image(store, out / HARNESSES, size_bytes=size, label="harnesses", log=log)


def shift_ownership(tree: Path) -> int:
    """Map root to the runner and id n to its subordinate n-1, everywhere in the tree; returns the bytes it holds."""
    total = 0
    for directory, names, files in os.walk(tree):
        for name in [".", *(n for n in names if (Path(directory) / n).is_symlink()), *files]:
            path = Path(directory) / name if name != "." else Path(directory)
            status = path.lstat()
            total += status.st_blocks * 512
            os.lchown(path, _shifted(status.st_uid), _shifted(status.st_gid))
            if not stat.S_ISLNK(status.st_mode) and status.st_mode & (stat.S_ISUID | stat.S_ISGID):
                path.chmod(stat.S_IMODE(status.st_mode))  # lchown clears these two bits
    return total


def _shifted(number: int) -> int:
    return RUNNER_UID if number == 0 else SUBUID_FIRST + number - 1


def ext4_image(
    tree: Path | None, out: Path, *, size_bytes: int, label: str, log: Path, reserved_percent: int = 0
) -> None:
    """A qcow2 disk with one ext4 file system of the tree, without journal: every machine's disk is disposable.

    The reserved part is for whom the mount names; others see the disk as full before it.
    """
    raw = out.with_suffix(".raw")
    raw.unlink(missing_ok=True)
    with raw.open("wb") as file:
        file.truncate(size_bytes)
    source = [] if tree is None else ["-d", str(tree)]
    options = "lazy_itable_init=1,nodiscard,root_owner=0:0"
    features = "^has_journal,^resize_inode"
    command = [
        "mke2fs",
        "-q",
        "-F",
        "-t",
        "ext4",
        "-m",
        str(reserved_percent),
        "-O",
        features,
        "-E",
        options,
        "-L",
        label,
    ]
    run_step([*command, *source, str(raw)], log=log)
    run_step(["qemu-img", "convert", "-f", "raw", "-O", "qcow2", str(raw), str(out)], log=log)
    raw.unlink()


def run_step(argv: Sequence[str], *, log: Path, env: Mapping[str, str] | None = None) -> None:
    """Run one program with its output appended to the log. Raises ImageRecipeFailed naming both."""
    environment = {**os.environ, "LC_ALL": "C.UTF-8", **(env or {})}
    with log.open("ab") as file:
        file.write(f"$ {' '.join(argv)}\n".encode())
        file.flush()
        try:
            done = subprocess.run(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                env=environment,
                timeout=STEP_SECONDS_MAX,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise ImageRecipeFailed(f"{log}: {argv[0]} took more than {STEP_SECONDS_MAX} s") from error
    if done.returncode != 0:
        raise ImageRecipeFailed(f"{log}: {argv[0]} ended with exit code {done.returncode}")


def host_sources() -> tuple[str, list[Path]]:
    """The host's suite and the apt source files that name it. Raises MachineUnsupported off Debian."""
    release = dict(
        line.split("=", 1) for line in Path("/etc/os-release").read_text(encoding="utf-8").splitlines() if "=" in line
    )
    suite = release.get("VERSION_CODENAME", "").strip('"')
    if release.get("ID", "").strip('"') != "debian" or not suite:
        raise MachineUnsupported(
            "images are baked from Debian's archive, so the baking machine must run Debian 12 or 13"
        )
    apt = Path("/etc/apt")
    candidates = [apt / "sources.list", *sorted((apt / "sources.list.d").glob("*"))]
    named = [
        path
        for path in candidates
        if path.suffix in {".list", ".sources"}
        and path.is_file()
        and suite in (text := path.read_text(encoding="utf-8"))
        and "main" in text
    ]
    if not named:
        raise MachineUnsupported(f"no file in {apt} names the suite {suite}")
    return suite, named


def _bootstrap(root: Path, files: Path, recipe: BaseRecipe, *, customize: Path, log: Path) -> None:
    suite, sources = host_sources()
    command = ["mmdebstrap", "--mode=root", "--variant=apt", "--format=directory", "--architectures=amd64"]
    options = ['APT::Install-Recommends "false"', *host_fetch_options()]
    for option in options:
        command.append(f"--aptopt={option}")
    for path in ("/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*"):
        command.append(f"--dpkgopt=path-exclude={path}")
    command.append(f"--include={','.join(recipe.packages)}")
    command += [f"--customize-hook={customize}", suite, str(root), *map(str, sources)]
    # INITRD=No: the kernel's own initrd is not used, and making it takes longer than installing the kernel.
    run_step(command, log=log, env={"FAIRTRIAL_FILES": str(files), "INITRD": "No"})


def host_fetch_options() -> list[str]:
    """How this machine reaches its archive (proxies, date checks), which must not stay in the image."""
    dump = subprocess.run(["apt-config", "dump"], capture_output=True, text=True, check=False).stdout
    kept = []
    for line in dump.splitlines():
        key, _, value = line.rstrip(";").partition(" ")
        if (
            key.startswith("Acquire::")
            and any(word in key for word in ("Proxy", "Check-", "Retries", "CaInfo", "CAInfo"))
            and value != '""'
        ):
            kept.append(f"{key} {value}")
    return kept


def _probe_rootfs(busybox: Path, out: Path) -> None:
    """The smallest container image, with which a pool is tested before there is any harness."""
    with tarfile.open(out, "w") as tar:
        for name in ("bin", "dev", "etc", "proc", "run", "sys", "tmp"):
            tar.addfile(_tar_member(name, tarfile.DIRTYPE))
        member = _tar_member("bin/busybox", tarfile.REGTYPE)
        member.size = busybox.stat().st_size
        with busybox.open("rb") as file:
            tar.addfile(member, file)
        for name in PROBE_APPLETS:
            member = _tar_member(f"bin/{name}", tarfile.SYMTYPE)
            member.linkname = "busybox"
            tar.addfile(member)


def _tar_member(name: str, kind: bytes) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.mode = kind, 0o755
    return member


def _write_authority(path: Path) -> bytes:
    key = Ed25519PrivateKey.generate()
    path.touch(mode=0o600)
    path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()))
    return key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH) + b"\n"


def _package_list(status: Path) -> str:
    packages = []
    for block in status.read_text(encoding="utf-8").split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if ": " in line and not line.startswith(" "))
        if "Package" in fields:
            packages.append(f"{fields['Package']} {fields.get('Version', '?')}\n")
    return "".join(sorted(packages))
