"""The one way by which anything is fetched from an address that a request names."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from ipaddress import ip_address
from typing import TYPE_CHECKING

from eloquio.errors import RemoteMediaFailed, RemoteMediaRefused
from eloquio.media.public import IPAddress, is_public

if TYPE_CHECKING:
    import ssl

    import httpx2 as httpx

TOTAL_SECONDS = 20.0
CONNECT_SECONDS = 5.0
MOST_REDIRECTS = 3
MOST_ADDRESSES = 4
"""Of one host: the first that can be connected to is asked."""
AT_ONCE = 4

Resolve = Callable[[str], Awaitable[Sequence[IPAddress]]]
MayConnect = Callable[[IPAddress, int], bool]

_REDIRECTS = (301, 302, 303, 307, 308)
_PORTS = {"http": 80, "https": 443}


async def resolved(host: str) -> list[IPAddress]:
    """The addresses of a host by this machine's own resolver. Raises OSError."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return [ip_address(address[0]) for *_, address in found]


def is_public_web(address: IPAddress, port: int) -> bool:
    return is_public(address) and port in _PORTS.values()


class Fetcher:
    """Fetches from public addresses only, within bounds of time, bytes and redirects.

    A host is resolved once, and the connection goes to exactly what was checked: a name that
    changes its meaning in between changes nothing. Each redirect is checked like the first address.
    """

    def __init__(
        self, resolve: Resolve = resolved, may_connect: MayConnect = is_public_web
    ) -> None:
        self._resolve = resolve
        self._may_connect = may_connect
        self._turns = asyncio.Semaphore(AT_ONCE)

    async def fetch(self, url: str, largest_bytes: int) -> bytes:
        """What lies at the address; raises RemoteMediaRefused or RemoteMediaFailed."""
        async with self._turns:
            try:
                async with asyncio.timeout(TOTAL_SECONDS):
                    return await self._follow(url, largest_bytes)
            except TimeoutError:
                raise RemoteMediaFailed(
                    f"What the address leads to didn't come within {TOTAL_SECONDS:.0f} seconds."
                ) from None

    async def _follow(self, url: str, largest_bytes: int) -> bytes:
        import httpx2 as httpx

        # The system's certificates are read from disk.
        trust = await asyncio.to_thread(httpx.create_ssl_context)
        target = _target(url)
        for _ in range(1 + MOST_REDIRECTS):
            addresses = await self._addresses(target)
            found = await _ask(target, addresses, trust, largest_bytes)
            if isinstance(found, bytes):
                return found
            target = _target(found, target)
        raise RemoteMediaFailed(f"The address leads on more than {MOST_REDIRECTS} times.")

    async def _addresses(self, target: "httpx.URL") -> Sequence[IPAddress]:
        """Those of the host; all of them have to be allowed."""
        try:
            addresses = await self._resolve(_ascii_host(target))
        except (OSError, UnicodeError):
            raise RemoteMediaFailed(f"There is no host {target.host}.") from None
        port = _PORTS[target.scheme] if target.port is None else target.port
        if not addresses or not all(self._may_connect(address, port) for address in addresses):
            raise RemoteMediaRefused(
                f"{target.host} isn't fetched from: it isn't a public address at the port of http "
                "or https."
            )
        return addresses[:MOST_ADDRESSES]


def _target(url: str, base: "httpx.URL | None" = None) -> "httpx.URL":
    """An address, or where one that was asked leads on; refuses what is no address of the web."""
    import httpx2 as httpx

    try:
        target = base.join(url) if base else httpx.URL(url)
    except (httpx.InvalidURL, ValueError):
        raise RemoteMediaRefused("The address can't be read.") from None
    if target.scheme not in _PORTS or not target.host:
        raise RemoteMediaRefused("The address is neither an http nor an https one.")
    if target.userinfo:
        raise RemoteMediaRefused("The address has a name or a password in it, which isn't sent.")
    return target


def _ascii_host(target: "httpx.URL") -> str:
    return target.raw_host.decode("ascii")


async def _ask(
    target: "httpx.URL",
    addresses: Sequence[IPAddress],
    trust: "ssl.SSLContext",
    largest_bytes: int,
) -> bytes | str:
    """What the first address that can be connected to answers: the bytes, or where it leads on."""
    import httpx2 as httpx

    failure: httpx.TransportError | None = None
    for address in addresses:
        # A connection of its own: one that is open to another host of the same address proves
        # nothing about this host's certificate.
        async with httpx.AsyncHTTPTransport(verify=trust) as transport:
            try:
                reply = await transport.handle_async_request(_request(target, address))
                return await _found(reply, target, largest_bytes)
            except (httpx.ConnectError, httpx.ConnectTimeout) as error:
                failure = error
            except httpx.TransportError as error:
                raise RemoteMediaFailed(
                    f"{target.host} broke off its answer.", evidence=str(error) or None
                ) from error
    raise RemoteMediaFailed(
        f"{target.host} couldn't be connected to.", evidence=str(failure) or None
    ) from failure


def _request(target: "httpx.URL", address: IPAddress) -> "httpx.Request":
    """To the address, in the name of the host: its certificate is checked for that name."""
    import httpx2 as httpx

    return httpx.Request(
        "GET",
        target.copy_with(host=str(address), fragment=None),
        headers={
            "host": target.netloc.decode("ascii"),
            "user-agent": "Eloquio",
            # What is compressed could be of any size.
            "accept-encoding": "identity",
        },
        extensions={
            "sni_hostname": _ascii_host(target).rstrip("."),
            "timeout": {"connect": CONNECT_SECONDS},
        },
    )


async def _found(reply: "httpx.Response", target: "httpx.URL", largest_bytes: int) -> bytes | str:
    try:
        location = reply.headers.get("location")
        if reply.status_code in _REDIRECTS and location:
            return str(location)
        if reply.status_code != 200:
            raise RemoteMediaFailed(f"{target.host} answered with status {reply.status_code}.")
        received = bytearray()
        async for piece in reply.aiter_raw():
            received += piece
            if len(received) > largest_bytes:
                raise RemoteMediaFailed(
                    f"What {target.host} sends has more than {largest_bytes} bytes, which is all "
                    "that is taken."
                )
        return bytes(received)
    finally:
        await reply.aclose()
