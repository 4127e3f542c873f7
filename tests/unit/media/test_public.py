"""What counts as the public internet, and what only looks like it."""

from ipaddress import ip_address

import pytest

from eloquio.media.public import is_public


@pytest.mark.parametrize(
    "address",
    ["8.8.8.8", "93.184.216.34", "2606:4700::1111", "2a00:1450:4001::1", "64:ff9b::8.8.8.8"],
)
def test_a_public_address_is_public(address):
    assert is_public(ip_address(address))


@pytest.mark.parametrize(
    "address",
    [
        *("0.0.0.0", "10.0.0.1", "100.64.0.1", "100.100.100.200", "127.0.0.1", "127.8.9.1"),
        *("169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.1", "192.0.2.1"),
        *("192.88.99.1", "192.168.1.1", "198.18.0.1", "198.51.100.1", "203.0.113.1"),
        *("224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255"),
        *("::", "::1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:169.254.169.254"),
        *("64:ff9b::10.0.0.1", "64:ff9b::7f00:1", "64:ff9b:1::1", "100::1", "2001::1"),
        *("2001:db8::1", "2002:7f00:1::", "2002:a9fe:a9fe::1", "3fff::1", "5f00::1"),
        *("fc00::1", "fd00:ec2::254", "fe80::1", "fe80::1%1", "fec0::1", "ff02::1"),
    ],
)
def test_any_other_is_not(address):
    assert not is_public(ip_address(address))
