"""Relays that lie, stall or break, over real HTTP: none of them is counted, and none can change what is selected."""

from __future__ import annotations

import dataclasses
import gzip
import json
import ssl
from datetime import UTC, datetime
from ipaddress import IPv4Address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from controller.adapters.relay_http import HttpRelays
from controller.domain.beacon import CHAINS, Chain
from controller.domain.instant import InstantMs
from controller.errors import BeaconRejected, BeaconUnavailable
from controller.evidence.holdout import ANSWER_BYTES_MAX
from controller.wiring.beacons import gather
from tests.world.beacons import OwnNetwork, answer_of, moved, recorded_beacon
from tests.world.clock import SetClock
from tests.world.relays import Play, Relay, drips, raw, relays, says, silent

CHAIN = CHAINS["default"]
ROUND = 3311596
BEACON = recorded_beacon("default", ROUND)
BEFORE = recorded_beacon("default", 72785)
BODY = json.dumps(answer_of(BEACON)).encode()
HONEST = says(BODY)
OWN = OwnNetwork()
BEGIN_AND_END = (datetime(2026, 1, 1, tzinfo=UTC), datetime(2099, 1, 1, tzinfo=UTC))  # of a certificate
OTHER_CHAIN = recorded_beacon("testnet-default", 3361396)


def ask(*plays: Play, chain: Chain = CHAIN, number: int = ROUND, late_ms: int = 0) -> tuple[str, ...]:
    """Gather from these relays; the faults that were not counted. The beacon must be the recorded one."""
    port = HttpRelays(bytes_max=ANSWER_BYTES_MAX, total_seconds=0.5)
    with relays(*plays) as started:
        clock = SetClock(InstantMs(chain.due_at(number) + late_ms))
        beacon, answers, faults = gather([one.url for one in started], chain, number, clock, port)
        assert beacon == BEACON
        assert [answer.body.encode() for answer in answers] == [BODY] * 3
        assert {path for one in started for path in one.paths} == {f"/{chain.hash.hex()}/public/{number}"}
    return faults


def test_three_relays_that_agree_give_the_beacon() -> None:
    assert ask(HONEST, HONEST, HONEST) == ()


def test_order_of_fields_and_what_is_not_signed_need_not_agree() -> None:
    port = HttpRelays(bytes_max=ANSWER_BYTES_MAX)
    turned = says(json.dumps(dict(reversed(answer_of(BEACON).items()))).encode())
    bare = says(answer_of(BEACON, randomness=None))
    with relays(HONEST, turned, bare) as started:
        found = gather([one.url for one in started], CHAIN, ROUND, SetClock(CHAIN.due_at(ROUND)), port)
    assert (found[0], len(found[1]), found[2]) == (BEACON, 3, ())


