"""The address on which a server will listen."""

from __future__ import annotations

import socket

from tamis.errors import InvalidInput


def check_port(host: str, port: int) -> None:
    """Raise ``InvalidInput`` (``PORT_UNAVAILABLE``) if this process cannot listen on ``host`` and ``port``.

    Spark itself would fail with a Java error, after the session has started.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as Java's servers do
            probe.bind(address)
    except OSError as error:
        raise InvalidInput(
            f"Cannot listen on {host}:{port}: {error.strerror or error}.",
            code="PORT_UNAVAILABLE",
            name=f"{host}:{port}",
            remedy="Choose another port, or an address of this machine.",
        ) from error
