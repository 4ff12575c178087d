"""An HTTP proxy in front of a server that answers wrongly when a test says so."""
import random
import re
import socket
import socketserver
import struct
import threading
import time

from end_to_end import support

REFUSALS = {
    "500": b"HTTP/1.1 500 Internal Error\r\nContent-Length: 0\r\n\r\n",
    "503": b"HTTP/1.1 503 Slow Down\r\nContent-Length: 0\r\n\r\n",
    "429": b"HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0\r\n\r\n",
    "403": b"HTTP/1.1 403 Forbidden\r\nContent-Length: 40\r\n\r\n"
           b"<Error><Code>ExpiredToken</Code></Error>",
}
# Of every answer, whatever it is of. "long": a body longer than its header says; "garbage": bytes
# behind a sound one; "empty": none at all.
PASSING = ("500", "503", "429", "delay", "pause", "reset", "short", "long", "garbage", "range",
           "empty")
# Of the requests, those that mixed() answers wrongly.
SHARES = (0.01, 0.05, 0.2) if support.LONG else (0.2,)


def mixed(share, kinds=PASSING, seed=1):
    """A fault for this share of the requests, of all kinds alike."""
    draws = random.Random(seed)
    return lambda number, head: draws.choice(kinds) if draws.random() < share else None


def receive_message(reader):
    """(head, body) of one request or answer; (b"", b"") at the end."""
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        line = reader.readline()
        if not line:
            return b"", b""
        head += line
    length = re.search(rb"content-length: *(\d+)", head, re.IGNORECASE)
    return head, reader.read(int(length[1])) if length else b""


class FaultProxy(socketserver.ThreadingTCPServer):
    """`fault(number, head)` gives the name of the fault for request `number` (from 0), or None."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, port, tls=None, own_port=0):
        super().__init__(("127.0.0.1", own_port), Handler)
        self.server_port = port
        self.url = f"http{'s' if tls else ''}://127.0.0.1:{self.server_address[1]}"
        if tls:
            self.socket = tls.wrap_socket(self.socket, server_side=True)
        self.lock = threading.Lock()
        self.set_fault(lambda number, head: None)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def set_fault(self, fault):
        with self.lock:
            self.fault, self.requests, self.faults = fault, 0, 0

    def next_fault(self, head):
        with self.lock:
            fault = self.fault(self.requests, head)
            self.requests += 1
            self.faults += fault is not None
            return fault

    def handle_error(self, request, client_address):
        pass  # a client that does not trust our certificate

    def stop(self):
        self.shutdown()
        self.server_close()


class Handler(socketserver.StreamRequestHandler):
    """The requests of one connection, which is kept where the fault does not end it."""

    def handle(self):
        try:
            while (message := receive_message(self.rfile))[0]:
                if not self.answer(self.server.next_fault(message[0]), *message):
                    return
        except OSError:
            pass  # the client has gone

    def answer(self, fault, head, body):
        """Whether the connection goes on."""
        if fault in REFUSALS:
            self.wfile.write(REFUSALS[fault])
            return True
        if fault == "hold":  # until the client has gone
            self.request.recv(1)
        if fault in ("empty", "hold"):
            return False
        if fault == "delay":
            time.sleep(0.3)
        if fault == "damage" and body:  # of the request
            body = body[:-1] + bytes([body[-1] ^ 1])
        head, body = self.ask_server(head, body)
        half = len(body) // 2
        if fault == "range":
            head = re.sub(rb"(?i)content-range: bytes \d+-", b"Content-Range: bytes 1-", head)
        if fault == "flip" and body:
            body = body[:half] + bytes([body[half] ^ 1]) + body[half + 1:]
        if fault == "long":
            head = re.sub(rb"(?i)(content-length:) *(\d+)",
                          lambda m: b"%s %d" % (m[1], max(0, int(m[2]) - 5)), head)
        if fault == "garbage":
            body += b"garbage"
        self.wfile.write(head)
        if fault in ("short", "reset"):
            self.wfile.write(body[:half])
            if fault == "reset":
                self.request.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.request.close()
            return False
        if fault == "stall":
            for begin in range(0, len(body), 1024):
                self.wfile.write(body[begin:begin + 1024])
                time.sleep(1)
            return True
        self.wfile.write(body[:half])
        if fault == "pause":
            time.sleep(0.5)
        self.wfile.write(body[half:])
        return True

    def ask_server(self, head, body):
        with socket.create_connection(("127.0.0.1", self.server.server_port), timeout=60) as server:
            server.sendall(head.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n") + body)
            with server.makefile("rb") as reader:
                head, body = receive_message(reader)
        return re.sub(rb"(?i)\r\nconnection: [^\r]*", b"", head), body
