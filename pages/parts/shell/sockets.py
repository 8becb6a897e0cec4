"""The server's sockets, which Streamlit binds: what a browser is sent leaves at once."""

import gc
import socket


def answer_at_once() -> None:
    """Set TCP_NODELAY on this process's listening sockets; connections that they accept have it from them.

    Streamlit makes its socket without naming TCP as its protocol, so asyncio, which asks for that name, leaves Nagle's
    algorithm on: the second packet of every answer then waits for the browser's delayed acknowledgement, 40 ms.
    """
    for candidate in gc.get_objects():
        if type(candidate) is socket.socket and _listens(candidate):
            candidate.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def _listens(listener: socket.socket) -> bool:
    try:
        internet = listener.family in (socket.AF_INET, socket.AF_INET6) and listener.type == socket.SOCK_STREAM
        return internet and bool(listener.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))
    except OSError:
        return False  # closed, or of a system that does not say
