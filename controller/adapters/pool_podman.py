"""The container without the machine, on this host's own podman: for writing adapters and tasks quickly.

A "machine" is a container of the toolbox image without any network, which ends by itself when its lifetime is over; a
harness runs in a second container beside it. Both see one directory of the host as `/scratch`. The wall is only that of
a container, so results can't be published. The size of the disk is not enforced.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import docker

from controller.adapters.containers_docker import API_VERSION, CALL_SECONDS, DockerContainers
from controller.adapters.image_store import ImageStore
from controller.domain.instant import InstantMs
from controller.errors import MissingImage, MissingProgram, SandboxLost, StaleGeneration
from controller.ports.clock import Clock
from controller.ports.containers import ContainerExit, Containers, ContainerSpec, Mount
from controller.ports.pool import DestroyReceipt, ExecResult, Isolation, SandboxFacts, SandboxRole, SandboxSpec

LABEL: Final = "fairtrial.pool"
FACTS_LABEL: Final = "fairtrial.facts"
ROOTFS_LABEL: Final = "fairtrial.rootfs"
PREFIX: Final = "fairtrial-"
SCRATCH: Final = "/scratch"
EGRESS: Final = "/run/fairtrial/egress.sock"
COMMAND_SECONDS: Final = 120.0
IMPORT_SECONDS: Final = 600.0
ENGINE_SECONDS: Final = 20.0
ENGINE_IDLE_SECONDS: Final = 120  # then the engine of a controller that was killed ends by itself
POLL_SECONDS: Final = 0.05
FILES_MAX: Final = 20_000
PROCESSES: Final = 4096  # far above the limit of the control group, which is the one that counts
CGROUP_V2: Final = Path("/sys/fs/cgroup/cgroup.controllers")
READ_SCRIPT: Final = 'test -f "$1" && test ! -L "$1" && head -c "$2" "$1"'
WRITE_SCRIPT: Final = 'mkdir -p "$(dirname "$1")" && cat > "$1" && chmod "$2" "$1"'


class PodmanPool:
    """Leases containers on the local podman, as root or rootless."""

    name: Final = "podman"
    isolation: Final = Isolation.CONTAINER

    def __init__(self, store: ImageStore, state_dir: Path, clock: Clock) -> None:
        """Scratch directories and the engine's socket lie below `state_dir`; only its own containers are seen."""
        if shutil.which("podman") is None:
            raise MissingProgram("not installed: podman")
        self._store = store
        self._state = state_dir.absolute()
        self._clock = clock

    def lease(self, spec: SandboxSpec) -> PodmanSandbox:
        """A running container that answers. Raises SandboxLost, StaleGeneration or MissingImage."""
        found = self._facts(spec.name)
        if found is not None:
            if found.generation > spec.generation:
                raise StaleGeneration(f"{spec.name}: generation {found.generation} holds it, not {spec.generation}")
            if found.generation == spec.generation and found.alive:
                return PodmanSandbox(self, found)
            self.destroy(spec.name, generation=spec.generation)
        image = self._toolbox_image()
        now = self._clock.now()
        facts = SandboxFacts(
            name=spec.name,
            role=spec.role,
            generation=spec.generation,
            owner=spec.owner,
            created_at=now,
            expires_at=InstantMs(now + spec.lifetime_seconds * 1000),
            alive=True,
        )
        directory = self.directory(spec.name)
        (directory / "attempt").mkdir(parents=True, exist_ok=True)
        if spec.egress_socket is not None:
            (directory / "egress").write_text(spec.egress_socket, encoding="utf-8")
        command = ["run", "--detach", "--name", PREFIX + spec.name, "--network", "none", "--log-driver", "none"]
        command += ["--label", f"{LABEL}={self._state}", "--label", f"{FACTS_LABEL}={facts.model_dump_json()}"]
        command += ["--volume", f"{directory}:{SCRATCH}", "--env", "FAIRTRIAL_OWNER=0:0", "--env", f"HOME={SCRATCH}"]
        command += [
            "--env",
            f"FAIRTRIAL_EGRESS={EGRESS}",
            "--env",
            "FAIRTRIAL_UNENFORCED=disk_bytes",
            "--security-opt",
            "no-new-privileges",
        ]
        started = self.podman(*command, image, "sleep", str(spec.lifetime_seconds))
        if started.exit_code != 0:
            raise SandboxLost(f"{spec.name}: podman did not start it: {_last_line(started.stderr)}")
        return PodmanSandbox(self, facts)

    def find(self, name: str) -> PodmanSandbox | None:
        """The live container of that name, or None."""
        facts = self._facts(name)
        return PodmanSandbox(self, facts) if facts is not None and facts.alive else None

    def destroy(self, name: str, *, generation: int) -> DestroyReceipt:
        """Remove the machine, the harness's container beside it and their directory. Raises StaleGeneration."""
        facts = self._facts(name)
        if facts is not None and facts.generation > generation:
            raise StaleGeneration(f"{name}: generation {facts.generation} holds it, not {generation}")
        directory = self.directory(name)
        existed = facts is not None or directory.exists()
        for container in (name, PREFIX + name):
            self.podman("rm", "--force", "--time", "0", "--ignore", container)
        if directory.exists():
            # Rootless, files of the harness belong to subordinate ids that only the engine's namespace may remove.
            self.podman("unshare", "rm", "-rf", str(directory))
            shutil.rmtree(directory, ignore_errors=True)
        left = [word for word in (name, PREFIX + name) if self.podman("container", "exists", word).exit_code == 0]
        if left or directory.exists():
            raise SandboxLost(f"{name}: still there after its destruction: {', '.join(left) or directory}")
        proof = "container absent, harness container absent, scratch directory unlinked"
        return DestroyReceipt(
            name=name, generation=generation, existed=existed, destroyed_at=self._clock.now(), proof=proof
        )

    def inventory(self) -> tuple[SandboxFacts, ...]:
        """Every machine of this pool, dead ones included."""
        listed = self.podman("ps", "--all", "--filter", f"label={LABEL}={self._state}", "--format", "json")
        if listed.exit_code != 0:
            raise SandboxLost(f"podman does not list its containers: {_last_line(listed.stderr)}")
        found = [_facts_of(entry["Labels"], alive=entry["State"] == "running") for entry in json.loads(listed.stdout)]
        return tuple(sorted(found, key=lambda facts: facts.name))

    def reap(self, *, at: InstantMs) -> tuple[DestroyReceipt, ...]:
        """Destroy what has expired or is dead but not cleaned up."""
        gone = [facts for facts in self.inventory() if facts.expires_at <= at or not facts.alive]
        return tuple(self.destroy(facts.name, generation=facts.generation) for facts in gone)

    def directory(self, name: str) -> Path:
        """The host's side of a machine's `/scratch`."""
        return self._state / "machines" / name

    def podman(
        self,
        *arguments: str,
        stdin: bytes = b"",
        timeout_seconds: float = COMMAND_SECONDS,
        output_bytes_max: int = 2**20,
    ) -> ExecResult:
        """Run one podman command. Raises SandboxLost when the time is over."""
        command = ["podman", *arguments]
        try:
            done = subprocess.run(
                command, input=stdin, capture_output=True, timeout=timeout_seconds, check=False, env=self._environment()
            )
        except subprocess.TimeoutExpired as error:
            raise SandboxLost(f"podman {arguments[0]} took more than {timeout_seconds:g} s") from error
        cut = len(done.stdout) > output_bytes_max or len(done.stderr) > output_bytes_max
        stdout, stderr = done.stdout[:output_bytes_max], done.stderr[:output_bytes_max]
        return ExecResult(exit_code=done.returncode, stdout=stdout, stderr=stderr, truncated=cut)

    def ensure_image(self, name: str) -> str:
        """The local reference of a harness image, imported from its baked root file system when it is not there yet.

        Raises MissingImage.
        """
        tar = self._store.harness_rootfs(name)
        reference = f"localhost/{name}:latest"
        stamp = f"{tar.stat().st_mtime_ns}-{tar.stat().st_size}"
        present = self.podman("image", "inspect", "--format", f'{{{{index .Labels "{ROOTFS_LABEL}"}}}}', reference)
        if present.stdout.decode().strip() != stamp:
            change = f"LABEL {ROOTFS_LABEL}={stamp}"
            made = self.podman("import", "--change", change, str(tar), reference, timeout_seconds=IMPORT_SECONDS)
            if made.exit_code != 0:
                raise SandboxLost(f"{name}: podman did not import {tar}: {_last_line(made.stderr)}")
        return reference

    @contextmanager
    def engine(self) -> Iterator[str]:
        """Path of a socket at which this host's podman answers, for as long as the context is open."""
        self._state.mkdir(parents=True, exist_ok=True)
        path = self._state / f"engine-{self._clock.now()}.sock"
        process = subprocess.Popen(
            ["podman", "system", "service", f"--time={ENGINE_IDLE_SECONDS}", f"unix://{path}"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=self._environment(),
        )
        try:
            deadline = self._clock.monotonic_seconds() + ENGINE_SECONDS
            while not path.exists():
                if process.poll() is not None or self._clock.monotonic_seconds() > deadline:
                    raise SandboxLost("podman's service did not start")
                self._clock.sleep(POLL_SECONDS)
            yield str(path)
        finally:
            process.terminate()
            process.wait()
            path.unlink(missing_ok=True)

    def _environment(self) -> dict[str, str]:
        """The pool's own storage and settings, beside whatever else this host's podman is used for.

        Podman's defaults ask for more files and processes than a host may allow, and then start nothing. Where control
        groups are of version 1, crun refuses a mixed hierarchy, and runc is taken when it is installed.
        """
        self._state.mkdir(parents=True, exist_ok=True)
        containers, storage = self._state / "containers.conf", self._state / "storage.conf"
        files = min(resource.getrlimit(resource.RLIMIT_NOFILE)[1], FILES_MAX)
        limits = ["[containers]", f'default_ulimits = ["nofile={files}:{files}", "nproc={PROCESSES}:{PROCESSES}"]']
        if not CGROUP_V2.exists() and shutil.which("runc") is not None:
            limits += ["[engine]", 'runtime = "runc"']
        places = [f'graphroot = "{self._state}/storage"', f'rootless_storage_path = "{self._state}/storage"']
        drivers = ["[storage]", 'driver = "overlay"', f'runroot = "{self._state}/run"', *places]
        for path, lines in ((containers, limits), (storage, drivers)):
            text = "\n".join([*lines, ""])
            if not path.exists() or path.read_text(encoding="utf-8") != text:  # a runtime may have been installed since
                path.write_text(text, encoding="utf-8")
        return {**os.environ, "CONTAINERS_CONF": str(containers), "CONTAINERS_STORAGE_CONF": str(storage)}

    def _toolbox_image(self) -> str:
        names = self._store.harness_names()
        if not names:
            raise MissingImage("no harness image is baked, and the podman pool's machines are made of one")
        return self.ensure_image(names[0])

    def _facts(self, name: str) -> SandboxFacts | None:
        return next((facts for facts in self.inventory() if facts.name == name), None)


class PodmanSandbox:
    """One leased container."""

    def __init__(self, pool: PodmanPool, facts: SandboxFacts) -> None:
        self._pool = pool
        self._facts = facts

    @property
    def facts(self) -> SandboxFacts:
        """What the lease said."""
        return self._facts

    def exec(
        self, argv: Sequence[str], *, stdin: bytes = b"", timeout_seconds: float = 60.0, output_bytes_max: int = 2**20
    ) -> ExecResult:
        """Run one command as root of the container. Raises SandboxLost when it is gone or the time is over."""
        holder = self._pool.find(self._facts.name)
        if holder is None or holder.facts.generation != self._facts.generation:
            raise SandboxLost(f"{self._facts.name}: the container is gone, or a newer holder has its name")
        done = self._pool.podman(
            "exec",
            "--interactive",
            PREFIX + self._facts.name,
            *argv,
            stdin=stdin,
            timeout_seconds=timeout_seconds,
            output_bytes_max=output_bytes_max,
        )
        if done.exit_code == 125 or (done.exit_code != 0 and self._pool.find(self._facts.name) is None):
            raise SandboxLost(f"{self._facts.name}: {_last_line(done.stderr)}")
        return done

    def write_file(self, path: str, data: bytes, *, mode: int = 0o644) -> None:
        """Create a file, with its parent directories, owned by root."""
        done = self.exec(("sh", "-c", WRITE_SCRIPT, "write", path, f"{mode:o}"), stdin=data)
        if done.exit_code != 0:
            raise SandboxLost(f"{self._facts.name}: {path} was not written: {_last_line(done.stderr)}")

    def read_file(self, path: str, *, bytes_max: int) -> bytes:
        """Read a regular file. Raises SandboxLost when it is absent or larger than `bytes_max`."""
        done = self.exec(("sh", "-c", READ_SCRIPT, "read", path, str(bytes_max + 1)), output_bytes_max=bytes_max + 1)
        if done.exit_code != 0 or len(done.stdout) > bytes_max:
            raise SandboxLost(f"{self._facts.name}: {path} is absent, not a regular file or too large")
        return done.stdout

    @contextmanager
    def containers(self) -> Iterator[Containers]:
        """The host's engine, with this machine's paths translated to the host's."""
        if self._facts.role is not SandboxRole.RUNNER:
            raise SandboxLost(f"{self._facts.name}: a verifier has no container engine")
        with self._pool.engine() as socket_path:
            containers = _HostContainers(self._pool, self._pool.directory(self._facts.name), socket_path)
            try:
                yield containers
            finally:
                containers.close()

    def console(self) -> str:
        """A container has no console."""
        return ""


class _HostContainers(DockerContainers):
    """The Containers port on this host's engine: mounts of the machine's paths lead to the host's directories."""

    def __init__(self, pool: PodmanPool, directory: Path, socket_path: str) -> None:
        self._api: Any = docker.APIClient(base_url=f"unix://{socket_path}", version=API_VERSION, timeout=CALL_SECONDS)
        self._pool = pool
        self._directory = directory

    def run(self, spec: ContainerSpec, *, timeout_seconds: float, output_bytes_max: int = 2**20) -> ContainerExit:
        self._pool.ensure_image(spec.image)
        placed = ContainerSpec(
            name=spec.name,
            image=spec.image,
            argv=spec.argv,
            env=spec.env,
            mounts=tuple(
                Mount(source=self._host_path(mount.source), target=mount.target, writable=mount.writable)
                for mount in spec.mounts
            ),
            limits=spec.limits,
            seccomp_profile=self._host_path(spec.seccomp_profile) if spec.seccomp_profile else None,
        )
        return super().run(placed, timeout_seconds=timeout_seconds, output_bytes_max=output_bytes_max)

    def _host_path(self, path: str) -> str:
        if path == EGRESS:
            return (self._directory / "egress").read_text(encoding="utf-8")
        if path.startswith(f"{SCRATCH}/"):
            return str(self._directory / path.removeprefix(f"{SCRATCH}/"))
        raise SandboxLost(f"{path}: only {SCRATCH} and the egress socket can be used by a container of this pool")


def _facts_of(labels: dict[str, str], *, alive: bool) -> SandboxFacts:
    return SandboxFacts.model_validate_json(json.dumps({**json.loads(labels[FACTS_LABEL]), "alive": alive}))


def _last_line(data: bytes) -> str:
    lines = data.decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else "it said nothing"
