"""Answers leave the server at once: no packet waits for the acknowledgement of the one before."""

import socket

from pages.parts.shell.sockets import answer_at_once


def test_connections_have_no_delay_though_the_protocol_was_not_named():
    with socket.socket(socket.AF_INET) as listener, socket.socket(socket.AF_INET) as browser:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        answer_at_once()
        browser.connect(listener.getsockname())
        connection, _ = listener.accept()
        with connection:
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        assert not browser.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)  # others are left alone
