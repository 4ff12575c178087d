"""`scaletrain data ...` on a real object store: read, checked and written there as on a local disk."""
import functools
import glob
import http.server
import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import threading
import time
import unittest

import zstandard

import fault_proxy
import swift_server
from tools_support import (PROGRAM, FolderTest, class_folders, data, data_json, picture, read_bytes,
                           read_json, write_tar)

# docs/reference/data.md has these lines.
FROM_PICTURES_TO_S3 = """
scaletrain data pack pictures s3://photos/set --resize 64 --samples-per-shard 20
scaletrain data card s3://photos/set --licence CC0-1.0 --source "drawn by scaletrain data synth"
scaletrain data check s3://photos/set
scaletrain data stats s3://photos/set --html stats.html
scaletrain data ls s3://photos/set | head -3
scaletrain launch --nproc 2 photos.json
"""
DOCUMENT = pathlib.Path(__file__).resolve().parents[2] / "docs/reference/data.md"


def setUpModule():
    global swift, proxy
    folder = tempfile.TemporaryDirectory(prefix="scaletrain-swift-")
    unittest.addModuleCleanup(folder.cleanup)
    swift = swift_server.Swift(folder.name)
    unittest.addModuleCleanup(swift.stop)
    proxy = fault_proxy.FaultProxy(swift.port)
    unittest.addModuleCleanup(proxy.stop)
    before = dict(os.environ)
    unittest.addModuleCleanup(lambda: (os.environ.clear(), os.environ.update(before)))
    os.environ.update(swift_server.environment(proxy.url))


class RangeHandler(http.server.BaseHTTPRequestHandler):
    """A plain web server that answers ranges."""

    def __init__(self, folder, *arguments):
        self.folder = folder
        super().__init__(*arguments)

    def do_GET(self):
        path = os.path.join(self.folder, self.path.split("?")[0].lstrip("/"))
        if not os.path.isfile(path):
            self.send_error(404)
            return
        content = read_bytes(path)
        first, last = map(int, re.match(r"bytes=(\d+)-(\d+)", self.headers["Range"]).groups())
        part = content[first:last + 1]
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {first}-{first + len(part) - 1}/{len(content)}")
        self.send_header("Content-Length", str(len(part)))
        self.send_header("ETag", '"one"')
        self.end_headers()
        self.wfile.write(part)

    def log_message(self, *arguments):
        pass


class RemoteTest(FolderTest):
    buckets = 0

    def setUp(self):
        super().setUp()
        proxy.set_fault(lambda number, head: None)
        RemoteTest.buckets += 1
        self.bucket = f"bucket{RemoteTest.buckets}"
        swift.put(f"/{self.bucket}")
        self.remote = f"s3://{self.bucket}/a b"

    def upload(self, folder):
        for path in sorted(glob.glob(os.path.join(folder, "*"))):
            swift.put(f"/{self.bucket}/a%20b/{os.path.basename(path)}", read_bytes(path))

    def stored(self, name):
        status, content = swift.request("GET", f"/{self.bucket}/a%20b/{name}")
        self.assertEqual(200, status, name)
        return content

    def shards(self, count=40):
        data("synth", self.path("local"), "--samples", count, "--classes", 4, "--size", 24,
             "--samples-per-shard", 15)
        return self.path("local")


