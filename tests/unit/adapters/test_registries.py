"""Registry names are read from what the machine's clients say, and from nothing that is not a host name."""

from __future__ import annotations

from controller.adapters.registries import NAMES_MAX, host_names


def test_hosts_of_every_address_once_and_in_order() -> None:
    texts = [
        "URIs: http://deb.example.org/debian\ndeb [x] https://b.example/x main",
        "https://Registry.Example:8443/\n",
    ]
    assert host_names(texts) == ("b.example", "deb.example.org", "registry.example")


def test_nonsense_is_left_out_and_the_number_is_bounded() -> None:
    assert host_names(["file:///srv/mirror", "https:///none", "https://-bad-/"]) == ()
    assert len(host_names([f"https://h{i}.example" for i in range(50)])) == NAMES_MAX
