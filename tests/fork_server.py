"""Fork server: imports PyTorch and other slow packages once, and forks a child for each Python suite.

    fork_server.py start FOLDER    starts the server of FOLDER; it ends with the process that called this
    fork_server.py stop FOLDER     ends it, and prints its messages and CPU time

tests/CMakeLists.txt starts it as a fixture of ctest. run_suite.py hands a suite over that imports one
of PACKAGES; the child has the streams of run_suite.py and dies with it. The server itself only imports:
threads of OpenMP or OpenBLAS would not survive the fork.
"""

import ast
import contextlib
import ctypes
import functools
import gc
import json
import os
import pathlib
import resource
import selectors
import shutil
import signal
import socket
import sys

import run_suite

PACKAGES = ("torch", "torchvision", "timm", "transformers", "sklearn", "scipy", "webdataset")
TESTS = pathlib.Path(__file__).resolve().parent
MESSAGE_BYTES = 1 << 20
PR_SET_PDEATHSIG = 1


def import_statements(path, seen):
    """The imports of PACKAGES in a test file and in the files of tests/ that it imports."""
    if path in seen or not path.is_file():
        return []
    seen.add(path)
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        else:
            continue
        if any(name.split(".")[0] in PACKAGES for name in names):
            found.append(ast.unparse(node))
        for name in names:
            for folder in (path.parent, TESTS):
                found += import_statements(folder / f"{name.replace('.', '/')}.py", seen)
    return found


def at_socket(folder, call):
    """call(the address of the socket in `folder`), one that is short however long the path is."""
    descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY)
    try:
        return call(f"/proc/self/fd/{descriptor}/socket")
    finally:
        os.close(descriptor)


