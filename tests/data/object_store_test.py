"""Reading from and writing to a real object store, soundly and through a proxy that answers wrongly."""
import json
import os
import pathlib
import random
import ssl
import subprocess
import tempfile
import time
import unittest

import fault_proxy
import swift_server

PROGRAM = pathlib.Path(os.environ["SCALETRAIN_BIN"]) / "storage_program"
OBJECT = random.Random(5).randbytes(9_000_000)  # more than one piece of 8 MiB
CACHE_BYTES = 64 << 20


def setUpModule():
    global swift, proxy
    folder = tempfile.TemporaryDirectory(prefix="scaletrain-swift-")
    unittest.addModuleCleanup(folder.cleanup)
    swift = swift_server.Swift(folder.name)
    unittest.addModuleCleanup(swift.stop)
    swift.put("/bucket")
    swift.put("/bucket/set/large.tar", OBJECT)
    swift.put("/bucket/set/small%20%2B%C3%A4.tar", b"small")
    swift.put("/bucket/set/sub/deep.tar", b"deep")
    proxy = fault_proxy.FaultProxy(swift.port)
    unittest.addModuleCleanup(proxy.stop)


class StoreTestCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="scaletrain-test-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        proxy.set_fault(lambda number, head: None)

    def start(self, *arguments, cache=None, give_up_after_s=60, variables=None):
        """Starts the program with `cache` as its folder."""
        settings = {"storage": {"stall_timeout_s": 1, "give_up_after_s": give_up_after_s}}
        if cache:
            settings["cache"] = {"folder": str(cache), "max_bytes": CACHE_BYTES}
        process = subprocess.Popen(
            [PROGRAM, json.dumps(settings), *map(str, arguments)],
            env={**os.environ, **swift_server.environment(proxy.url), **(variables or {})},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def run_program(self, *arguments, expect=0, **options):
        """Standard output, or the error where the status is another one."""
        process = self.start(*arguments, **options)
        output, error = process.communicate(timeout=120)
        self.assertEqual(process.returncode, expect, error.decode())
        self.assertNotIn(swift_server.SECRET, error.decode())
        return error.decode() if expect else output


class ReadTest(StoreTestCase):
    def test_objects_are_read_whole_and_in_ranges_with_and_without_a_cache(self):
        self.assertEqual(self.run_program("get", "s3://bucket/set/large.tar"), OBJECT)
        self.assertEqual(self.run_program("ranges", "s3://bucket/set/large.tar", 700_001), OBJECT)
        self.assertEqual(self.run_program("get", "s3://bucket/set/small +ä.tar"), b"small")

    def test_a_cache_on_a_disk_and_on_tmpfs(self):
        with tempfile.TemporaryDirectory(dir="/dev/shm") as memory:
            for cache in (self.folder / "cache", pathlib.Path(memory)):
                for _ in ("cold", "warm"):
                    self.assertEqual(
                        self.run_program("get", "s3://bucket/set/large.tar", cache=cache), OBJECT)
                self.assertEqual(len(list(cache.glob("*.data"))), 1)

    def test_programs_that_share_a_cache_fetch_once(self):
        proxy.set_fault(lambda number, head: "delay")
        path = "s3://bucket/set/large.tar"
        programs = [self.start("get", path, cache=self.folder / "cache") for _ in range(4)]
        for program in programs:
            self.assertEqual(program.communicate(timeout=120)[0], OBJECT)
        # Each asks for the version; one of them again for it and for two pieces.
        self.assertEqual(proxy.requests, 4 + 3)

    def test_a_killed_program_does_not_stop_another(self):
        proxy.set_fault(lambda number, head: "stall" if number == 2 else None)
        cache = self.folder / "cache"
        killed = self.start("get", "s3://bucket/set/large.tar", cache=cache)
        deadline = time.monotonic() + 60
        while not list(cache.glob("*.part")) and time.monotonic() < deadline:
            time.sleep(0.01)
        other = self.start("get", "s3://bucket/set/large.tar", cache=cache)
        killed.kill()
        self.assertEqual(other.communicate(timeout=120)[0], OBJECT)
        self.assertEqual([], list(cache.glob("*.part")))

    def test_a_folder_is_listed(self):
        self.assertEqual(self.run_program("list", "s3://bucket/set").decode(),
                         "large.tar\nsmall +ä.tar\nsub/\n")
        many = {f"/bucket/many/{i:04}" for i in range(12)}
        for path in many:
            swift.put(path, b"x")
        self.assertEqual(len(self.run_program("list", "s3://bucket/many/").split()), 12)

    def test_missing_and_forbidden_objects_are_errors(self):
        error = self.run_program("get", "s3://bucket/none.tar", expect=65)
        self.assertIn("s3://bucket/none.tar: HTTP 404, NoSuchKey", error)
        error = self.run_program("get", "s3://none/none.tar", expect=65)
        self.assertIn("NoSuchBucket", error)
        error = self.run_program("get", "s3://bucket/set/large.tar", expect=74,
                                 variables={"AWS_SECRET_ACCESS_KEY": "wrong"})
        self.assertIn("HTTP 403, SignatureDoesNotMatch", error)
        self.assertIn("AWS_SECRET_ACCESS_KEY", error)
        self.assertEqual(proxy.requests, 3, "none of them is asked for again")


class TlsTest(StoreTestCase):
    def test_a_certificate_must_be_trusted(self):
        key, certificate = self.folder / "key.pem", self.folder / "certificate.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1",
                        "-keyout", key, "-out", certificate, "-subj", "/CN=127.0.0.1",
                        "-addext", "subjectAltName=IP:127.0.0.1"],
                       check=True, capture_output=True, timeout=60)
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(certificate, key)
        secure = fault_proxy.FaultProxy(swift.port, tls)
        self.addCleanup(secure.stop)
        variables = {"AWS_ENDPOINT_URL": secure.url}
        error = self.run_program("get", "s3://bucket/set/sub/deep.tar", expect=74,
                                 variables=variables)
        self.assertIn("SSL peer certificate", error)
        self.assertNotIn("failed after", error)
        variables["AWS_CA_BUNDLE"] = str(certificate)
        self.assertEqual(self.run_program("get", "s3://bucket/set/sub/deep.tar",
                                          variables=variables), b"deep")


