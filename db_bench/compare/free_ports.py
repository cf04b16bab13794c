"""Ports of this machine for programs that are about to listen there, and may be started again."""

import contextlib
import random
import socket


def free_port() -> int:
    """One that the system gives to no connection before the program listens there."""
    while True:
        port = random.randrange(20_000, 30_000)
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return port


def free_ports(count: int) -> list[int]:
    """All different."""
    ports: set[int] = set()
    while len(ports) < count:
        ports.add(free_port())
    return list(ports)
