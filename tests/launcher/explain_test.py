"""scaletrain explain launch: every value with its origin, and nothing is started."""

import json
import unittest

from launcher.launch_recipe_test import RecipeTestCase
from launcher.launch_support import BIN, ROOT


class Explain(RecipeTestCase):
    def explain(self, *arguments, env=None, expect=0):
        """{table: {name: (value, from)}}"""
        process = self.start("explain", "launch", "--json", *arguments, env=env)
        out, err = process.communicate(timeout=60)
        self.assertEqual(expect, process.returncode, err)
        if expect:
            return err
        return {table: {row["name"]: (row["value"], row["from"]) for row in rows}
                for table, rows in json.loads(out).items() if table != "notes"}

    def test_a_program_by_flags_variables_and_defaults(self):
        found = self.explain("--nproc=2", "-r", "3", "--node_rank", "0", "--", "touch", "started",
                             env={"PET_MAX_RESTARTS": "4", "PET_ROLE": "", "PET_NPROC_PER_NODE": "9",
                                  "PET_VIRTUAL_LOCAL_RANK": "0", "PET_NO_PYTHON": "1"})
        launch = found["launch"]
        self.assertEqual(("2", "--nproc"), launch["nproc"])
        self.assertEqual(("3", "-r"), launch["redirects"])
        self.assertEqual(("0", "--node_rank"), launch["node-rank"])
        self.assertEqual(("4", "PET_MAX_RESTARTS"), launch["max-restarts"])
        self.assertEqual(("default", "default"), launch["role"])
        self.assertEqual(("30s", "default"), launch["grace"])
        self.assertEqual(("0s", "default"), launch["hang-timeout"])
        self.assertEqual(("off", "PET_VIRTUAL_LOCAL_RANK"), launch["virtual-local-rank"])
        self.assertEqual(("on", "PET_NO_PYTHON"), launch["no-python"])
        self.assertEqual(("off", "default"), launch["standalone"])
        self.assertEqual(set(), {"allow", "resume", "worker", "logs-specs"} & launch.keys())
        self.assertEqual(("127.0.0.1", "default"), launch["master-addr"])
        self.assertEqual(("a free one", "default"), launch["master-port"])
        self.assertEqual(("touch started", "the command line"), launch["program"])
        self.assertEqual(("1", "default with several workers"), found["worker"]["OMP_NUM_THREADS"])
        self.assertEqual("2", found["worker"]["WORLD_SIZE"][0])
        self.assertEqual({}, found["recipe"])
        self.assertFalse((self.folder / "started").exists())
        self.assertEqual([self.shard], list(self.folder.iterdir()))

    def test_words_behind_other_flags_are_no_flags(self):
        found = self.explain("train.py", "--nproc", "7", env={"PYTHON_EXEC": "/py"})
        self.assertEqual(("1", "default"), found["launch"]["nproc"])
        self.assertEqual("/py -u train.py --nproc 7", found["launch"]["program"][0])

    def test_slurm_says_how_nodes_meet(self):
        env = {"SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "2", "SLURM_STEP_NUM_NODES": "2",
               "SLURM_NODEID": "1", "SLURM_JOB_ID": "7", "SLURM_STEP_NODELIST": "n[1-2]",
               "SLURM_STEP_TASKS_PER_NODE": "1(x2)", "SLURM_LOCALID": "0"}
        launch = self.explain("--nproc", "3", "--", "true", env=env)["launch"]
        self.assertEqual(("2", "Slurm"), launch["nnodes"])
        self.assertEqual(("1", "Slurm"), launch["node-rank"])
        self.assertEqual(("n1", "Slurm"), launch["master-addr"])
        self.assertEqual("Slurm", launch["master-port"][1])
        launch = self.explain("--rdzv-endpoint", "[::1]:123", "--", "true")["launch"]
        self.assertEqual(("::1", "--rdzv-endpoint"), launch["master-addr"])
        self.assertEqual(("123", "--rdzv-endpoint"), launch["master-port"])

        launch = self.explain("--standalone", "--local-addr", "127.0.0.7", "--", "true")["launch"]
        self.assertEqual(("127.0.0.7", "--local-addr"), launch["master-addr"])

    def test_every_key_of_a_recipe_with_its_line(self):
        (self.folder / "base.json").write_text('{\n "seed": 3\n}')
        path = self.recipe(extends="base.json", seed=None)
        recipe = json.loads(path.read_text())
        del recipe["seed"]
        path.write_text(json.dumps(recipe, indent=1))
        lines = path.read_text().splitlines()
        line = 1 + next(i for i, text in enumerate(lines) if '"lr"' in text)
        found = self.explain("--nproc", "2", "--set", "optimizer.momentum=0.5", path)
        self.assertEqual(("10m", "default"), found["launch"]["hang-timeout"])
        self.assertEqual(set(), {"role", "tee", "rdzv-id", "log-dir"} & found["launch"].keys())
        keys = found["recipe"]
        self.assertEqual(("0.1", f"{path}:{line}"), keys["optimizer.lr"])
        self.assertEqual(("0.5", "--set optimizer.momentum"), keys["optimizer.momentum"])
        self.assertEqual(("3", f"{self.folder}/base.json:2"), keys["seed"])
        self.assertEqual(("fp32", "default"), keys["precision.name"])
        self.assertEqual(("8 = 4 x 1 x 2 ranks", "batch, nproc, nnodes"), keys["global batch"])
        self.assertFalse(self.run_folder.exists())

    def test_nodes_that_are_not_there_need_no_address(self):
        launch = self.explain("--nnodes", "3", "--", "true")["launch"]
        self.assertEqual(("3", "--nnodes"), launch["nnodes"])
        self.assertEqual(("ADDRESS", "default"), launch["master-addr"])
        done = self.run_launcher("explain", "launch", "--nnodes", "3", "--", "true")
        self.assertIn("note: a launch needs --master-addr, the address of node 0", done.stdout)
        self.assertIn("--rdzv-endpoint", self.explain("--nnodes", "2:3", "--", "true", expect=2))

    def test_how_near_the_gpus_of_a_group_are(self):
        library = BIN.parent / "fake_nvml"
        if not library.exists():
            self.skipTest("the library of the tests is not built")
        command = ("explain", "launch", "--nproc", 4, "--set", "parallel.shard=2",
                   ROOT / "recipes/digits_vit_tiny.json")  # whose data are not here: 65
        env = {"LD_LIBRARY_PATH": str(library), "FAKE_NVLINKS": "0-2,1-3"}
        out = self.run_launcher(*command, env=env, expect=65).stdout
        self.assertRegex(out, r"(?m)^  shard GPUs +one NUMA node +the longest path inside a group")
        self.assertRegex(out, r"(?m)^  replica GPUs +NVLink +the longest path inside a group")
        self.assertIn("note: the GPUs of shard groups reach each other over one NUMA node; "
                      "CUDA_VISIBLE_DEVICES=0,2,1,3 puts each group on NVLink", out)
        out = self.run_launcher(*command, expect=65, env={**env, "CUDA_VISIBLE_DEVICES": "0,2,1,3"}).stdout
        self.assertRegex(out, r"(?m)^  shard GPUs +NVLink")
        self.assertNotIn("puts each group", out)
        for change in ({"FAKE_NVML_NO_PATHS": "1"}, {"FAKE_GPUS": "3"}, {"FAKE_NVML_REFUSES": "1"}):
            self.assertNotIn("shard GPUs", self.run_launcher(*command, env={**env, **change}, expect=65).stdout)

    def test_the_tables_for_a_person_hide_secrets(self):
        done = self.run_launcher("explain", "launch", "--monitor-interval", "5", "--", "x",
                                 "API_TOKEN=secret-1")
        self.assertNotIn("secret-1", done.stdout)
        self.assertRegex(done.stdout, r"(?m)^  nproc +1 +default$")
        self.assertIn("note: --monitor-interval has no effect", done.stdout)

    def test_what_a_launch_refuses_is_refused(self):
        self.assertIn("--nnodes", self.explain("--nnodes", "x", "--", "true", expect=2))
        self.assertIn("nothing to run is given", self.explain(expect=2))
        self.assertIn('did you mean "--nproc"', self.explain("--nprc", "2", "--", "true", expect=2))
        for flag in ("--grace", "--hang-timeout", "--join-timeout", "--last-call", "--restart-delay",
                     "--heartbeat-timeout"):
            self.assertIn(f'{flag}: "10" is not a duration', self.explain(flag, "10", "--", "true",
                                                                        expect=2))
            for duration in ("500ms", "10s", "5m"):
                if (flag, duration) != ("--heartbeat-timeout", "500ms"):
                    launch = self.explain(flag, duration, "--", "true")["launch"]
                    self.assertEqual((duration, flag), launch[flag[2:]])
        self.assertIn("--role: is for programs", self.explain("--role", "x", self.recipe(), expect=2))
        self.assertIn("--tee", self.explain("--tee", "9", "--", "true", expect=2))
        self.assertIn("--signals-to-handle", self.explain("--signals-to-handle", "SIGKILL", "--",
                                                          "true", expect=2))

    def test_the_last_value_of_a_repeated_flag_is_shown(self):
        launch = self.explain("--grace", "5s", "--grace", "10s", "--", "true")["launch"]
        self.assertEqual(("10s", "--grace"), launch["grace"])