class Read(RemoteTest):
    def test_reports_are_those_of_local_files(self):
        local = self.shards()
        write_tar(os.path.join(local, "twice.tar"), [("x.jpg", picture(1)), ("x.cls", b"0"),
                                                     ("y.jpg", picture(1)), ("y.cls", b"1")])
        os.remove(os.path.join(local, "train-000001.tar.idx"))
        part = write_tar(self.path("part.tar"), [("z.jpg", picture(2)), ("z.cls", b"1")])
        with open(os.path.join(local, "packed.tar.zst"), "wb") as file:
            file.write(zstandard.ZstdCompressor().compress(read_bytes(part)))
        self.upload(local)

        def both(*arguments, code=0):
            """The output for local shards and for remote ones, with the folder's name taken out."""
            return [re.sub(re.escape(place.rstrip("/")) + "/?", "", data(*arguments, place, code=code))
                    for place in (local, self.remote, self.remote + "/")]
        for arguments in (["ls"], ["ls", "--json"], ["stats", "--json"], ["check", "--json"],
                          ["dedup", "--near", 2], ["get", "train-00000033"], ["get", "z"],
                          ["get", "y", "--field", "cls"]):
            if arguments[0] == "get":
                found = [data(*arguments, place, text=False) for place in (local, self.remote)]
            else:
                found = both(*arguments)
            for other in found[1:]:
                self.assertEqual(found[0], other, arguments)
            self.assertGreater(len(found[0]), 0)
        self.assertIn("equal: twice.tar/x (0) twice.tar/y (1)", both("dedup")[1])
        self.assertIn("packed.tar.zst: z is also", both("split", "--check", part, code=65)[1])
        page = self.path("page.html")
        data("stats", self.remote, "--html", page)
        self.assertIn(b"<h1>s3://", read_bytes(page))

    def test_a_set_that_an_interrupted_pack_left_is_incomplete(self):
        self.upload(self.shards())
        folder, = data_json("check", self.remote)["folders"]
        self.assertEqual([], folder["warnings"])
        swift.request("DELETE", f"/{self.bucket}/a%20b/classes.json")  # it would have come last
        folder, = data_json("check", self.remote)["folders"]
        self.assertEqual(["there is no classes.json, which pack and import write last: a set of "
                          "theirs is incomplete"], folder["warnings"])

    def test_patterns_and_what_is_not_there(self):
        local = self.shards()
        self.upload(local)
        report = data_json("check", self.remote + "/train-{000000..000002}.tar")
        self.assertEqual(40, report["folders"][0]["samples"])
        data("import", "tar", self.remote, "--out", self.path("imported"))
        samples = [[line.split("\t", 1)[1] for line in data("ls", place).splitlines()]
                   for place in (local, self.path("imported"))]
        self.assertEqual(*samples)
        text = data("ls", self.remote + "/train-000009.tar", code=65)
        self.assertIn("train-000009.tar: HTTP 404, NoSuchKey", text)
        self.assertIn("none: HTTP 404, NoSuchKey", data("ls", f"s3://{self.bucket}/none", code=65))
        self.assertIn("is a folder without a .tar",
                      data("ls", f"s3://{self.bucket}/none/", code=65))
        report = data_json("check", self.remote + "/train-{000002..000003}.tar", code=65)
        folder, = report["folders"]
        self.assertEqual(([], ["train-000003.tar"]),
                         (folder["problems"], [shard["shard"] for shard in folder["unchecked"]]))
        self.assertIn("HTTP 404, NoSuchKey", folder["unchecked"][0]["problem"])

    def test_a_shard_is_read_in_large_pieces(self):
        local = self.shards(600)
        self.upload(local)
        requests = []
        proxy.set_fault(lambda number, head: requests.append(head))
        data("stats", self.remote + "/train-000000.tar")
        of_shard = [head for head in requests if b"train-000000.tar " in head.split(b"\r\n")[0]]
        # Its version twice, at the start and when its turn comes, and one piece of 8 MiB.
        self.assertEqual(3, len(of_shard), of_shard)

    def test_a_plain_web_server(self):
        local = self.shards()
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0),
                                                 functools.partial(RangeHandler, local))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        url = f"http://127.0.0.1:{server.server_address[1]}"
        secret = "?sig=" + swift_server.SECRET
        shards = [f"{url}/train-{i:06}.tar{secret}" for i in range(3)]
        self.assertEqual(data("ls", local), data("ls", *shards))
        report = data_json("stats", *shards)
        self.assertEqual(data_json("stats", local)["mean"], report["mean"])
        self.assertNotIn("sig=" + swift_server.SECRET, data("ls", "--json", *shards))
        text = data("ls", f"{url}/none.tar{secret}", code=65)
        self.assertIn("/none.tar?***: HTTP 404", text)
        self.assertIn("a plain web server is read-only",
                      data("synth", url + "/out", "--samples", 1, code=65))

    def test_repair_index_and_card_are_written_beside_the_shards(self):
        local = self.shards()
        broken = [("k.jpg", b"text"), ("k.cls", b"1")]
        write_tar(os.path.join(local, "wrong.tar"), broken)
        self.upload(local)
        data("check", self.remote, code=65)
        data("check", "--repair", self.remote)
        self.assertEqual("k", json.loads(self.stored("quarantine.json"))["samples"][0]["key"])
        self.assertEqual(40, data_json("stats", self.remote)["samples"])
        rows = data_json("index", "--hash", self.remote)["shards"]
        data("check", "--repair", local)
        self.assertEqual([(r["samples"], r["sha256"]) for r in data_json("index", "--hash", local)["shards"]],
                         [(r["samples"], r["sha256"]) for r in rows])
        self.assertGreater(len(self.stored("train-000000.tar.idx")), 16 * 15)
        data("index", self.remote, "--index-cache", self.path("indexes"))
        self.assertEqual(4, len(os.listdir(self.path("indexes"))))
        data("card", self.remote, "--licence", "CC0")
        data("card", local, "--licence", "CC0", "--set-name", "a b")
        there, here = json.loads(self.stored("card.json")), read_json(self.path("local", "card.json"))
        self.assertEqual({**here, "time": 0}, {**there, "time": 0})
        # The card's hashes are compared.
        data("check", self.remote)
        swift.put(f"/{self.bucket}/a%20b/train-000001.tar", self.stored("train-000002.tar"))
        report = data_json("check", self.remote, code=65)
        problem, = report["folders"][0]["problems"]
        self.assertRegex(problem["problem"], "^its SHA-256 is [0-9a-f]{64}, and [0-9a-f]{64} was")

    def test_a_shard_that_was_put_right_leaves_an_empty_list(self):
        local = self.shards()
        wrong = write_tar(os.path.join(local, "wrong.tar"), [("k.jpg", b"text"), ("k.cls", b"1")])
        self.upload(local)
        data("check", "--repair", self.remote)
        write_tar(wrong, [("k.jpg", picture(1)), ("k.cls", b"1")])
        self.upload(local)
        self.assertIn("41 samples, 0 wrong; quarantine.json was written, 1 entry dropped\n",
                      data("check", "--repair", self.remote))
        self.assertEqual({"version": 1, "shards": [], "samples": []},
                         json.loads(self.stored("quarantine.json")))


