"""Training from a real object store gives the bits that local files give, or one clear error."""
import gzip
import json
import re
import shutil
import tempfile
import unittest

import fault_proxy
import swift_server
from browser import CHROMIUM, Browser
from end_to_end import support

SHARDS = "train-{000000..000003}.tar"
CACHE_BYTES = 64 << 20
STREAMED = {"order": "streamed", "lanes": 4, "samples_per_epoch": 1400}


def setUpModule():
    global swift, proxy
    folder = tempfile.TemporaryDirectory(prefix="scaletrain-swift-")
    unittest.addModuleCleanup(folder.cleanup)
    swift = swift_server.Swift(folder.name)
    unittest.addModuleCleanup(swift.stop)
    swift.put("/digits")
    proxy = fault_proxy.FaultProxy(swift.port)
    unittest.addModuleCleanup(proxy.stop)


def is_of_a_whole_shard(head):
    return b".tar" in head and b"bytes=0-0" not in head


def every_fourth(fault, is_meant=None):
    """For the proxy: the second, sixth, ... of the requests that are meant has the fault."""
    meant = []

    def choose(number, head):
        if is_meant is None or is_meant(head):
            meant.append(number)
            if len(meant) % 4 == 2:
                return fault
        return None
    return choose


def upload(name):
    swift.put(f"/digits/set/{name}", (support.DIGITS / name).read_bytes())


