"""Starts Swift, by the Python of .deps/swift: swift_processes.py FOLDER ACCOUNT_PORT CONTAINER_PORT
OBJECT_PORT.

Makes the rings and forks the four servers, which so share what they import. When one of them ends, or at
SIGTERM, it kills the others. FOLDER has their configurations.
"""

import contextlib
import os
import pathlib
import signal
import sys
import traceback

import swift.account.server
import swift.container.server
import swift.obj.server
import swift.proxy.server
from swift.cli import ringbuilder

SERVERS = {"account": swift.account.server, "container": swift.container.server,
           "object": swift.obj.server, "proxy": swift.proxy.server}


def make_ring(folder, kind, port):
    for words in (["create", "4", "1", "0"], ["add", f"r1z1-127.0.0.1:{port}/sda", "1"], ["rebalance"]):
        try:
            ringbuilder.main(["swift-ring-builder", str(folder / f"{kind}.builder"), *words])
        except SystemExit as end:
            if end.code:
                raise


def start_server(folder, kind):
    """The process number of the server."""
    process = os.fork()
    if process:
        return process
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    log = os.open(folder / f"{kind}.log", os.O_WRONLY | os.O_CREAT, 0o600)
    for stream in (1, 2):
        os.dup2(log, stream)
    sys.argv = [f"swift-{kind}-server", str(folder / f"{kind}.conf"), "-v"]
    try:
        SERVERS[kind].main()
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(1)


def main():
    folder = pathlib.Path(sys.argv[1])
    for kind, port in zip(SERVERS, sys.argv[2:]):
        make_ring(folder, kind, port)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    processes = []
    try:
        for kind in SERVERS:
            processes.append(start_server(folder, kind))
        os.wait()
    finally:
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while True:
                os.wait()


if __name__ == "__main__":
    main()