class Write(RemoteTest):
    def test_objects_equal_the_files_of_a_local_folder(self):
        class_folders(self.path("pictures"), each=8)
        flags = ["--samples-per-shard", 10, "--resize", 16]
        data("pack", self.path("pictures"), self.path("packed"), *flags)
        report = data_json("pack", self.path("pictures"), self.remote, *flags)
        names = sorted(os.path.basename(p) for p in glob.glob(self.path("packed", "*")))
        self.assertEqual(7, len(names))  # three shards, three indexes, classes.json
        for name in names:
            here, there = read_bytes(self.path("packed", name)), self.stored(name)
            # An index holds a time, or the version that the server tells.
            self.assertEqual(len(here), len(there), name)
            if not name.endswith(".idx"):
                self.assertEqual(here, there, name)
        self.assertEqual(24, report["samples"])
        data("check", self.remote)
        text = data("pack", self.path("pictures"), self.remote, code=2)
        self.assertIn("train-000000.tar: exists already", text)
        text = data("pack", self.path("pictures"), self.remote, "--overwrite", code=2)
        self.assertIn("nothing is removed from an object store", text)
        for name, command in (("split", ["--val", 0.25]), ("dedup", [])):
            out = f"s3://{self.bucket}/{name}"
            data(name, self.remote, "--out", out, *command)
            data(name, self.path("packed"), "--out", self.path(name), *command)
            for path in glob.glob(self.path(name, "*.tar")) + [self.path(name, "classes.json")]:
                status, content = swift.request(
                    "GET", f"/{self.bucket}/{name}/{os.path.basename(path)}")
                self.assertEqual((200, read_bytes(path)), (status, content))

    def test_an_index_that_was_written_is_used(self):
        data("synth", self.remote, "--samples", 20, "--size", 16)
        heads = []
        proxy.set_fault(lambda number, head: heads.append(head))
        data("bench", self.remote + "/train-000000.tar", "--seconds", 0.01)
        self.assertTrue(any(b"train-000000.tar.idx" in head for head in heads))
        whole = f"bytes=0-{len(self.stored('train-000000.tar')) - 1}\r".encode()
        self.assertFalse(any(whole in head for head in heads), "the shard is not read through")

    def be_quicker(self, name, content):
        """What the next command puts there as `name`, another has put there just before."""
        def put_first(number, head):
            if head.startswith(b"PUT") and f"{name} ".encode() in head.split(b"\r\n")[0]:
                swift.put(f"/{self.bucket}/a%20b/{name}", content)
        proxy.set_fault(put_first)

    def test_one_of_two_writers_wins(self):
        self.be_quicker("train-000000.tar", b"other")
        text = data("synth", self.remote, "--samples", 5, "--size", 16, code=2)
        self.assertIn("train-000000.tar: was written by another command", text)
        self.assertEqual(b"other", self.stored("train-000000.tar"))
        self.assertNotIn(swift_server.SECRET, text)

    def test_one_of_two_lists_of_classes_stays(self):
        self.be_quicker("classes.json", b'["other"]')
        text = data("synth", self.remote, "--samples", 5, "--size", 16, code=65)
        self.assertIn("classes.json: has other classes than the new shards\n  another command wrote "
                      "it in the meantime: remove the 1 shard train-*.tar", text)
        self.assertEqual(b'["other"]', self.stored("classes.json"))

    def test_a_command_that_is_stopped_tells_what_is_there(self):
        process = subprocess.Popen(
            [PROGRAM, "data", "synth", self.remote, "--samples", str(1 << 40), "--size", "16",
             "--samples-per-shard", "10"], stderr=subprocess.PIPE, text=True)
        end = time.monotonic() + 60
        while swift.request("GET", f"/{self.bucket}/a%20b/train-000001.tar.idx")[0] != 200:
            self.assertLess(time.monotonic(), end)
        process.send_signal(signal.SIGTERM)
        text = process.communicate(timeout=60)[1]
        self.assertEqual(75, process.returncode)
        written = int(re.fullmatch(
            rf"stopped: the first (\d+) shards are in {re.escape(self.remote)}\n  remove them before "
            "you begin again, or choose another --name\n", text)[1])
        self.assertGreaterEqual(written, 2)
        data("check", f"{self.remote}/train-{{000000..{written - 1:06d}}}.tar")