def connect(folder):
    """A connection to the server of `folder`; None if there is none."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        at_socket(folder, connection.connect)
        return connection
    except OSError:
        connection.close()
        return None


def answer(connection):
    """The next message of the server; {} if it has ended."""
    try:
        return json.loads(connection.recv(MESSAGE_BYTES) or "{}")
    except OSError:
        return {}


def ask(connection, message, streams=()):
    with contextlib.suppress(OSError):  # the server has ended
        socket.send_fds(connection, [json.dumps(message).encode()], streams)
    return answer(connection)


def run_in_server(folder, arguments):
    """Runs a suite in a child of the server of `folder`, and exits with its status. Returns if the suite
    must run in this process."""
    imports = import_statements(pathlib.Path(arguments[0]).resolve(), set())
    connection = connect(folder) if imports else None
    if connection is None:
        return
    begun = ask(connection, {"arguments": arguments, "imports": imports, "folder": os.getcwd(),
                             "environment": dict(os.environ)}, (0, 1, 2))
    if "refused" in begun:
        print(f"fork server: {begun['refused']}", file=sys.stderr)
    if "process" not in begun:
        return
    status = answer(connection).get("status")
    if status is None:
        sys.exit("fork server: it ended before the suite")
    if status < 0:
        sys.exit(f"fork server: the suite was killed by {signal.Signals(-status).name}")
    sys.exit(status)


def kill_tree(process):
    """Kills a process and its descendants. Stops each first, so that it starts no more."""
    try:
        os.kill(process, signal.SIGSTOP)
        for thread in pathlib.Path(f"/proc/{process}/task").iterdir():
            for child in (thread / "children").read_text().split():
                kill_tree(int(child))
        os.kill(process, signal.SIGKILL)
    except OSError:
        pass  # it has ended


class Server:
    def __init__(self, listener, caller):
        """Ends when the process of the pidfd `caller` ends, or when it is asked to."""
        self.environment = dict(os.environ)
        os.environ["OPENBLAS_NUM_THREADS"] = "1"  # numpy starts its threads when it is imported
        self.is_open = True
        self.suites = {}  # connection -> process
        self.stops = []  # connections of those who wait for the end
        self.count = 0
        self.selector = selectors.DefaultSelector()
        self.selector.register(listener, selectors.EVENT_READ, self.accept)
        self.selector.register(caller, selectors.EVENT_READ, self.stop)

    def run(self):
        """Serves until it is stopped and the last suite has ended."""
        while self.is_open or self.suites:
            for key, _ in self.selector.select():
                key.data(key.fileobj)

    def stop(self, asked):
        self.selector.unregister(asked)
        self.is_open = False

    def accept(self, listener):
        connection, _ = listener.accept()
        self.selector.register(connection, selectors.EVENT_READ, self.receive)

    def receive(self, connection):
        """A suite to run, {} to stop, or the end of a run_suite.py."""
        try:
            message, streams, *_ = socket.recv_fds(connection, MESSAGE_BYTES, 3)
        except OSError:
            message, streams = b"", []
        if message == b"{}":
            self.stop(connection)
            self.stops.append(connection)
        elif message and self.is_open:
            self.begin(connection, json.loads(message), streams)
        else:
            self.selector.unregister(connection)
            if connection in self.suites:
                kill_tree(self.suites[connection])
            else:
                connection.close()
        for stream in streams:
            os.close(stream)

    def refusal(self, request):
        """Why a forked child would not be like a new process; None if it would."""
        if request["environment"] != self.environment:
            return "the suite has another environment than the server"
        if request["folder"] != os.getcwd():
            return "the suite has another working directory than the server"
        for statement in request["imports"]:
            try:
                exec(statement, {})
            except Exception as error:  # the suite reports it
                print(f"{statement}: {error}", file=sys.stderr)
        gc.freeze()
        if len(os.listdir("/proc/self/task")) > 1:
            return "an import has started a thread in the server"
        return None

    def begin(self, connection, request, streams):
        if reason := self.refusal(request):
            connection.send(json.dumps({"refused": reason}).encode())
            return
        process = os.fork()
        if process == 0:
            self.become_suite(request, streams)
        self.count += 1
        self.suites[connection] = process
        self.selector.register(os.pidfd_open(process), selectors.EVENT_READ,
                               functools.partial(self.end, connection))
        self.send(connection, {"process": process})

    def become_suite(self, request, streams):
        """In the child: runs the suite, and exits."""
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        os.setsid()
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        for key in list(self.selector.get_map().values()):
            os.close(key.fd) if isinstance(key.fileobj, int) else key.fileobj.close()
        self.selector.close()
        os.environ.clear()
        os.environ.update(self.environment)
        run_suite.run(request["arguments"])

    def end(self, connection, pidfd):
        """A suite has ended."""
        self.selector.unregister(pidfd)
        os.close(pidfd)
        _, status = os.waitpid(self.suites.pop(connection), 0)
        self.send(connection, {"status": os.waitstatus_to_exitcode(status)})

    @staticmethod
    def send(connection, message):
        try:
            connection.send(json.dumps(message).encode())
        except OSError:
            pass  # its process has ended


def start(folder):
    if connection := connect(folder):  # another ctest has started it
        connection.close()
        return
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.chmod(0o700)
    (folder / "socket").unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    at_socket(folder, listener.bind)
    listener.listen(64)
    caller = os.pidfd_open(os.getppid())
    if os.fork():
        return
    os.setsid()
    with open(os.devnull, "r+b") as nothing, open(folder / "log", "wb") as log:
        for number, file in enumerate((nothing, nothing, log)):
            os.dup2(file.fileno(), number)
    server = Server(listener, caller)
    server.run()
    used = resource.getrusage(resource.RUSAGE_SELF)
    for connection in server.stops:
        server.send(connection, {"suites": server.count, "messages": (folder / "log").read_text(),
                                 "cpu_s": used.ru_utime + used.ru_stime})
    shutil.rmtree(folder)


def stop(folder):
    connection = connect(folder)
    found = ask(connection, {}) if connection else {}
    if not found:
        log = folder / "log"
        sys.exit(f"the server is gone\n{log.read_text() if log.exists() else ''}")
    print(found["messages"] + f"{found['suites']} suites ran in the fork server")
    print(f"cpu_s: {found['cpu_s']:.3f}", file=sys.stderr)


if __name__ == "__main__":
    {"start": start, "stop": stop}[sys.argv[1]](pathlib.Path(sys.argv[2]))
