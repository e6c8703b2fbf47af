"""Free TCP ports on the loopback interface."""

import random
import socket

HOST = "127.0.0.1"
# Below the ports that systems hand to outgoing connections, so that a port kept for the next start stays free.
_FIRST, _LAST = 20_000, 31_999


def is_free(port: int) -> bool:
    """Whether a server could listen on the port now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True


def free_port(preferred: int | None = None) -> int:
    """The preferred port if it is free, else a free one by chance."""
    if preferred and is_free(preferred):
        return preferred
    choice = random.SystemRandom()
    while True:
        port = choice.randint(_FIRST, _LAST)
        if is_free(port):
            return port