class Faults(RemoteTest):
    """Rows 26 and 45 of the fault list, for the tools."""

    def test_faults_that_pass_change_nothing(self):
        self.upload(self.shards())
        sound = data("check", "--json", self.remote)
        for fault in ("500", "reset", "short"):
            proxy.set_fault(lambda number, head, fault=fault: fault if number % 3 == 1 else None)
            self.assertEqual(sound, data("check", "--json", self.remote))
            self.assertGreater(proxy.faults, 0)

    def test_mixed_faults_change_nothing(self):
        local, split = self.path("packed"), self.path("split")
        flags = ["--samples-per-shard", 3]
        class_folders(self.path("pictures"), each=10)
        data("pack", self.path("pictures"), local, *flags)
        data("split", local, "--val", 0.25, "--out", split)
        data("pack", self.path("pictures"), f"s3://{self.bucket}/sound", *flags)
        sound = data_json("check", f"s3://{self.bucket}/sound")["folders"][0]
        for share in fault_proxy.SHARES:
            packed, parts = (f"s3://{self.bucket}/{name}-{share}" for name in ("packed", "split"))
            with self.subTest(share):
                proxy.set_fault(fault_proxy.mixed(share))
                data("pack", self.path("pictures"), packed, *flags)
                data("split", packed, "--val", 0.25, "--out", parts)
                self.assertEqual({**sound, "folder": packed}, data_json("check", packed)["folders"][0])
                self.assertGreater(proxy.faults, 0)
                for folder, remote in ((local, packed), (split, parts)):
                    for path in glob.glob(os.path.join(folder, "*.tar")):
                        stored = swift.request("GET", f"/{remote[5:]}/{os.path.basename(path)}")
                        self.assertEqual((200, read_bytes(path)), stored, path)

    def test_refused_access_is_told_at_once_and_without_secrets(self):
        self.upload(self.shards())
        for after in (0, 6):
            proxy.set_fault(lambda number, head, after=after: "403" if number >= after else None)
            text = data("stats", self.remote, code=74)
            self.assertIn("HTTP 403, ExpiredToken", text)
            self.assertNotIn(swift_server.SECRET, text)

    def test_a_shard_that_is_replaced_is_named(self):
        local = self.shards()
        self.upload(local)
        other = read_bytes(os.path.join(local, "train-000001.tar"))

        def replace(number, head):
            if b"train-000002.tar " in head.split(b"\r\n")[0] and b"bytes=0-0\r" not in head:
                swift.put(f"/{self.bucket}/a%20b/train-000002.tar", other)
        proxy.set_fault(replace)
        text = data("stats", self.remote, code=65)
        self.assertRegex(text, "train-000002.tar: .*replaced while it was read")


class Documented(FolderTest):
    def test_from_pictures_to_verified_shards(self):
        swift.put("/photos")
        class_folders(self.path("pictures"), each=20)
        recipe = re.search(r'```json\n(\{\n  "name": "photos".*?)```', DOCUMENT.read_text(), re.DOTALL)
        self.write("photos.json", recipe[1])
        environment = dict(os.environ,
                           PATH=f"{os.path.dirname(PROGRAM)}:{os.environ['PATH']}")
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", FROM_PICTURES_TO_S3],
                              cwd=self.folder, env=environment, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=300, check=False, text=True)
        self.assertEqual(0, done.returncode, done.stdout)
        self.assertIn("60 samples, 0 wrong", done.stdout)
        self.assertNotIn(swift_server.SECRET, done.stdout)
        self.assertTrue(os.path.exists(self.path("stats.html")))
        self.assertEqual(3, len(glob.glob(self.path("cache", "*.data"))))
        self.assertTrue(os.path.exists(self.path("runs/photos/finished.json")))


if __name__ == "__main__":
    unittest.main()
