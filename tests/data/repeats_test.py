"""Repeated augmentation against timm's sampler."""
import collections
import os
import subprocess
import unittest
from unittest import mock

import torch
from timm.data.distributed_sampler import RepeatAugSampler

PROGRAM = os.path.join(os.environ["SCALETRAIN_BIN"], "augment_program")


def run(*arguments):
    return subprocess.run([PROGRAM, *map(str, arguments)], check=True, timeout=120,
                          capture_output=True).stdout


def order(samples, repeats, batch, epoch):
    return [int(line) for line in run("order", samples, repeats, batch, epoch).split()]


class RepeatsTest(unittest.TestCase):
    def test_every_global_batch_has_the_samples_of_timms_sampler(self):
        samples, epoch = 1024, 3
        once = order(samples, 1, 1, epoch)  # the order of the epoch, which takes randperm's place
        self.assertEqual(sorted(once), list(range(samples)))
        for repeats, ranks, per_device in ((3, 4, 8), (3, 1, 64), (2, 2, 16), (4, 8, 4)):
            batch = ranks * per_device
            ours = order(samples, repeats, batch, epoch)
            with mock.patch.object(torch, "randperm", lambda n, generator: torch.tensor(once)):
                theirs = [list(RepeatAugSampler(range(samples), num_replicas=ranks, rank=rank,
                                                num_repeats=repeats)) for rank in range(ranks)]
            self.assertEqual(sum(map(len, theirs)), len(ours))
            for step in range(samples // batch):
                expected = collections.Counter()
                for indices in theirs:
                    expected.update(indices[step * per_device:(step + 1) * per_device])
                found = collections.Counter(ours[step * batch:(step + 1) * batch])
                self.assertEqual(found, expected, f"{repeats} repeats, step {step}")


if __name__ == "__main__":
    unittest.main()
