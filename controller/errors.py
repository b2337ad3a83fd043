"""Every way fairtrial stops, who is to blame, what to do next, and the exit code.

    FairtrialError
    ├── OperatorError      64..79, 86, 89   the person who typed the command can mend it
    │   ├── InvalidPlan 64      InvalidTask 65        UnknownHarness 66     MissingImage 67
    │   ├── NotAuthorized 68    AuthorizationExpired 69  CapReached 70      RoundNotFound 71
    │   ├── InvalidInput 72     RoundHalted 73        NotPublishable 74     ImageRecipeFailed 75
    │   ├── PricesDisagree 76   UnsoundCard 77        ObservedModelMismatch 78  RateCardChanged 79
    │   ├── NotApproved 86      LeakFound 89
    ├── MachineError       80..89   this machine lacks something
    │   ├── MissingProgram 80   DiskFull 81           PortOccupied 82       MachineUnsupported 83
    │   ├── SealedKeyMissing 84  BeaconUnavailable 85
    ├── EvidenceError      87, 90..94  bytes that do not prove what they claim
    │   ├── NotCanonical 90     BadSignature 91       BundleRejected 92     TreeRejected 93
    │   ├── BeaconRejected 94   LogRewritten 87
    ├── SandboxError       95..96   a disposable VM failed us; never the harness's fault
    │   ├── SandboxLost 95      StaleGeneration 96
    ├── MeterError         98..99   the meter cannot vouch for a number
    │   ├── UnpricedUsage 98    LedgerUnavailable 99
    └── ControllerFault    100      our own defect

Codes below 64 belong to the shell and to argument parsing (2). `tests/words` proves the codes unique.
"""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar


class Blame(StrEnum):
    """The party responsible for a failure. Only sandbox, provider and controller failures may excuse an attempt."""

    HARNESS = "harness"
    TASK = "task"
    SANDBOX = "sandbox"
    PROVIDER = "provider"
    CONTROLLER = "controller"
    OPERATOR = "operator"
    MACHINE = "machine"
    EVIDENCE = "evidence"


class FairtrialError(Exception):
    """Root of the tree. `str(error)` names the thing and the fault; `remedy` says what to do next."""

    exit_code: ClassVar[int] = 1
    blame: ClassVar[Blame] = Blame.CONTROLLER
    remedy: str = "This is a defect of fairtrial: report this message and the command that gave it."

    def __init__(self, message: str, *, remedy: str | None = None) -> None:
        super().__init__(message)
        if remedy is not None:
            self.remedy = remedy


class OperatorError(FairtrialError):
    """The person who typed the command can mend it."""

    blame = Blame.OPERATOR


class InvalidPlan(OperatorError):
    exit_code = 64
    remedy = "Correct the named field in the plan and freeze again; nothing was written."


class InvalidTask(OperatorError):
    exit_code = 65
    blame = Blame.TASK
    remedy = "Correct the task directory, then run `fairtrial task check DIR`."


class UnknownHarness(OperatorError):
    exit_code = 66
    remedy = "Use one of the harnesses named above, or add an adapter under controller/harnesses/."


class MissingImage(OperatorError):
    exit_code = 67
    remedy = "Run `fairtrial images build`."


class NotAuthorized(OperatorError):
    exit_code = 68
    remedy = "Run `fairtrial authorize ROUND` with the caps you are ready to spend."


class AuthorizationExpired(OperatorError):
    exit_code = 69
    remedy = "Run `fairtrial authorize ROUND` again with a later expiry."


class CapReached(OperatorError):
    exit_code = 70
    remedy = "Publish the round as incomplete, or authorize a new round with a higher cap."


class RoundNotFound(OperatorError):
    exit_code = 71
    remedy = "Name a directory that `fairtrial freeze` wrote."


class InvalidInput(OperatorError):
    exit_code = 72
    remedy = "Correct the named file and field."


class RoundHalted(OperatorError):
    exit_code = 73
    remedy = "Read the halted cells with `fairtrial status ROUND`, decide each with `fairtrial resolve`, then resume."


class NotPublishable(OperatorError):
    exit_code = 74
    remedy = "Settle and analyse the round first; the message names the gate that is still open."


class ImageRecipeFailed(OperatorError):
    exit_code = 75
    remedy = "Read the build log named above; most often a package registry could not be reached."


class PricesDisagree(OperatorError):
    exit_code = 76
    remedy = "Look up each price at the provider's own page; nothing was written."


class UnsoundCard(OperatorError):
    exit_code = 77
    remedy = "Correct the card, or name the exception and its reason in the exceptions file."


