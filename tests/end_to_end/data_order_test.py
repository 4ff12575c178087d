"""Bad images, mixed sources and the streamed order: the same samples at any number of ranks and
threads, and after a kill in the middle of an epoch."""

import io
import json
import pathlib
import tarfile
import unittest

from end_to_end import support

RANKS_AND_THREADS = ((1, 1), (2, 2), (4, 1), (1, 8)) if support.LONG else ((1, 8), (4, 1))


def digits(split):
    """(key, image, label) of every sample of a split of the digits."""
    for shard in sorted(support.DIGITS.glob(f"{split}-*.tar")):
        with tarfile.open(shard) as tar:
            files = {m.name: tar.extractfile(m).read() for m in tar}
        for name in sorted(files):
            if name.endswith(".png"):
                key = name[:-len(".png")]
                yield key, files[name], files[f"{key}.cls"].decode()


def write_shards(folder, split, sizes, bad=()):
    """Shards of the first sum(sizes) samples; the images of the sample numbers `bad` are cut."""
    folder.mkdir(exist_ok=True)
    samples = enumerate(digits(split))
    paths = []
    for number, size in enumerate(sizes):
        paths.append(str(folder / f"{split}-{number:03}.tar"))
        with tarfile.open(paths[-1], "w") as tar:
            for _ in range(size):
                i, (key, image, label) = next(samples)
                data = image[:len(image) // 2] if i in bad else image
                for name, content in ((f"{key}.png", data), (f"{key}.cls", label.encode())):
                    info = tarfile.TarInfo(name)
                    info.size = len(content)
                    tar.addfile(info, io.BytesIO(content))
    return paths


class DataOrderTest(support.RunTestCase):
    def launch(self, name, ranks, data, expect=0, flags=(), env=None, **changes):
        """The train records of a run of global batches of 32 in micro-batches of 8."""
        changes.setdefault("batch", {"global": 32, "per_device": 8})
        path = self.recipe(name, data={"image_size": 16, **data}, **changes)
        self.result = self.run_scaletrain("launch", "--nproc", ranks, *flags, path, expect=expect,
                                          env=env)
        if expect == 2:
            return []  # nothing was trained
        return support.records(self.folder / name, "train")

    def digests(self, *arguments, **options):
        return [r["order_digest"] for r in self.launch(*arguments, **options)]

    def listed(self, run):
        """The bad samples that the ranks of a run list."""
        return {json.loads(line)["key"]
                for file in pathlib.Path(self.folder / run / "bad_samples").glob("*.jsonl")
                for line in file.read_text().splitlines()}

    def test_bad_images_are_skipped_counted_and_listed(self):
        bad = {3, 77, 140}
        keys = {key for i, (key, _, _) in enumerate(digits("train")) if i in bad}
        data = {"train": {"shards": write_shards(self.folder / "set", "train", [80, 80], bad)},
                "val": {"shards": write_shards(self.folder / "set", "val", [40], {5})},
                "bad_samples": "skip"}
        runs = {}
        for ranks, threads in ((1, 1), (2, 3), (4, "auto")):
            runs[ranks] = self.launch(f"ranks-{ranks}", ranks, {**data, "threads": threads},
                                      steps=None, epochs=2)
            self.assertTrue(keys <= self.listed(f"ranks-{ranks}"))
            self.assertEqual(len(self.listed(f"ranks-{ranks}")), 4)  # and the one of val
            val = support.records(self.folder / f"ranks-{ranks}", "eval")[-1]
            self.assertEqual((val["count"], val["skipped"]), (39, 1))
            self.assertRegex(self.result.stderr, r"bad samples +\d+ were skipped: .*bad_samples")
        self.assertGreaterEqual(runs[4][-1]["loader_threads"], 1)
        self.assertNotIn("loader_threads", runs[1][-1])
        for field in ("order_digest", "skipped_samples"):
            chains = [[r[field] for r in run] for run in runs.values()]
            self.assertEqual(chains[0], chains[1], field)
            self.assertEqual(chains[0], chains[2], field)
        self.assertEqual(runs[1][-1]["skipped_samples"], 6)  # 160 samples are 5 whole batches

    def test_more_bad_images_than_allowed_end_the_run(self):
        shards = write_shards(self.folder / "set", "train", [160], range(0, 160, 2))
        data = {"train": {"shards": shards}, "bad_samples": {"policy": "skip", "max_rate": 0.02}}
        self.launch("run", 2, data, expect=65)
        self.assertRegex(self.result.stderr,
                         r"\d+ of \d+ samples do not decode: more than /data/bad_samples/max_rate, "
                         r"which is 0.02")
        # What one run refused another may allow: the order does not change with the policy.
        data["bad_samples"]["max_rate"] = 1
        self.launch("run", 2, data, flags=["--resume", "auto"])

    def test_a_resume_on_another_set_says_so(self):
        data = {"train": {"shards": write_shards(self.folder / "set", "train", [80, 80])}}
        self.launch("run", 1, data, steps=8, checkpoint={"every": {"steps": 4}, "async": False},
                    env={"SCALETRAIN_FAULT": "kill@6"}, expect=137)
        write_shards(self.folder / "set", "train", [80, 79])
        self.launch("run", 1, data, steps=8, checkpoint={"every": {"steps": 4}, "async": False},
                    flags=["--resume", "auto"])
        self.assertIn("warning: the resumed run is not bit for bit equal: samples of the training "
                      "set 159, was 160", self.result.stderr)

    def test_a_resume_on_other_samples_says_so(self):
        shards = write_shards(self.folder / "set", "train", [80, 80])
        data = {"train": {"shards": shards}}
        changes = {"steps": 8, "checkpoint": {"every": {"steps": 4}, "async": False}}
        self.launch("run", 1, data, env={"SCALETRAIN_FAULT": "kill@6"}, expect=137, **changes)
        first, second = sorted((self.folder / "set").glob("*.tar"))
        first.rename(self.folder / "swapped")
        second.rename(first)
        (self.folder / "swapped").rename(second)
        self.launch("run", 1, data, flags=["--resume", "auto"], **changes)
        self.assertIn("warning: the resumed run is not bit for bit equal: the training set holds "
                      "other samples", self.result.stderr)

    def test_mixed_and_limited_sources(self):
        one = write_shards(self.folder / "one", "train", [60, 20])
        two = write_shards(self.folder / "two", "val", [40])
        data = {"train": {"sources": [{"shards": "::".join(one), "weight": 3, "balanced": True},
                                      {"shards": two, "weight": 1, "limit": 16}]},
                "samples_per_epoch": 96}
        runs = [self.digests(f"ranks-{n}", n, {**data, "threads": n}) for n in (1, 2, 4)]
        self.assertEqual(runs[0], runs[1])
        self.assertEqual(runs[0], runs[2])
        self.assertEqual(len(set(runs[0])), 20)

    def streamed(self, **more):
        # Shards of unequal size, fewer than lanes, and a set that is no multiple of the batch.
        shards = write_shards(self.folder / "set", "train", [90, 10, 55, 1, 120, 24])
        return {"train": {"shards": shards}, "order": "streamed", "lanes": 8, **more}

    def test_streamed_at_1_2_and_4_ranks_and_1_to_8_threads(self):
        runs = [self.digests(f"run-{ranks}-{threads}", ranks, self.streamed(threads=threads))
                for ranks, threads in RANKS_AND_THREADS]
        for run in runs[1:]:
            self.assertEqual(run, runs[0])
        self.assertEqual(len(set(runs[0])), 20)

    @unittest.skipUnless(support.LONG, "the short form has it with three sources")
    def test_streamed_goes_on_after_a_kill_in_mid_epoch_without_an_index(self):
        # 300 samples are 9 steps an epoch; the kill is in the second, after the checkpoint of 12.
        data = self.streamed(samples_per_epoch=300, shuffle_shards=2)
        common = {"checkpoint": {"every": {"steps": 4}, "async": False}, "steps": 30}
        alone = self.digests("alone", 2, data, **common)
        for index in (self.folder / "set").glob("*.idx"):
            index.unlink()
        self.launch("killed", 2, data, expect=137, env={"SCALETRAIN_FAULT": "kill@14,1"}, **common)
        saved = self.folder / "killed/checkpoints/step-00000012/state.json"
        sizes = json.loads(saved.read_text())["shard_sizes"]
        self.assertEqual([size for size in sizes if size >= 0 and size not in (90, 10, 55, 1, 120, 24)],
                         [])
        self.assertIn(120, sizes)
        killed = self.digests("killed", 2, data, flags=["--resume", "auto"], **common)
        self.assertEqual(killed, alone)

    def streamed_sources(self, **more):
        """Three sources: one limited, one balanced, with shards of unequal size."""
        one = write_shards(self.folder / "one", "train", [90, 10, 55, 1, 120, 24])
        two = write_shards(self.folder / "two", "train", [40, 40, 40, 40])
        three = write_shards(self.folder / "three", "val", [30, 20])
        return {"train": {"sources": [{"shards": one, "weight": 2}, {"shards": two, "limit": 70},
                                      {"shards": three, "balanced": True}]},
                "order": "streamed", "lanes": 8, **more}

    def test_streamed_sources_limits_and_classes_at_1_2_and_4_ranks(self):
        runs = [self.digests(f"run-{ranks}-{threads}", ranks, self.streamed_sources(threads=threads))
                for ranks, threads in RANKS_AND_THREADS]
        for run in runs[1:]:
            self.assertEqual(run, runs[0])
        self.assertEqual(len(set(runs[0])), 20)

    def test_streamed_sources_go_on_after_a_kill_in_mid_epoch(self):
        data = self.streamed_sources(samples_per_epoch=300, shuffle_shards=2)
        common = {"checkpoint": {"every": {"steps": 4}, "async": False}, "steps": 30}
        alone = self.digests("alone", 2, data, **common)
        for index in self.folder.glob("*/*.idx"):
            index.unlink()
        self.launch("killed", 2, data, expect=137, env={"SCALETRAIN_FAULT": "kill@14,1"}, **common)
        saved = self.folder / "killed/checkpoints/step-00000012/state.json"
        state = json.loads(saved.read_text())
        # Of every shard as it is stored, whatever the limits.
        stored = [90, 10, 55, 1, 120, 24, 40, 40, 40, 40, 30, 20]
        self.assertEqual(len(state["shard_sizes"]), len(stored))
        for size, whole in zip(state["shard_sizes"], stored):
            self.assertIn(size, (-1, whole))
        self.assertEqual(state["shard_sizes"][6:10].count(40), 2)  # a limit of 70 is two of them
        self.assertEqual(state["shard_sizes"][10:], [30, 20])
        killed = self.digests("killed", 2, data, flags=["--resume", "auto"], **common)
        self.assertEqual(killed, alone)
        self.assertEqual(support.inspect(self.folder / "killed")["model_digest"],
                         support.inspect(self.folder / "alone")["model_digest"])
        self.assertNotIn("not bit for bit", self.result.stderr)

    def test_streamed_needs_lanes_for_the_ranks_and_samples_for_a_batch(self):
        self.launch("lanes", 3, self.streamed(), expect=2,
                    batch={"global": 24, "per_device": 8})
        self.assertIn("/data/lanes: 8 is not a multiple of the 3 ranks", self.result.stderr)
        data = self.streamed(samples_per_epoch=20)
        self.launch("few", 1, data, expect=2)
        self.assertIn("/data/samples_per_epoch: 20 are less than a step's 32", self.result.stderr)
        self.launch("few", 1, data, expect=2, batch={"per_device": 16, "accumulate": 2})
        self.assertIn("is more than the 20 samples of an epoch", self.result.stderr)


if __name__ == "__main__":
    unittest.main()
