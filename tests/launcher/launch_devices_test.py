"""scaletrain launch RECIPE on machines with too few GPUs: those of the tests' driver library."""

import unittest

from launcher.launch_recipe_test import RecipeTestCase
from launcher.launch_support import BIN


class Devices(RecipeTestCase):
    def test_workers_without_a_gpu_each_are_refused_where_there_are_some(self):
        self.script()
        library = BIN.parent / "fake_nvml"
        if not library.exists():
            self.skipTest("the library of the tests is not built")
        for gpus, device, shared, expect in (
                (1, "auto", "", 2), (1, "cuda", "0", 2), (0, "cuda", "", 2), (0, "auto", "", 0),
                (2, "auto", "", 0), (1, "cpu", "", 0), (1, "cuda", "1", 0)):
            with self.subTest(gpus=gpus, device=device, shared=shared):
                done = self.run_launcher(
                    "launch", "--worker", self.worker, "--nproc", 2, self.recipe(device=device),
                    env={"LD_LIBRARY_PATH": str(library), "FAKE_GPUS": str(gpus),
                         "SCALETRAIN_SHARE_DEVICE": shared}, expect=expect)
                if expect:
                    visible = "1 GPU is" if gpus == 1 else f"{gpus} GPUs are"
                    self.assertIn(f"--nproc: 2 workers, and {visible} visible", done.stderr)
        fp8 = self.recipe(precision="fp8")
        env = {"LD_LIBRARY_PATH": str(library), "FAKE_GPUS": "0"}
        called = self.called()
        self.assertIn("/precision: fp8 needs a GPU, and none is visible",
                      self.run_launcher("launch", "--worker", self.worker, fp8, env=env, expect=2).stderr)
        self.assertEqual(called, self.called())
        self.run_launcher("launch", "--dry-run", fp8, env=env)  # for a machine with GPUs


if __name__ == "__main__":
    unittest.main()
