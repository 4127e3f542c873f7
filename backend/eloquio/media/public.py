"""Which addresses belong to the public internet."""

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

IPAddress = IPv4Address | IPv6Address

_UNICAST = IPv6Network("2000::/3")
_TRANSLATED = IPv6Network("64:ff9b::/96")
# Public by name, but led back to wherever the nearest router wants.
_RELAYS = IPv4Network("192.88.99.0/24")
# Kept apart by newer lists than this Python may have.
_NOT_ROUTED = (IPv6Network("2001::/23"), IPv6Network("3fff::/20"))


def is_public(address: IPAddress) -> bool:
    """False for this machine, its networks, link-local metadata services, multicast and reserves.

    An IPv6 address that stands for an IPv4 one, to which a router translates it, is as public as
    that one.
    """
    if isinstance(address, IPv4Address):
        return (
            address.is_global
            and not address.is_multicast
            and not address.is_reserved
            and address not in _RELAYS
        )
    inner = _inner(address)
    if inner is not None:
        return is_public(inner)
    return (
        address in _UNICAST
        and address.is_global
        and not any(address in network for network in _NOT_ROUTED)
    )


def _inner(address: IPv6Address) -> IPv4Address | None:
    if address in _TRANSLATED:
        return IPv4Address(address.packed[-4:])
    return address.ipv4_mapped or address.sixtofour
