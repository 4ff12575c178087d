"""Swift's servers in one place: `swift_servers.py FOLDER [KIND PORT]...`, run by the interpreter of .deps/swift.

Makes the rings of KIND at PORT, imports all servers once and forks each; FOLDER has KIND.conf and gets
KIND.log. Prints the process numbers of the servers. Where one of them ends, all do, as they do with the
process that has started this one.
"""
import ctypes
import importlib
import os
import signal
import sys

SERVERS = {"account": "swift.account.server", "container": "swift.container.server",
           "object": "swift.obj.server", "proxy": "swift.proxy.server"}
PR_SET_PDEATHSIG = 1


class Cache:
    """What memcached is to Swift, for a single proxy: otherwise it asks for account and bucket with each
    request. Entries do not age; the proxy takes out what it changes."""

    def __init__(self):
        self.values = {}

    def get(self, key, *_, **__):
        return self.values.get(key)

    def set(self, key, value, *_, **__):
        self.values[key] = value

    def delete(self, key, *_, **__):
        self.values.pop(key, None)

    def incr(self, key, delta=1, *_, **__):
        self.values[key] = max(0, int(self.values.get(key, 0)) + delta)
        return self.values[key]


def cache_filter(_, **__):
    """The filter "cache" of the proxy's pipeline."""
    cache = Cache()

    def around(application):
        def call(environment, start_response):
            environment["swift.cache"] = cache
            return application(environment, start_response)
        return call
    return around


def end_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def make_ring(folder, kind, port):
    from swift.common.ring import RingBuilder

    builder = RingBuilder(4, 1, 0)  # 16 partitions, one replica
    builder.add_dev({"id": 0, "region": 1, "zone": 1, "ip": "127.0.0.1", "port": port, "weight": 1,
                     "replication_ip": "127.0.0.1", "replication_port": port, "device": "sda", "meta": ""})
    builder.rebalance()
    builder.get_ring().save(f"{folder}/{kind}.ring.gz")


def serve(folder, kind, server):
    end_with_parent()
    log = os.open(f"{folder}/{kind}.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(log, 1)
    os.dup2(log, 2)
    sys.argv = [kind, f"{folder}/{kind}.conf", "-v"]
    server.main()
    sys.exit()


def main(folder, *rings):
    end_with_parent()
    for kind, port in zip(rings[::2], rings[1::2]):
        make_ring(folder, kind, int(port))
    processes = set()
    for kind, server in [(kind, importlib.import_module(name)) for kind, name in SERVERS.items()]:
        process = os.fork()
        if process == 0:
            serve(folder, kind, server)
        processes.add(process)
    print(*processes, flush=True)
    while processes:
        processes.remove(os.wait()[0])
        for process in processes:
            os.kill(process, signal.SIGKILL)


if __name__ == "__main__":
    main(*sys.argv[1:])
