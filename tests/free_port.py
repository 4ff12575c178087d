"""Ports for servers that are told theirs before they listen."""
import random
import socket

# Below the ports that the kernel gives to whoever asks for any (ip_local_port_range), so that nobody
# is given one of these between now and when its server listens; and beside torchrun's 29400 and 29500.
PORTS = [*range(12000, 29000), *range(30000, 32000)]


def free_ports(count):
    """Different ports of 127.0.0.1 on which nobody listens."""
    found = []
    for port in random.SystemRandom().sample(PORTS, len(PORTS)):
        try:
            with socket.create_server(("127.0.0.1", port)):
                found.append(port)
        except OSError:
            continue
        if len(found) == count:
            return found
    raise OSError(f"of {len(PORTS)} ports fewer than {count} are free")


def free_port():
    return free_ports(1)[0]