class ObjectStoreTrainingTest(support.RunTestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.digests = {}  # of runs from local files, by their data
        for name in (*(f"train-{i:06}.tar" for i in range(4)), "val-000000.tar", "classes.json"):
            upload(name)

    def setUp(self):
        super().setUp()
        proxy.set_fault(lambda number, head: None)

    def train(self, name, source, cache=0, val=False, expect=0, give_up_after_s=60, ranks=2,
              shards=SHARDS, **more_data):
        """A short run with a cache of so many bytes: (model digest, order digest), or the result."""
        data = {"train": {"shards": f"{source}/{shards}", "augment": ["random_crop"]},
                "image_size": 16, "index_cache": str(self.folder / f"index-{name}"), **more_data}
        if cache:
            data["cache"] = {"folder": str(self.folder / "cache"), "max_bytes": cache}
            del data["index_cache"]
        if val:
            data["val"] = {"shards": f"{source}/val-000000.tar"}
        path = self.recipe(name, data=data, steps=5, batch={"global": 32, "per_device": 16},
                           storage={"stall_timeout_s": 1, "give_up_after_s": give_up_after_s})
        result = self.run_scaletrain("launch", "--nproc", ranks, path, expect=expect,
                                     env=swift_server.environment(proxy.url))
        self.assert_no_secret(result)
        if expect:
            return result
        run = self.folder / name
        return (support.inspect(run)["model_digest"],
                support.records(run, "train")[-1]["order_digest"])

    def local(self, **data):
        """The digests of a run from local files, which is trained once."""
        key = json.dumps(data)
        if key not in self.digests:
            self.digests[key] = self.train("local", support.DIGITS, **data)
        return self.digests[key]

    def assert_no_secret(self, result):
        texts = {"stdout": result.stdout.encode(), "stderr": result.stderr.encode()}
        texts |= {str(file): file.read_bytes()
                  for file in self.folder.rglob("*") if file.is_file()}
        self.assertGreater(len(texts), 5)
        for name, text in texts.items():
            self.assertNotIn(swift_server.SECRET.encode(), text, name)
            self.assertNotIn(b"AWS4-HMAC", text, name)

    def assert_opens(self, page):
        """In a browser, without an error and without a request."""
        if not CHROMIUM:
            return
        with Browser(self.folder / "profile") as browser:
            browser.open(page.as_uri())
            browser.frame()
            self.assertEqual([], browser.errors)
            self.assertEqual([page.as_uri()], [url for url in browser.requests if not url.startswith("data:")])
            self.assertLess(0, browser.evaluate("report.charts.length"))

    def test_a_report_of_a_run_in_the_store_is_that_of_the_local_run(self):
        run = self.folder / "reported"
        self.run_scaletrain("launch", self.recipe("reported", steps=5, log={"every": {"steps": 1}, "images": True}))
        swift.put("/runs")
        for file in run.rglob("*"):
            if file.is_file() and file.suffix in (".json", ".jsonl", ".png"):
                swift.put(f"/runs/here/reported/{file.relative_to(run)}", file.read_bytes())
        pages = []
        for place in (run, "s3://runs/here/reported/"):
            result = self.run_scaletrain("report", place, "-o", self.folder / "page.html",
                                         env=swift_server.environment(proxy.url))
            self.assert_no_secret(result)
            text = (self.folder / "page.html").read_text()
            pages.append(json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', text,
                                              re.S)[1])["runs"][0])
        local, remote = pages
        self.assertEqual("s3://runs/here/reported/", remote.pop("path"))
        local.pop("path")
        # The samples of devices stay on the nodes, beside the logs.
        self.assertIsNone(remote.pop("devices"))
        self.assertEqual(["energy", "curves"], list(local.pop("devices")))
        self.assertIn("train/batch", [picture["name"] for picture in remote["pictures"]])
        self.assertEqual(local, remote)
        self.assert_opens(self.folder / "page.html")
        missing = self.run_scaletrain("report", "s3://runs/absent", expect=65,
                                      env=swift_server.environment(proxy.url))
        self.assertIn("s3://runs/absent: holds no run", missing.stderr)

    def test_the_same_bits_as_from_local_files_by_a_pattern_cold_and_warm(self):
        local = self.local()
        self.assertEqual(self.train("remote", "s3://digits/set", shards="train-*.tar"), local)
        stored = json.loads((self.folder / "remote/recipe.json").read_text())
        self.assertEqual([f"s3://digits/set/train-00000{i}.tar" for i in range(4)],
                         stored["data"]["train"]["shards"])
        error = self.train("none", "s3://digits/set", shards="no-*.tar", expect=65).stderr
        self.assertIn('/data: s3://digits/set/no-*.tar: ', error)
        self.assertIn('fits no object', error)
        self.assertFalse((self.folder / "none").exists())
        self.assertEqual(self.train("cold", "s3://digits/set", cache=CACHE_BYTES, val=True), local)
        self.assertEqual(len(list((self.folder / "cache").glob("*.data"))), 5)
        heads = []
        proxy.set_fault(lambda number, head: heads.append(head))
        self.assertEqual(self.train("warm", "s3://digits/set", cache=CACHE_BYTES, val=True), local)
        of_shards = [head for head in heads if b".tar" in head]
        self.assertGreaterEqual(len(of_shards), 2 * 5)
        for head in of_shards:  # only their versions are asked for
            self.assertIn(b"Range: bytes=0-0\r\n", head)

    def test_streamed_sources_are_those_of_local_files(self):
        orders = set()
        for place, cache, ranks in ((support.DIGITS, 0, 1), ("s3://digits/set", 2 << 20, 2)):
            sources = [{"shards": f"{place}/train-{{000000..000001}}.tar", "weight": 3},
                       {"shards": f"{place}/train-000002.tar", "limit": 100},
                       {"shards": f"{place}/train-000003.tar", "balanced": True}]
            _, order = self.train(f"ranks-{ranks}", place, cache=cache, ranks=ranks, **STREAMED,
                                  train={"sources": sources})
            orders.add(order)
        self.assertEqual(1, len(orders))

    def test_the_output_of_commands_is_the_same_too(self):
        local = self.local()
        self.assertEqual(self.train("pipe", f"pipe:cat {support.DIGITS}", cache=CACHE_BYTES), local)
        error = self.train("failing", f"pipe:false; cat {support.DIGITS}/none", cache=CACHE_BYTES,
                           expect=74).stderr
        self.assertIn("pipe:false; ... train-000000.tar: the command failed: exit code 1", error)

    def test_a_streamed_order_with_a_cache_that_holds_two_shards(self):
        local = self.local(**STREAMED)
        small = 2 * max(f.stat().st_size for f in support.DIGITS.glob("train-*")) + (1 << 18)
        for ranks in (1, 2) if support.LONG else (2,):
            remote = self.train(f"remote-{ranks}", "s3://digits/set", cache=small, ranks=ranks,
                                **STREAMED)
            self.assertEqual(remote[1], local[1])
        self.assertEqual(remote, local)
        held = [f.stat().st_size for f in (self.folder / "cache").glob("*.data")]
        self.assertLessEqual(sum(held), small)
        self.assertLess(len(held), 4)

    def test_compressed_shards_are_the_same_even_when_damaged_on_the_way(self):
        local = self.local(**STREAMED)
        for path in support.DIGITS.glob("train-*.tar"):
            swift.put(f"/digits/set/{path.name}.gz", gzip.compress(path.read_bytes()))
        flips = []

        def flip_the_first(number, head):
            if is_of_a_whole_shard(head) and len(flips) < 2:
                flips.append(number)
                return "flip"
            return None
        for name, fault in (("sound", lambda number, head: None), ("damaged", flip_the_first)):
            if name == "damaged" or support.LONG:
                shutil.rmtree(self.folder / "cache", ignore_errors=True)
                proxy.set_fault(fault)
                self.assertEqual(self.train(name, "s3://digits/set", shards=SHARDS + ".gz",
                                            cache=CACHE_BYTES, **STREAMED), local)
        self.assertEqual(len(flips), 2)

    @unittest.skipUnless(support.LONG, "the short form has the mixed faults")
    def test_the_same_bits_through_faults_that_pass(self):
        local = self.local()
        for fault in ("503", "short", "flip"):
            cache = self.folder / "cache"
            shutil.rmtree(cache, ignore_errors=True)
            proxy.set_fault(every_fourth(fault, is_of_a_whole_shard if fault == "flip" else None))
            self.assertEqual(self.train(f"faults-{fault}", "s3://digits/set", cache=CACHE_BYTES), local)
            self.assertGreater(proxy.faults, 0)

    def test_the_same_bits_through_mixed_faults(self):
        local = self.local()
        for share in fault_proxy.SHARES:
            with self.subTest(share):
                proxy.set_fault(fault_proxy.mixed(share))
                self.assertEqual(self.train(f"mixed-{share}", "s3://digits/set"), local)
                self.assertGreater(proxy.faults, 0)
        # What has a checksum may come damaged too.
        mixed = fault_proxy.mixed(0.5, (*fault_proxy.PASSING, "flip", "stall"))
        proxy.set_fault(lambda number, head: mixed(number, head) if is_of_a_whole_shard(head) else None)
        self.assertEqual(self.train("cached", "s3://digits/set", cache=CACHE_BYTES), local)
        self.assertGreater(proxy.faults, 3)

    def test_a_store_that_goes_away_is_one_error_and_74(self):
        # object_store_test.py and remote_tools_test.py have an expired token.
        words = {"503": "HTTP 503", "403": "HTTP 403, ExpiredToken"}
        for fault, word in list(words.items())[:None if support.LONG else 1]:
            with self.subTest(fault):
                proxy.set_fault(lambda number, head, fault=fault: fault if number > 60 else None)
                self.check_gone(fault, word, cache=0)
        with self.subTest("stall"):  # whole shards: samples are smaller than what comes in a second
            proxy.set_fault(lambda number, head: "stall" if number > 5 else None)
            self.check_gone("stall", "below 4096 bytes/s", cache=CACHE_BYTES)

    def check_gone(self, name, word, cache):
        error = self.train(f"gone-{name}", "s3://digits/set", cache, expect=74,
                           give_up_after_s=0.5).stderr
        self.assertRegex(error, r"s3://digits/set/train-00000\d.tar: ")
        self.assertIn(word, error)
        self.assertNotIn("terminate called", error)

    def test_a_shard_that_is_absent_or_replaced_is_named_and_65(self):
        error = self.train("absent", "s3://digits/none", expect=65).stderr
        self.assertIn("s3://digits/none/train-000000.tar: HTTP 404, NoSuchKey", error)

        def replace(number, head):
            if number == 60:
                for i in range(4):
                    swift.put(f"/digits/set/train-{i:06}.tar",
                              (support.DIGITS / f"train-{3 - i:06}.tar").read_bytes())
        proxy.set_fault(replace)
        self.addCleanup(lambda: [upload(f"train-{i:06}.tar") for i in range(4)])
        error = self.train("replaced", "s3://digits/set", expect=65).stderr
        self.assertRegex(error, r"s3://digits/set/train-00000\d.tar: .*replaced while it was read")


if __name__ == "__main__":
    unittest.main()
