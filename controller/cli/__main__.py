"""`fairtrial` and `python -m controller.cli`: the one place that knows about exiting."""

from __future__ import annotations

import errno
import os
import sys
from typing import Final

import typer

from controller.cli import render
from controller.cli.verbs import app
from controller.errors import ControllerFault, DiskFull, FairtrialError, InvalidInput, MachineUnsupported

INTERRUPTED: Final = 130  # what a shell reports for Ctrl-C
CLOSED_PIPE: Final = 141  # and for a program whose reader, such as `head`, has left


def main(arguments: list[str]) -> int:
    """Run one command; the exit code. A traceback never reaches a user unless FAIRTRIAL_DEBUG asks for it."""
    try:
        command = typer.main.get_command(app)
        code = command.main(args=arguments, prog_name="fairtrial", standalone_mode=False)
        sys.stdout.flush()
        return int(code or 0)
    except FairtrialError as fault:
        return render.error(fault)
    except KeyboardInterrupt:
        render.note("fairtrial: interrupted. Attempts in flight go on; `fairtrial resume ROUND` takes them up.")
        return INTERRUPTED
    except typer.Exit as leave:
        return leave.exit_code
    except typer.Abort:
        return 1
    except Exception as fault:
        return _foreign(fault)


def _foreign(fault: Exception) -> int:
    """Usage errors from the parser, and what we failed to foresee."""
    show = getattr(fault, "show", None)
    if callable(show):
        show(file=sys.stderr)
        return int(getattr(fault, "exit_code", 2))
    if isinstance(fault, OSError) and fault.errno in (errno.ENOSPC, errno.EDQUOT):
        return render.error(DiskFull(f"no space left on the device: {fault.filename or 'unknown file'}"))
    if isinstance(fault, MemoryError):
        remedy = "Give the work a machine with more memory, or give it less to do at once."
        return render.error(MachineUnsupported("this machine's memory does not suffice", remedy=remedy))
    if isinstance(fault, BrokenPipeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else Python complains once more as it exits
        return CLOSED_PIPE
    if isinstance(fault, OSError) and fault.filename is not None:
        said = f"{fault.filename}: {fault.strerror}"
        remedy = "Look at the named path: what lies there, and whether it is yours."
        return render.error(InvalidInput(said, remedy=remedy))
    if os.environ.get("FAIRTRIAL_DEBUG"):
        raise fault
    return render.error(
        ControllerFault(
            f"{type(fault).__name__}: {fault}",
            remedy="This is a defect of fairtrial. Run again with FAIRTRIAL_DEBUG=1 and report the traceback.",
        )
    )


def entry() -> None:
    """The console script."""
    code = main(sys.argv[1:])
    if code == INTERRUPTED:
        # Threads of attempts in flight would keep the process for up to half an hour; being killed is safe by design.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


if __name__ == "__main__":
    entry()