class Others(RecipeTestCase):
    """explain slurm, queue and sweep: flags and runs; nothing is submitted, started or written."""

    def explain(self, *words, expect=0):
        done = self.run_launcher("explain", *words, "--json", expect=expect)
        if expect:
            return done.stderr
        return {table: [(row["name"], row["value"], row["from"]) for row in rows]
                for table, rows in json.loads(done.stdout).items() if table != "notes"}

    def test_a_sweep_names_its_runs(self):
        path = self.recipe()
        before = sorted(self.folder.rglob("*"))
        found = self.explain("sweep", path, "optimizer.lr=[0.1,0.2]", "--devices", "cpu",
                             "--jobs", 1, "--folder", "there")
        self.assertIn(("folder", "there", "--folder"), found["sweep"])
        self.assertIn(("nproc", "1", "default"), found["sweep"])
        self.assertIn(("place 1", "all CPUs", "CPUs over --jobs"), found["sweep"])
        self.assertEqual([(f"lr-{lr}", f"{self.folder}/there/lr-{lr}", f"{path} optimizer.lr={lr}")
                          for lr in ("0.1", "0.2")], found["runs"])
        self.assertEqual(before, sorted(self.folder.rglob("*")))
        self.assertIn("is not KEY=[VALUES]", self.explain("sweep", path, "lr", expect=2))

    def test_a_queue_names_its_runs(self):
        path = self.recipe()
        found = self.explain("queue", path, "--set", "seed=7")
        self.assertIn(("folder", "runs/queue", "default"), found["queue"])
        self.assertIn(("set", "seed=7", "--set"), found["queue"])
        self.assertEqual([str(path)], [origin for *_, origin in found["runs"]])

    def test_a_job_for_slurm_names_its_runs_and_the_keys_of_its_recipe(self):
        path = self.recipe()
        found = self.explain("slurm", path, "--nodes", 1, "--time", "1:00:00", "--set", "seed=7")
        self.assertIn(("time", "1:00:00", "--time"), found["slurm"])
        self.assertIn(("output", "slurm-%j.out", "default"), found["slurm"])
        self.assertIn(("seed", "7", "--set seed"), found["recipe"])
        self.assertEqual([str(self.run_folder)], [folder for _, folder, _ in found["runs"]])
        self.assertIn("no recipe is given", self.explain("slurm", expect=2))


if __name__ == "__main__":
    unittest.main()
