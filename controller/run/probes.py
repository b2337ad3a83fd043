"""The ways out that every attempt tries before its harness starts; each must be refused by the kernel at once."""

from __future__ import annotations

from typing import Final

from controller.domain.receipt import Probe

_TCP: Final = (
    ("metadata", "169.254.169.254", 80),
    ("metadata-resolver", "169.254.169.254", 53),
    ("metadata-credentials", "169.254.170.2", 80),
    ("metadata-wire-server", "168.63.129.16", 80),
    ("metadata-ipv6-a", "fd00:ec2::254", 80),
    ("metadata-ipv6-b", "fd20:ce::254", 80),
    ("resolver-a", "8.8.8.8", 53),
    ("resolver-b", "1.1.1.1", 53),
    ("resolver-tls", "9.9.9.9", 853),
    ("gateway-ssh", "10.0.2.2", 22),
    ("gateway-http", "10.0.2.2", 80),
    ("egress-address", "10.0.2.100", 8080),
    ("machine-ssh", "10.0.2.15", 22),
    ("private-10", "10.0.0.1", 443),
    ("private-172", "172.16.0.1", 443),
    ("private-192", "192.168.0.1", 80),
    ("private-shared", "100.64.0.1", 443),
    ("container-bridge", "172.17.0.1", 2375),
    ("container-bridge-rootless", "10.88.0.1", 80),
    ("loopback-ssh", "127.0.0.1", 22),
    ("internet", "93.184.215.14", 443),
    ("internet-ipv6", "2606:2800:21f:cb07:6820:80da:af6b:8b2c", 443),
)
_UDP: Final = (
    ("metadata-resolver", "169.254.169.254", 53),
    ("resolver-a", "8.8.8.8", 53),
    ("resolver-b", "1.1.1.1", 53),
    ("resolver-ipv6", "2001:4860:4860::8888", 53),
    ("gateway-resolver", "10.0.2.3", 53),
    ("multicast-names", "224.0.0.251", 5353),
    ("internet-quic", "93.184.215.14", 443),
)
_NAMES: Final = ("metadata.google.internal", "registry.invalid", "example.com", "host.containers.internal")

PROBES: Final[tuple[Probe, ...]] = (
    *(Probe(name=f"tcp-{name}", kind="tcp", host=host, port=port) for name, host, port in _TCP),
    *(Probe(name=f"udp-{name}", kind="udp", host=host, port=port) for name, host, port in _UDP),
    *(Probe(name=f"name-{name}", kind="name", host=name) for name in _NAMES),
    Probe(name="icmp", kind="icmp", host="8.8.8.8"),
    Probe(name="icmp-ipv6", kind="icmp", host="2001:4860:4860::8888"),
    Probe(name="raw-socket", kind="raw"),
    Probe(name="packet-socket", kind="packet"),
    Probe(name="machine-socket", kind="vsock", port=22),
    Probe(name="route-change", kind="route"),
    Probe(name="user-namespace", kind="userns"),
)


def ordered_probes(extra_names: tuple[str, ...]) -> tuple[Probe, ...]:
    """The fixed probes and one for each name that must not resolve either, such as those of package registries."""
    extra = tuple(Probe(name=f"name-{name}", kind="name", host=name) for name in sorted(set(extra_names) - set(_NAMES)))
    return PROBES + extra
