"""Addresses of a fleet, as people write them."""

from __future__ import annotations

import re
from ipaddress import ip_address

from gpubench.errors import GpubenchError

DEFAULT_PORT = 8786
"""Of ``dask scheduler`` where nothing else is asked for."""

MAX_PORT = 2**16 - 1

SCHEMES = ("tcp", "tls")
"""Ways to speak to a scheduler: without encryption and with it."""

_PLACE = re.compile(r"(?P<host>\[[^\[\]]*\]|[\w.-]+)(?::(?P<port>.*))?", re.DOTALL)


def scheduler_address(text: str) -> str:
    """Return the address of a scheduler with its port, and with the scheme where that is given.

    Spaces around it and a slash at its end are dropped; 8786 is the port where there is none.
    Raises ``GpubenchError`` with what is wrong in anything else.
    """
    scheme, separator, place = text.strip().rpartition("://")
    scheme, place = scheme.lower(), place.rstrip("/")
    if separator and scheme not in SCHEMES:
        raise _refusal("scheduler", text, f"{scheme}:// is not one of tcp:// and tls://")
    host, port = _host_and_port("scheduler", text, place)
    return f"{scheme}{separator}{host}:{DEFAULT_PORT if port is None else port}"


def listening_place(text: str) -> str:
    """Return where a worker listens, ``HOST`` or ``HOST:PORT``; raises ``GpubenchError``."""
    host, port = _host_and_port("--host", text, text.strip())
    return host if port is None else f"{host}:{port}"


def _host_and_port(of: str, text: str, place: str) -> tuple[str, int | None]:
    if not place:
        raise _refusal(of, text, "it names no host")
    if place.count(":") > 1 and not {"[", "/"} & {*place}:
        raise _refusal(of, text, "write an IPv6 address in brackets, [::1]:8786")
    match = _PLACE.fullmatch(place)
    if match is None:
        raise _refusal(of, text, "a host is a name or an address, and a port follows a colon")
    host, port = match["host"], match["port"]
    if host.startswith("["):
        try:
            is_six = ip_address(host[1:-1]).version == 6
        except ValueError:
            is_six = False
        if not is_six:
            raise _refusal(of, text, f"{host} is not an IPv6 address")
    if port is None:
        return host, None
    if not re.fullmatch("[0-9]{1,5}", port) or not 1 <= int(port) <= MAX_PORT:
        raise _refusal(of, text, f"{port!r} is not a port, 1 to {MAX_PORT}")
    return host, int(port)


def _refusal(of: str, text: str, why: str) -> GpubenchError:
    example = "127.0.0.1:9001" if of == "--host" else "tcp://127.0.0.1:8786 or tls://lab1:8786"
    return GpubenchError(f"{of} {text!r}: {why}; write it as {example}")
