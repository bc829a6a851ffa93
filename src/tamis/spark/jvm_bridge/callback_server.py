"""The server by which Java calls Python objects: how it is started, its token, and how Java sends to it."""

from __future__ import annotations

import contextlib
import warnings
from typing import Any

from tamis.world import world


def start_callback_server(gateway: Any) -> None:
    """Start Py4J's callback server on a port of its own, unless it runs already."""
    from pyspark.java_gateway import ensure_callback_server_started

    ensure_callback_server_started(gateway)


def require_token(gateway: Any, tools: Any) -> bool:
    """Make the callback server refuse connections without a token, and give Java that token.

    Returns False, with a warning, if this Py4J does not let Java have one. PySpark sets a token only if threads
    are not pinned. Otherwise Java loses its own when PySpark tells it the port, because Py4J's copy of the
    client leaves it out. Connections that exist already stay as they are; for one that Java opens between the
    two steps below, the call fails.
    """
    from py4j.java_gateway import JavaObject
    from py4j.protocol import Py4JError

    parameters = gateway.callback_server_parameters
    if parameters.auth_token is not None:
        return True
    token = world().random_bytes(32).hex()  # not the gateway's own: whoever takes over the port must not learn that one
    parameters.auth_token = token
    try:
        tools.sendToken(JavaObject("GATEWAY_SERVER", gateway._gateway_client), token)
    except Py4JError:
        parameters.auth_token = None
        warnings.warn(
            "Py4J's callback server takes calls without a token here; see Tamis' SECURITY.md.",
            RuntimeWarning,
            stacklevel=2,
        )
        return False
    return True


def undelay_sockets(gateway: Any, helper: Any) -> None:
    """Have Java send every piece of a text at once; ``helper`` is ``UndelayedSockets``.

    Otherwise each text of more than 8,192 bytes takes 40 ms. A Py4J whose sockets cannot be reached is only slower.
    """
    from py4j.java_gateway import JavaObject
    from py4j.protocol import Py4JError

    with contextlib.suppress(Py4JError):
        helper.undelay(JavaObject("GATEWAY_SERVER", gateway._gateway_client))
