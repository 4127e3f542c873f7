"""Where a server is within reach, by the host it listens at."""

import ipaddress


def is_loopback(host: str) -> bool:
    """Whether a server that listens at `host` is within reach of this machine only."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def page_address(host: str, port: int) -> str:
    """The address by which this machine reaches a server that listens at `host`."""
    reachable = {"0.0.0.0": "127.0.0.1", "": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://[{reachable}]:{port}" if ":" in reachable else f"http://{reachable}:{port}"
