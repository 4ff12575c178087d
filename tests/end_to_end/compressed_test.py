"""Compressed shards: what plain tars with the same members give, or one clear error."""
import gzip
import pathlib
import resource
import unittest

import zstandard
from end_to_end import support
from end_to_end.data_order_test import write_shards

CACHE_BYTES = 64 << 20
PACKERS = {".tar.gz": gzip.compress, ".tgz": gzip.compress,
           ".tar.zst": zstandard.ZstdCompressor().compress}


def pack(paths, ending):
    """The tars compressed, in a folder beside theirs."""
    packed = []
    for path in map(pathlib.Path, paths):
        folder = path.parent.with_name(path.parent.name + ending)
        folder.mkdir(exist_ok=True)
        packed.append(str(folder / (path.stem + ending)))
        pathlib.Path(packed[-1]).write_bytes(PACKERS[ending](path.read_bytes()))
    return packed


class CompressedTest(support.RunTestCase):
    def setUp(self):
        super().setUp()
        self.shards = write_shards(self.folder / "set", "train", [90, 10, 55, 1, 120, 24])
        self.common = {"steps": 14, "checkpoint": {"every": {"steps": 4}, "async": False},
                       "batch": {"global": 32, "per_device": 8}}

    def launch(self, name, shards, ranks=1, expect=0, flags=(), env=None, cache=CACHE_BYTES, **more):
        """(order digests, model digest) of a streamed run, or what was written to stderr."""
        data = {"train": {"shards": shards}, "image_size": 16, "order": "streamed", "lanes": 8,
                "shuffle_shards": 2, "samples_per_epoch": 300, **more}
        if cache:
            data["cache"] = {"folder": str(self.folder / "cache"), "max_bytes": cache}
        path = self.recipe(name, data=data, **self.common)
        result = self.run_scaletrain("launch", "--nproc", ranks, *flags, path, expect=expect, env=env)
        if expect:
            return result.stderr
        run = self.folder / name
        return ([r["order_digest"] for r in support.records(run, "train")],
                support.inspect(run)["model_digest"])

    def test_the_same_bits_as_from_plain_tars(self):
        plain = self.launch("plain", self.shards)
        for ending in (".tar.gz", ".tar.zst"):
            with self.subTest(ending):
                packed = pack(self.shards, ending)
                self.assertEqual(self.launch(f"one{ending}", packed), plain)
                # Another number of ranks sums in another order: the samples are the same.
                self.assertEqual(self.launch(f"two{ending}", packed, ranks=2, threads=3)[0], plain[0])
        self.assertEqual(list((self.folder / "set.tar.gz").glob("*.idx")), [])

    def test_a_cache_of_three_shards_held_out_sets_and_four_ranks(self):
        small = max(pathlib.Path(path).stat().st_size for path in self.shards) * 3
        small = max(small, 1 << 20)
        val = write_shards(self.folder / "val", "val", [40])
        plain = self.launch("plain", self.shards, val={"shards": val})
        packed = pack(self.shards, ".tar.zst")
        ours = self.launch("packed", packed, ranks=4, cache=small, val={"shards": pack(val, ".tgz")})
        self.assertEqual(ours[0], plain[0])
        counts = [[r["count"] for r in support.records(self.folder / run, "eval")]
                  for run in ("plain", "packed")]
        self.assertEqual(counts[0], counts[1])
        self.assertEqual(set(counts[0]), {40})

    def test_a_killed_run_on_compressed_shards_resumes_in_mid_epoch(self):
        packed = pack(self.shards, ".tar.gz")
        alone = self.launch("alone", packed, ranks=2)
        self.launch("killed", packed, ranks=2, expect=137, env={"SCALETRAIN_FAULT": "kill@11,1"})
        for file in (self.folder / "cache").glob("*.*"):
            file.unlink()  # as on another node
        self.assertEqual(self.launch("killed", packed, ranks=2, flags=["--resume", "auto"]), alone)

    def test_what_is_in_quarantine_is_left_out(self):
        val = pack(write_shards(self.folder / "val", "val", [40], bad={5}), ".tar.gz")
        self.run_scaletrain("data", "check", "--repair", *val)
        self.launch("run", pack(self.shards, ".tar.gz"), val={"shards": val})
        self.assertEqual({39}, {r["count"] for r in support.records(self.folder / "run", "eval")})

    def test_wrong_orders_and_a_missing_cache_are_told_before_anything_starts(self):
        packed = pack(self.shards, ".tar.gz")
        error = self.launch("indexed", packed, expect=2, order="indexed")
        self.assertIn('/data/order: "indexed" reads all shards at the same time, and train-000.tar.gz is '
                      'compressed\n  use "streamed", or tars that are not compressed', error)
        error = self.launch("none", packed, expect=2, cache=0)
        self.assertIn('/data: names compressed shards and no "cache"\n  add "cache": ', error)

    def test_damaged_ones_are_named_and_65(self):
        packed = pack(self.shards[:1], ".tar.gz")
        path = pathlib.Path(packed[0])
        whole = path.read_bytes()
        tar = pathlib.Path(self.shards[0]).read_bytes()
        for name, data, word in (
                ("cut", whole[:len(whole) // 2], "does not decompress: truncated gzip input"),
                ("plain", tar, "is neither gzip nor zstd"),
                ("empty", b"", "neither gzip nor zstd"),
                ("tail", gzip.compress(tar[:-10240]), "ends without the two zero blocks"),
                ("hole", gzip.compress(tar[:1024] + bytes(512) + tar[1536:]), "a zeroed header")):
            with self.subTest(name):
                path.write_bytes(data)
                error = self.launch(name, packed, expect=65, lanes=1)
                self.assertIn(f"{path}: ", error)
                self.assertIn(word, error)

    def test_a_bomb_is_refused_with_bounded_memory_and_disk(self):
        for ending in (".tar.gz", ".tar.zst"):
            bomb = self.folder / f"bomb{ending}"
            if ending == ".tar.gz":
                with gzip.open(bomb, "wb", compresslevel=1) as file:
                    for _ in range(512):
                        file.write(bytes(1 << 20))
            else:
                bomb.write_bytes(PACKERS[ending](bytes(512 << 20)))
            self.assertLess(bomb.stat().st_size, 4 << 20)
            with self.subTest(ending):
                before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
                error = self.launch(f"run{ending}", [str(bomb)], expect=65, cache=8 << 20)
                self.assertIn(f"{bomb}: has more than 8388608 bytes decompressed", error)
                peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
                print(f"{ending}: peak {peak >> 10} MiB, {before >> 10} MiB before")
                self.assertLess(peak << 10, 300 << 20)  # a worker takes 130 MiB
                held = sum(f.stat().st_size for f in (self.folder / "cache").glob("*") if f.is_file())
                self.assertLess(held, 16 << 20)


if __name__ == "__main__":
    unittest.main()