class ObservedModelMismatch(OperatorError):
    """Another model answered than the lane names. The round stopped; what was measured of it is settled as it is."""

    exit_code = 78
    blame = Blame.PROVIDER
    remedy = (
        "Run `fairtrial settle ROUND` and publish the round as incomplete. Ask the provider which model the lane's "
        "name stands for now, name it in the plan's lane, and freeze a new round."
    )


class RateCardChanged(OperatorError):
    """The meter prices by another card than the manifest fixes. The round stopped before it spent under it."""

    exit_code = 79
    remedy = (
        "Run `fairtrial settle ROUND` and publish the round as incomplete. Find out who changed the card or the meter; "
        "prices that hold now belong into the rate card of a new round."
    )


class NotApproved(OperatorError):
    exit_code = 86
    remedy = (
        "One of the persons whom the manifest names reads that report and runs `fairtrial approve ROUND --key FILE`; "
        "then publish again. A report that changes needs a new approval."
    )


class LeakFound(OperatorError):
    exit_code = 89
    remedy = (
        "Nothing was published. Look at the named file: a value that is still valid must be revoked, and a round whose "
        "evidence holds one can't be released."
    )


class MachineError(FairtrialError):
    """This machine lacks something."""

    blame = Blame.MACHINE


class MissingProgram(MachineError):
    exit_code = 80
    remedy = "Run `make setup`, which installs the system packages fairtrial needs."


class DiskFull(MachineError):
    exit_code = 81
    remedy = "Free disk space, then run `fairtrial resume ROUND`; no acknowledged result is lost."


class PortOccupied(MachineError):
    exit_code = 82
    remedy = "Stop the program that holds the address, or name another one in the settings."


class MachineUnsupported(MachineError):
    exit_code = 83
    remedy = "Run `fairtrial doctor` to see what this machine can do."


class SealedKeyMissing(MachineError):
    """This machine has no key for the part of a sealed task that is wanted. Nothing of it was opened."""

    exit_code = 84
    remedy = "Work on a machine that holds the named key, or have the curators seal the task for the key of this one."


class BeaconUnavailable(MachineError):
    """Public randomness can't be had: it is not due yet, or too few relays answered."""

    exit_code = 85
    blame = Blame.PROVIDER
    remedy = "Run the same command again later, with other relays if you like; which relay answers decides nothing."


class EvidenceError(FairtrialError):
    """Bytes that do not prove what they claim."""

    blame = Blame.EVIDENCE


class NotCanonical(EvidenceError):
    exit_code = 90
    remedy = "Signed JSON must be RFC 8785 bytes without floats or duplicate keys; do not edit evidence by hand."


class BadSignature(EvidenceError):
    exit_code = 91
    remedy = "Check that you pinned the publisher's key; if you did, the evidence was changed."


class BundleRejected(EvidenceError):
    exit_code = 92
    remedy = "Do not rely on this bundle; ask its publisher for the original."


class LogRewritten(EvidenceError):
    """A log that is not the continuation of what was signed before. Nothing more of it may be signed."""

    exit_code = 87
    remedy = (
        "Keep every file as it is: the log or the signed state was changed, and both together show it. Restore the log "
        "from a copy, or treat the round as void."
    )


class TreeRejected(EvidenceError):
    """A harvested tree that is not well formed. A harness can cause it, so it is an outcome: a failed verdict."""

    exit_code = 93
    remedy = "Nothing to mend here: the attempt left a tree that can't be trusted, and its verdict is failed."


class BeaconRejected(EvidenceError):
    """A beacon, or a selection made from one, that does not prove what it claims."""

    exit_code = 94
    remedy = "Do not rely on this selection; ask its publisher for the signed record, or fetch the beacon yourself."


class SandboxError(FairtrialError):
    """A disposable VM failed us; never the harness's fault."""

    blame = Blame.SANDBOX


class SandboxLost(SandboxError):
    exit_code = 95
    remedy = "The attempt counts as an infrastructure fault and may be retried; see the machine's console log."


class StaleGeneration(SandboxError):
    exit_code = 96
    remedy = "A newer holder owns this lease; this controller must stop."


class MeterError(FairtrialError):
    """The meter cannot vouch for a number."""

    blame = Blame.PROVIDER


class UnpricedUsage(MeterError):
    exit_code = 98
    remedy = "Add the named class or model to the rate card and freeze a new round; unknown is not zero."


class LedgerUnavailable(MeterError):
    exit_code = 99
    blame = Blame.MACHINE
    remedy = "Look after the disk that holds the ledger; the meter admits nothing until it can write durably."


class ControllerFault(FairtrialError):
    exit_code = 100
