"""Which names a server answers to.

A page of somebody else can make a browser talk to a server on this machine, under that somebody's
own name for it (DNS rebinding), and read the answers. The browser then says that name in ``Host``,
and a server that answers to its own names only is out of reach. An address in numbers is no name
that anybody could give away.
"""

from __future__ import annotations

import ipaddress
import socket

__all__ = ["allowed", "default_hosts", "is_loopback"]

_LOOPBACK = ("localhost",)


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach the address."""
    if host in _LOOPBACK:
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def default_hosts(host: str) -> tuple[str, ...]:
    """Return names of a server that listens on ``host``: loopback's, and this machine's where
    others can reach it.
    """
    own = () if is_loopback(host) else (socket.gethostname(), socket.getfqdn())
    return tuple(dict.fromkeys(name.lower() for name in (*_LOOPBACK, host, *own)))


def allowed(header: str, hosts: tuple[str, ...]) -> bool:
    """Return whether the value of a ``Host`` header names this server; "*" among ``hosts`` allows
    all.

    >>> allowed("LOCALHOST:8000", ("localhost",)), allowed("evil.example", ("localhost",))
    (True, False)
    >>> allowed("[::1]:8000", ()), allowed("192.168.0.7", ()), allowed("1.2.3.4.evil.example", ())
    (True, True, False)
    """
    if "*" in hosts:
        return True
    name = header.strip().lower()
    name = name[1:].partition("]")[0] if name.startswith("[") else name.partition(":")[0]
    if name.rstrip(".") in hosts:
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
