"""One beacon from several relays: ask, verify, compare."""

from __future__ import annotations

from collections.abc import Sequence

from controller.adapters.bls_arkworks import ArkworksSignatures
from controller.domain.beacon import Beacon, Chain, read_beacon
from controller.domain.instant import instant_text
from controller.errors import BeaconRejected, BeaconUnavailable
from controller.evidence.holdout import RELAYS, RelayAnswer, relay_url
from controller.evidence.holdout_check import check_beacon
from controller.ports.clock import Clock
from controller.ports.relays import Relays


def gather(
    relays: Sequence[str], chain: Chain, number: int, clock: Clock, port: Relays
) -> tuple[Beacon, tuple[RelayAnswer, ...], tuple[str, ...]]:
    """The beacon, the answers of three relays that agree on it, and the faults of the others.

    A relay that fails or answers what the network did not sign is as good as missing and may be asked again: there is
    one valid signature per round, so nothing can be gained by it. Two valid ones mean that the network's key is lost.
    """
    due = chain.due_at(number)
    if clock.now() < due:
        raise BeaconUnavailable(f"round {number} of {chain.name} is due {instant_text(due)}")
    signatures = ArkworksSignatures()
    found: dict[Beacon, list[RelayAnswer]] = {}
    faults: list[str] = []
    for relay in relays:
        try:
            body = port.fetch(relay_url(relay, chain, number))
            beacon = read_beacon(body, chain, number, "answer")
            check_beacon(beacon, chain, signatures)
        except (BeaconUnavailable, BeaconRejected) as fault:
            faults.append(f"{relay}: {fault}")
        else:
            answer = RelayAnswer(relay=relay, received_at=clock.now(), body=body.decode())
            found.setdefault(beacon, []).append(answer)
    if len(found) > 1:
        raise BeaconRejected(
            f"relays gave {len(found)} different answers for round {number} of {chain.name}, and each one is signed: "
            + "; ".join(", ".join(answer.relay for answer in answers) for answers in found.values()),
            remedy="Select nothing. The network's key is lost or its scheme broken: publish the answers.",
        )
    answers = next(iter(found.values()), [])
    if len(answers) < RELAYS:
        raise BeaconUnavailable("\n".join([f"{len(answers)} of {RELAYS} relays answered", *faults]))
    return next(iter(found)), tuple(answers[:RELAYS]), tuple(faults)