class WriteTest(StoreTestCase):
    def test_what_is_written_is_read(self):
        path = self.folder / "file"
        path.write_bytes(OBJECT)
        self.run_program("put", "s3://bucket/out/a b.bin", path)
        self.assertEqual(self.run_program("get", "s3://bucket/out/a b.bin"), OBJECT)
        path.write_bytes(b"")
        self.run_program("put", "s3://bucket/out/a b.bin", path)
        self.assertEqual(self.run_program("get", "s3://bucket/out/a b.bin"), b"")

    def test_one_of_several_writers_of_a_new_object_wins(self):
        for name in ("one", "two"):
            (self.folder / name).write_text(name)
        self.assertEqual(self.run_program("put-new", "s3://bucket/out/new", self.folder / "one"),
                         b"true\n")
        self.assertEqual(self.run_program("put-new", "s3://bucket/out/new", self.folder / "two"),
                         b"false\n")
        self.assertEqual(self.run_program("get", "s3://bucket/out/new"), b"one")

    def test_a_write_survives_what_passes(self):
        path = self.folder / "file"
        path.write_bytes(OBJECT)
        proxy.set_fault(lambda number, head: "503" if number < 3 else None)
        self.run_program("put", "s3://bucket/out/storm", path)
        self.assertEqual(self.run_program("get", "s3://bucket/out/storm"), OBJECT)


class FaultTest(StoreTestCase):
    """Rows 26 and 45 of the fault list: the same bytes, or one clear error and exit 74."""

    def test_faults_that_pass_do_not_change_a_byte(self):
        for fault in ("delay", "500", "503", "reset", "short", "range", "long", "empty"):
            with self.subTest(fault):
                # All but every third request.
                proxy.set_fault(lambda number, head, fault=fault: fault if number % 3 else None)
                self.assertEqual(self.run_program("get", "s3://bucket/set/large.tar"), OBJECT)
                # Nine pieces, each tried three times; or ten requests with six of them late. On a
                # busy machine a sound answer may stall too.
                self.assertGreaterEqual(proxy.faults, 6 if fault == "delay" else 2 * 9)

    def test_a_flipped_byte_is_noticed_by_the_cache(self):
        # The first piece of the first copy.
        proxy.set_fault(lambda number, head: "flip" if number == 2 else None)
        self.assertEqual(
            self.run_program("get", "s3://bucket/set/large.tar", cache=self.folder / "cache"), OBJECT)
        self.assertEqual(proxy.faults, 1)
        self.assertGreaterEqual(proxy.requests, 6)

    def test_faults_that_stay_end_with_one_error(self):
        for fault, word in (("500", "HTTP 500"), ("503", "HTTP 503"), ("reset", "failed after"),
                            ("short", "failed after"), ("range", "were asked for"),
                            ("stall", "below 4096 bytes/s")):
            with self.subTest(fault):
                proxy.set_fault(lambda number, head, fault=fault: fault if number else None)
                error = self.run_program("get", "s3://bucket/set/large.tar", expect=74,
                                         give_up_after_s=0.5)
                self.assertRegex(
                    error, rf"s3://bucket/set/large.tar: bytes \d+-\d+ at {proxy.url}: ")
                self.assertIn(word, error)
                self.assertIn("failed after", error)

    def test_an_expired_token_is_told_at_once(self):
        proxy.set_fault(lambda number, head: "403" if number else None)
        error = self.run_program("get", "s3://bucket/set/large.tar", expect=74)
        self.assertIn("HTTP 403, ExpiredToken", error)
        self.assertEqual(proxy.requests, 2)

    def test_an_object_that_is_replaced_while_it_is_read(self):
        swift.put("/bucket/replaced", OBJECT)

        def replace(number, head):
            if number == 1:
                swift.put("/bucket/replaced", OBJECT[::-1])
        proxy.set_fault(replace)
        error = self.run_program("get", "s3://bucket/replaced", expect=65)
        self.assertIn("s3://bucket/replaced: HTTP 412", error)
        self.assertIn("was replaced while it was read", error)

    def test_an_object_that_goes_while_it_is_read(self):
        swift.put("/bucket/gone", OBJECT)

        def remove(number, head):
            if number == 2:
                swift.request("DELETE", "/bucket/gone")
        proxy.set_fault(remove)
        error = self.run_program("ranges", "s3://bucket/gone", 1_000_000, expect=65)
        self.assertIn("s3://bucket/gone: HTTP 404", error)


if __name__ == "__main__":
    unittest.main()