def chunked(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n0\r\n\r\n" % (len(data), data)


HEAD = b"HTTP/1.1 200 OK\r\n"
BAD: dict[str, tuple[Play, str]] = {
    "late": (says(b"not yet", status="404 Not Found"), "status 404"),
    "too early": (says(b"", status="425 Too Early"), "status 425"),
    "no content": (says(b"", status="204 No Content"), "status 204"),
    "partial": (says(BODY, status="206 Partial Content"), "status 206"),
    "failing": (says(BODY, status="500 Internal Server Error"), "status 500"),
    "redirect": (says(BODY, status="302 Found", headers=["Location: http://127.0.0.1:1/"]), "status 302"),
    "redirect for good": (says(BODY, status="308 Permanent Redirect", headers=["Location: /other"]), "status 308"),
    "empty": (says(b""), "not readable as JSON"),
    "truncated": (says(BODY[:-1]), "not readable as JSON"),
    "cut short": (raw(HEAD + b"Content-Length: 9999\r\n\r\n" + BODY), "ClientPayloadError"),
    "a page": (says(b"<!doctype html><title>502</title>"), "not readable as JSON"),
    "twice": (says(BODY + BODY), "not readable as JSON"),
    "a repeated key": (says(b'{"round":1,' + BODY[1:]), "given twice"),
    "not UTF-8": (says(b"\xff" + BODY), "not readable as JSON"),
    "compressed": (says(gzip.compress(BODY), headers=["Content-Encoding: gzip"]), "not readable as JSON"),
    "an array": (says(b"[" + BODY + b"]"), "not a JSON object"),
    "round as text": (says(answer_of(BEACON, round=str(ROUND))), "not 3311596"),
    "round as float": (says(BODY.replace(b"3311596", b"3311596.0")), "is a float"),
    "upper case": (says(answer_of(BEACON, signature=BEACON.signature.hex().upper())), "lower-case hex"),
    "no signature": (says(answer_of(BEACON, signature=None)), "lower-case hex"),
    "no previous signature": (says(answer_of(BEACON, previous_signature=None)), "lower-case hex"),
    "previous round": (says(answer_of(BEFORE)), "round is '72785'"),
    "previous round, renumbered": (says(answer_of(dataclasses.replace(BEFORE, round=ROUND))), "not the network's"),
    "other chain": (says(answer_of(dataclasses.replace(OTHER_CHAIN, round=ROUND))), "not the network's"),
    "forged key": (says(answer_of(OWN.beacon(ROUND, b"\1" * 96))), "not the network's"),
    "different": (says(answer_of(BEACON, previous_signature="00" * 96)), "not the network's"),
    "torsion-shifted": (says(answer_of(BEACON, signature=moved(BEACON.signature).hex())), "subgroup"),
    "infinity": (says(answer_of(BEACON, signature="c0" + "00" * 95)), "signature: infinity"),
    "zeros": (says(answer_of(BEACON, signature="00" * 96)), "signature:"),
    "huge": (says(BODY + b" " * 10_000_000), "longer than 4096 bytes"),
    "huge without a length": (says(BODY + b" " * 10_000_000, length=False), "longer than 4096 bytes"),
    "huge in chunks": (
        raw(HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + chunked(BODY + b" " * 100_000)),
        "longer than 4096 bytes",
    ),
    "one byte too long": (says(BODY + b" " * (ANSWER_BYTES_MAX + 1 - len(BODY))), "longer than 4096 bytes"),
    "huge header": (says(BODY, headers=["X-Much: " + "x" * 100_000]), "http"),
    "silent": (silent(), "no answer within 0.5 seconds"),
    "silent after the header": (silent(HEAD + b"Content-Length: 600\r\n\r\n"), "no answer within"),
    "dripping": (drips(HEAD + b"Content-Length: 600\r\n\r\n" + BODY), "no answer within"),
    "hanging up": (raw(b""), "ServerDisconnectedError"),
    "no HTTP": (raw(b"SSH-2.0-OpenSSH_9.2\r\n"), "http"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_relay_is_not_counted_and_may_be_replaced(name: str) -> None:
    bad, why = BAD[name]
    with pytest.raises(BeaconUnavailable, match="2 of 3 relays answered") as missing:
        ask(HONEST, bad, HONEST)
    assert why.lower() in str(missing.value).lower()
    assert "127.0.0.2" in str(missing.value)
    faults = ask(bad, HONEST, HONEST, HONEST)
    assert len(faults) == 1


def test_a_relay_that_is_not_there_is_not_counted() -> None:
    with relays(HONEST) as gone:
        url = gone[0].url
    port = HttpRelays(bytes_max=ANSWER_BYTES_MAX, total_seconds=2)
    with pytest.raises(BeaconUnavailable, match=r"0 of 3(.|\n)*ClientConnectorError"):
        gather([url] * 3, CHAIN, ROUND, SetClock(CHAIN.due_at(ROUND)), port)


def test_three_relays_that_agree_on_a_forgery_give_nothing() -> None:
    forged = says(answer_of(BEACON, signature=moved(BEACON.signature).hex()))
    with pytest.raises(BeaconUnavailable, match="0 of 3 relays answered"):
        ask(forged, forged, forged)


def test_no_relay_is_asked_before_the_round_is_due() -> None:
    def unasked(*_: object) -> None:
        raise AssertionError("asked")

    with pytest.raises(BeaconUnavailable, match=r"due 2023-09-15T11:55:00\.000Z") as early:
        ask(unasked, unasked, unasked, late_ms=-1)
    assert "again later" in early.value.remedy


@pytest.mark.parametrize("honest", [0, 1, 2, 3])
def test_two_valid_answers_that_differ_halt_the_selection(honest: int) -> None:
    """Only a network whose key is lost can sign two; with enough agreeing relays it must still be noticed."""
    plays: list[Play] = [says(answer_of(OWN.beacon(ROUND, b"\1" * 96)))] * honest
    plays += [says(answer_of(OWN.beacon(ROUND, bytes([2 + place]) * 96))) for place in range(max(1, 3 - honest) + 1)]
    with pytest.raises(BeaconRejected, match="different answers for round 3311596") as halted:
        ask(*plays, chain=OWN.chain)
    assert "Select nothing" in halted.value.remedy


def test_a_certificate_that_no_authority_signed_is_a_missing_relay(tmp_path: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    built = x509.CertificateBuilder(name, name, key.public_key(), 1, *BEGIN_AND_END)
    address = x509.SubjectAlternativeName([x509.IPAddress(IPv4Address("127.0.0.1"))])
    certificate = built.add_extension(address, critical=False).sign(key, SHA256())
    pem = tmp_path / "relay.pem"
    pem.write_bytes(
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()) + certificate.public_bytes(Encoding.PEM)
    )
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(pem)
    relay = Relay(1, HONEST, tls)
    try:
        with pytest.raises(BeaconUnavailable, match="ClientConnectorCertificateError"):
            HttpRelays(bytes_max=ANSWER_BYTES_MAX).fetch(relay.url.replace("http:", "https:"))
        assert relay.paths == []
    finally:
        relay.stop()
