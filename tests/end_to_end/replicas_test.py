"""Replicas that outlive each other: one is killed, hangs or is slow, and the others go on."""

import json
import os
import signal
import time
import unittest

from end_to_end import support
from end_to_end.replicas_support import (BATCH, DONE_WITH_FEWER, async_sync, diloco, last_step,
                                         lost_samples)

RANKS = 3
VISION = {"name": "vit_tiny", "num_classes": 10, "patch_size": 4, "dim": 16,
          "depth": 2, "heads": 2}


class Replicas(support.RunTestCase):
    def launch(self, *arguments, fault="", expect=0):
        env = {"SCALETRAIN_FAULT": fault} if fault else None
        return self.run_scaletrain("launch", "--nproc", RANKS, *arguments, env=env, expect=expect)

    def train_until(self, step, *flags, fault="", **recipe):
        """A job that would train for long, once rank 0 has taken so many steps, and its folder."""
        path, run = self.recipe("run", steps=100000, **recipe), self.folder / "run"
        process = self.start("launch", "--nproc", RANKS, *flags, path,
                             env={"SCALETRAIN_FAULT": fault} if fault else None)
        support.wait_until(lambda: last_step(run) >= step, f"step {step}")
        return process, run

    def go_on(self, run, steps):
        """What state.json says of a run that was resumed to train for so many steps."""
        self.run_scaletrain("resume", run, "--nproc", RANKS, "--set", f"steps={steps}",
                            "--allow", "steps")
        return support.state(run)

    def stop(self, process, number=signal.SIGTERM):
        process.send_signal(number)
        _, err = process.communicate(timeout=support.TIMEOUT_S)
        self.assertEqual(process.returncode, 75, err)
        return err

    def test_a_killed_replica_ends_nothing_but_itself(self):
        path = self.recipe("run", steps=60, sync=async_sync())
        err = self.launch(path, fault="kill@30,2", expect=DONE_WITH_FEWER).stderr
        self.assertIn("rank 2 is lost, the others go on: killed by SIGKILL", err)
        self.assertIn("the job is done with 2 of 3 replicas; lost: rank 2 (killed by SIGKILL, "
                      "step 30)", err)
        run = self.folder / "run"
        (lost,) = support.records(run, "lost_replica")
        self.assertEqual((lost["replica"], lost["kept_step"], lost["left"]), (2, 28, 2))
        state = support.state(run)
        self.assertEqual(state["step"], 60)
        # Of the steps behind its last exchange, step 28.
        self.assertEqual(lost_samples(state, 2, RANKS), (60 - 28) * BATCH)
        self.assertEqual(lost_samples(state, 1, RANKS), 0)
        self.assertEqual([record["replica"] for record in support.records(run, "train")], [0] * 60)
        test = [r for r in support.records(run, "eval") if r["split"] == "test"]
        self.assertEqual(test[0]["weights"], "mean")
        self.assertTrue((run / "finished.json").exists())

    def test_a_resume_goes_on_with_all_and_keeps_what_was_lost(self):
        process, run = self.train_until(40, fault="kill@14,1",
                                        sync=async_sync(), checkpoint={"every": {"steps": 8}})
        err = self.stop(process)
        self.assertIn("lost before: rank 1 (killed by SIGKILL, step 14)", err)
        before = support.state(run)
        self.assertEqual(lost_samples(before, 1, RANKS), (before["step"] - 12) * BATCH)
        steps = before["step"] + 20
        after = self.go_on(run, steps)
        self.assertEqual(after["step"], steps)
        self.assertEqual(after["lost_positions"], before["lost_positions"])

    def test_a_stop_forces_an_exchange_before_the_save(self):
        process, run = self.train_until(20, sync=async_sync(steps=10000))
        self.stop(process)
        state = support.state(run)
        self.assertGreater(state["step"], 0)
        self.assertLess(state["step"], 10000)
        # What the others have made of their steps is there: only what rank 0 was ahead is not.
        for replica in (1, 2):
            self.assertLess(lost_samples(state, replica, RANKS), state["step"] * BATCH)

    def test_a_slow_replica_holds_up_the_others_only_where_staleness_ends(self):
        path = self.recipe("run", steps=60, sync=async_sync(steps=4, staleness=3))
        # Two exchanges, then it stands still.
        process = self.start("launch", "--nproc", RANKS, path,
                             env={"SCALETRAIN_FAULT": "stop@9,1"})
        run = self.folder / "run"
        # Rank 0 may be 3 exchanges ahead of 2: it waits in its sixth, at the end of step 24.
        support.wait_until(lambda: last_step(run) >= 23, "the bound")
        time.sleep(1)  # and waits there
        self.assertEqual(last_step(run), 23)
        for pid in support.pids_with(process.marker):
            os.kill(pid, signal.SIGCONT)
        _, err = process.communicate(timeout=support.TIMEOUT_S)
        self.assertEqual(process.returncode, 0, err)
        self.assertEqual(support.state(run)["lost_positions"], [])

    def test_a_replica_that_hangs_is_killed_and_lost(self):
        path = self.recipe("run", steps=60, sync=async_sync(staleness=1))
        err = self.launch("--hang-timeout", "10s", path, fault="stop@9,1",
                          expect=DONE_WITH_FEWER).stderr
        self.assertIn("rank 1 is lost, the others go on: hangs: ", err)
        self.assertIn("lost: rank 1 (hung, step 9)", err)
        self.assertEqual(lost_samples(support.state(self.folder / "run"), 1, RANKS), (60 - 8) * BATCH)

    def test_all_but_rank_0_may_be_lost(self):
        process, run = self.train_until(10, sync=async_sync())
        ranks = self.ranks_of(process)
        os.kill(ranks[1], signal.SIGKILL)
        os.kill(ranks[2], signal.SIGTERM)  # it leaves in good order
        seen = last_step(run)
        support.wait_until(lambda: last_step(run) >= seen + 40, "steps of rank 0 alone")
        support.wait_until(lambda: ranks[2] not in support.pids_with(process.marker),
                           "the end of rank 2")
        os.kill(ranks[0], signal.SIGKILL)  # where the replicas meet
        _, err = process.communicate(timeout=support.TIMEOUT_S)
        self.assertEqual(process.returncode, 137, err)
        self.assertIn("rank 0 failed first: killed by SIGKILL", err)
        self.assertIn("rank 1 (killed by SIGKILL", err)
        self.assertIn("rank 2 (exit code 75", err)
        failure = json.loads((run / "failure.json").read_text())
        self.assertEqual(failure["rank"], 0)

    def ranks_of(self, process):
        """The workers' process numbers, by rank."""
        ranks = {}
        for pid in support.pids_with(process.marker):
            with open(f"/proc/{pid}/environ", "rb") as environ:
                for variable in environ.read().split(b"\0"):
                    if variable.startswith(b"RANK="):
                        ranks[int(variable[5:])] = pid
        return ranks

    def test_diloco_goes_on_without_a_replica_that_is_killed(self):
        # Between exchanges; the others wait for it in the exchange behind step 30.
        for fragments, kept in ((1, 20), (2, 25)) if support.LONG else ((2, 25),):
            with self.subTest(fragments=fragments):
                name = f"fragments-{fragments}"
                path = self.recipe(name, steps=60, sync=diloco(fragments=fragments),
                                   optimizer={"name": "adamw", "lr": 0.01},
                                   checkpoint={"every": {"steps": 20}, "keep_last": 9})
                err = self.launch(path, fault="kill@28,2", expect=DONE_WITH_FEWER).stderr
                self.assertIn("rank 2 is lost, the others go on: killed by SIGKILL", err)
                self.assertIn("the job is done with 2 of 3 replicas; lost: rank 2 (killed by "
                              "SIGKILL, step 28)", err)
                run = self.folder / name
                (lost,) = support.records(run, "lost_replica")
                self.assertEqual((lost["replica"], lost["kept_step"], lost["left"]), (2, kept, 2))
                state = support.state(run)
                self.assertEqual(state["step"], 60)
                self.assertEqual(lost_samples(state, 2, RANKS), (60 - kept) * BATCH)
                self.assertEqual(lost_samples(state, 1, RANKS), 0)
                test = [r for r in support.records(run, "eval") if r["split"] == "test"]
                self.assertEqual(test[0]["weights"], "outer")
                # A resume has all replicas again, and what was lost stays said.
                after = self.go_on(run, 70)
                self.assertEqual(after["step"], 70)
                self.assertEqual(after["lost_positions"], state["lost_positions"])

    def test_with_one_of_its_ranks_a_replica_of_several_is_lost(self):
        # Three replicas of two ranks; what is killed is of replica 1.
        cases = {"pipeline": ({"pipeline": 2}, 4, "1, 4")}
        if support.LONG:
            cases |= {"shard": ({"shard": 2}, 3, "2, 3"), "tensor": ({"tensor": 2}, 2, "2, 3")}
        for name, (parallel, killed, ranks) in cases.items():
            with self.subTest(name):
                samples = 8 if name == "shard" else 16  # of each data-parallel rank
                path = self.recipe(name, steps=60, sync=diloco(), parallel=parallel,
                                   model=VISION, batch={"per_device": samples, "accumulate": 2},
                                   optimizer={"name": "adamw", "lr": 0.001},
                                   checkpoint={"every": {"steps": 20}, "keep_last": 9})
                err = self.run_scaletrain(
                    "launch", "--nproc", 2 * RANKS, path, expect=DONE_WITH_FEWER,
                    env={"SCALETRAIN_FAULT": f"kill@28,{killed}"}).stderr
                self.assertIn(f"rank {killed} is lost, and replica 1 with it (ranks {ranks}), the "
                              "others go on: killed by SIGKILL", err)
                self.assertIn("the job is done with 2 of 3 replicas; lost: rank "
                              f"{killed} (killed by SIGKILL, step 28)", err)
                self.assertEqual(err.count("is lost"), 2)  # of the launcher, and of rank 0
                run = self.folder / name
                (lost,) = support.records(run, "lost_replica")
                self.assertEqual((lost["replica"], lost["kept_step"], lost["left"]), (1, 20, 2))
                state = support.state(run)
                self.assertEqual(state["step"], 60)
                self.assertEqual(lost_samples(state, 1, RANKS), 2 * (60 - 20) * BATCH)
                self.assertEqual(lost_samples(state, 2, RANKS), 0)
                self.run_scaletrain("resume", run, "--nproc", 2 * RANKS, "--set", "steps=66",
                                    "--allow", "steps")
                after = support.state(run)
                self.assertEqual(after["step"], 66)
                self.assertEqual(after["lost_positions"], state["lost_positions"])

    def test_an_async_replica_of_several_ranks_is_lost_alone(self):
        path = self.recipe("run", steps=60, sync=async_sync(), parallel={"shard": 2},
                           batch={"per_device": 8})
        err = self.run_scaletrain("launch", "--nproc", 2 * RANKS, path, expect=DONE_WITH_FEWER,
                                  env={"SCALETRAIN_FAULT": "kill@30,5"}).stderr
        self.assertIn("rank 5 is lost, and replica 2 with it (ranks 4, 5), the others go on: killed "
                      "by SIGKILL", err)
        run = self.folder / "run"
        (lost,) = support.records(run, "lost_replica")
        self.assertEqual((lost["replica"], lost["kept_step"], lost["left"]), (2, 28, 2))
        state = support.state(run)
        self.assertEqual(lost_samples(state, 2, RANKS), (60 - 28) * BATCH)
        self.run_scaletrain("resume", run, "--nproc", 2 * RANKS, "--set", "steps=66",
                            "--allow", "steps")
        self.assertEqual(support.state(run)["step"], 66)

    def test_a_rank_that_hangs_takes_its_replica_along(self):
        path = self.recipe("run", steps=30, sync=diloco(), parallel={"shard": 2},
                           batch={"per_device": 8})
        err = self.run_scaletrain("launch", "--nproc", 4, "--hang-timeout", "10s", path,
                                  expect=DONE_WITH_FEWER,
                                  env={"SCALETRAIN_FAULT": "stop@15,2"}).stderr
        self.assertIn("rank 2 is lost, and replica 1 with it (ranks 2, 3), the others go on: hangs: ",
                      err)
        self.assertEqual(support.state(self.folder / "run")["step"], 30)

    def test_a_rank_of_rank_0s_replica_ends_the_job(self):
        path = self.recipe("run", steps=30, sync=diloco(), parallel={"shard": 2},
                           batch={"per_device": 8})
        err = self.run_scaletrain("launch", "--nproc", 4, path, expect=137,
                                  env={"SCALETRAIN_FAULT": "kill@15,1"}).stderr
        self.assertIn("rank 1 failed first: killed by SIGKILL", err)
        self.assertNotIn("is lost, ", err)

    @unittest.skipUnless(support.LONG, "train/meeting_runs_test.cpp covers it: the long form")
    def test_diloco_without_a_loss_is_bit_for_bit_whatever_was_killed_before(self):
        def train(name, **more):
            return self.recipe(name, steps=60, sync=diloco(), **more,
                               checkpoint={"every": {"steps": 20}, "keep_last": 9})
        self.launch(train("whole"))
        # Rank 0 takes all of them with it; the job goes on from step 20.
        self.launch(train("killed"), fault="kill@27,0", expect=137)
        whole, killed = self.folder / "whole", self.folder / "killed"
        self.run_scaletrain("resume", killed, "--nproc", RANKS)
        self.assertEqual(support.state(killed)["step"], 60)
        model = "checkpoints/latest/model.safetensors"
        self.assertEqual((whole / model).read_bytes(), (killed / model).read_bytes())

    def test_diloco_that_trains_while_it_exchanges_resumes_bit_for_bit_and_stops(self):
        late = diloco(fragments=2, overlap=3)
        def train(name):
            return self.recipe(name, steps=60, sync=late, checkpoint={"every": {"steps": 5}})
        self.launch(train("whole"))
        # By collectives any loss ends the job: here between the beginning of an exchange and its end.
        err = self.launch(train("killed"), fault="kill@37,2", expect=137).stderr
        self.assertIn("rank 2 failed first: killed by SIGKILL", err)
        whole, killed = self.folder / "whole", self.folder / "killed"
        self.assertEqual(support.state(killed)["step"], 33)  # the last end of an exchange
        self.run_scaletrain("resume", killed, "--nproc", RANKS)
        self.assertEqual(support.state(killed)["step"], 60)
        model = "checkpoints/latest/model.safetensors"
        self.assertEqual((whole / model).read_bytes(), (killed / model).read_bytes())
        process, run = self.train_until(16, sync=diloco(steps=10000, overlap=9999))
        self.stop(process)
        before = support.state(run)
        self.assertLess(before["step"], 10000)
        self.assertEqual(self.go_on(run, before["step"] + 5)["step"], before["step"] + 5)

    @unittest.skipUnless(support.LONG, "train/meeting_runs_test.cpp covers it: the long form")
    def test_a_stop_of_diloco_exchanges_and_saves_at_one_step(self):
        process, run = self.train_until(20, sync=diloco(steps=10000))
        err = self.stop(process)
        before = support.state(run)
        self.assertLess(before["step"], 10000)
        self.assertEqual(before["lost_positions"], [], err)
        steps = before["step"] + 20
        self.assertEqual(self.go_on(run, steps)["step"], steps)

    def test_diloco_stops_while_the_others_wait_for_one_that_hangs(self):
        process, run = self.train_until(19, "--grace", "20s", fault="stop@15,1", sync=diloco())
        time.sleep(1)  # and 2 waits in the exchange, too
        err = self.stop(process)
        self.assertIn("1 worker was killed", err)
        state = support.state(run)
        self.assertEqual(state["step"], 20)
        self.assertEqual(lost_samples(state, 1, RANKS), (20 - 10) * BATCH)
        self.assertEqual(lost_samples(state, 2, RANKS), 0)

    def test_a_diloco_replica_that_is_killed_in_an_exchange(self):
        path = self.recipe("run", steps=60, sync=diloco())
        # 1 stands still before the exchange behind step 20, in which 0 and 2 wait then.
        process = self.start("launch", "--nproc", RANKS, path,
                             env={"SCALETRAIN_FAULT": "stop@19,1"})
        run = self.folder / "run"
        support.wait_until(lambda: last_step(run) >= 19, "the exchange behind step 20")
        time.sleep(1)  # and 2 waits in it
        ranks = self.ranks_of(process)
        os.kill(ranks[2], signal.SIGKILL)
        os.kill(ranks[1], signal.SIGCONT)
        _, err = process.communicate(timeout=support.TIMEOUT_S)
        self.assertEqual(process.returncode, DONE_WITH_FEWER, err)
        state = support.state(run)
        self.assertEqual(lost_samples(state, 2, RANKS), (60 - 10) * BATCH)
        self.assertEqual(lost_samples(state, 1, RANKS), 0)

    def test_all_of_diloco_but_rank_0_may_be_lost(self):
        process, run = self.train_until(15, sync=diloco())
        ranks = self.ranks_of(process)
        os.kill(ranks[1], signal.SIGKILL)
        os.kill(ranks[2], signal.SIGKILL)
        seen = last_step(run)
        support.wait_until(lambda: last_step(run) >= seen + 40, "steps of rank 0 alone")
        err = self.stop(process)
        self.assertIn("lost before: rank ", err)
        state = support.state(run)
        for replica in (1, 2):
            self.assertGreater(lost_samples(state, replica, RANKS), 0)


if __name__ == "__main__":
    unittest.main()
